//! `slipway-lb`: the sidecar of a load balancer pod, as its init container and beside HAProxy.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use slipway_lb::{contract::Status, report::router, sidecar::Sidecar};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};

/// Keeps HAProxy on the configuration that the manager accepted.
#[derive(Parser)]
#[command(name = "slipway-lb", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Puts the first configuration where HAProxy finds it (init container).
    Init(Directories),
    /// Loads every further one and reports over HTTP (container beside HAProxy).
    Run {
        #[command(flatten)]
        directories: Directories,
        /// Address of `/status`, `/backends`, `/healthz` and `/livez`.
        #[arg(long, env = "SLIPWAY_LB_LISTEN", default_value = "[::]:9404")]
        listen: SocketAddr,
    },
}

#[derive(Args)]
struct Directories {
    /// Where the Secret is mounted.
    #[arg(long, env = "SLIPWAY_LB_VOLUME", default_value = "/etc/slipway/lb")]
    volume: PathBuf,
    /// The emptyDir shared with HAProxy.
    #[arg(long, env = "SLIPWAY_LB_SHARED", default_value = "/run/haproxy")]
    shared: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().json().with_env_filter(filter).init();
    match Cli::parse().command {
        Command::Init(Directories { volume, shared }) => Ok(Sidecar::new(volume, shared).init()?),
        Command::Run { directories: Directories { volume, shared }, listen } => {
            let listener = bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
            run(Sidecar::new(volume, shared), listener).await
        }
    }
}

/// Binds `listen`; where the kernel has no IPv6, `[::]` means all IPv4 addresses.
async fn bind(listen: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(listen).await {
        Err(error) if listen.ip().is_unspecified() && listen.is_ipv6() && error.kind() != ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, listen.port())).await
        }
        bound => bound,
    }
}

async fn run(mut sidecar: Sidecar, listener: TcpListener) -> anyhow::Result<()> {
    let master = sidecar.master();
    let (send, reports) = watch::channel((Instant::now(), Status::default()));
    let mut stop = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let turns = async {
        loop {
            tick.tick().await;
            let status = sidecar.turn().await;
            send.send_replace((Instant::now(), status));
        }
    };
    tokio::select! {
        () = turns => Ok(()),
        served = axum::serve(listener, router(reports, master)) => served.context("the HTTP server ended"),
        _ = stop.recv() => Ok(()),
    }
}
