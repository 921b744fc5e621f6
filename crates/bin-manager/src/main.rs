//! The manager: one process, one lease per capability, metrics and probes.

mod options;

use std::{collections::BTreeSet, sync::Arc};

use anyhow::Context as _;
use clap::Parser;
use ctl_sip::{Context, Engine, metrics::SipMetrics, reports::OverHttp, sources::Sources};
use io_kube::{
    Metrics, Writer,
    client::{Access, connect},
    events::Recorder,
    health::{Health, Probe},
    lease,
};
use plan_sip::{services::Installation, site::Settings};
use tokio::{signal::unix, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use options::{LogFormat, Options};

/// Events on their way from watches to the engine: enough that a burst does not stall the watches, few enough to bound
/// memory while a first listing comes in.
const EVENTS: usize = 256;

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("a TLS provider was installed before main"))?;
    let options = Options::parse();
    log(options.log_format);

    let metrics = Metrics::new();
    let health = Health::new();
    let access = Access { kubeconfig: options.kubeconfig.clone(), metrics: Some(metrics.clone()), ..Access::default() };
    let client = connect(access).await.context("no Kubernetes API")?;

    let stop = CancellationToken::new();
    let served =
        tokio::spawn(io_kube::health::serve(options.metrics_addr, health.clone(), metrics.clone(), stop.clone()));
    terminate(&stop)?;

    let leases = leases(&options);
    tracing::info!(leases = leases.len(), version = env!("CARGO_PKG_VERSION"), "waiting to lead");
    let leadership = tokio::select! {
        leadership = lease::elected(&client, &leases, Some(&metrics)) => leadership,
        () = stop.cancelled() => return Ok(()),
    };
    tracing::info!("leading");

    let cx = Context {
        writer: Writer::new(client.clone()).while_leading(leadership.clone()).counted(metrics.clone()),
        settings: settings(&options),
        installation: Arc::new(installation(&options)),
        now: Arc::new(jiff::Timestamp::now),
        reports: Arc::new(OverHttp),
        metrics: SipMetrics::new(metrics),
        events: Some(Recorder::new(
            client.clone(),
            "slipway.airshipit.org/sip",
            &options.pod_name,
            Arc::new(jiff::Timestamp::now),
        )),
    };
    let (sender, events) = mpsc::channel(EVENTS);
    let synced = health.check(Probe::Ready, "sip-synced", "nothing is listed yet");
    let engine = Engine::new(cx, Sources::new(client, sender, stop.clone())).reporting_to(synced);
    tokio::select! {
        () = engine.run(events, stop.clone()) => {}
        () = leadership.lost() => {
            // Whoever leads now decides; a process that goes on half blind is worse than one that starts anew.
            stop.cancel();
            anyhow::bail!("the lease is lost");
        }
        served = served => anyhow::bail!("probes and metrics cannot be served on {}: {served:?}", options.metrics_addr),
    }
    leadership.release().await;
    Ok(())
}

fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => subscriber.with_ansi(false).init(),
        LogFormat::Json => subscriber.json().init(),
    }
}

/// SIGTERM and SIGINT end the work in an orderly way.
fn terminate(stop: &CancellationToken) -> anyhow::Result<()> {
    for kind in [unix::SignalKind::terminate(), unix::SignalKind::interrupt()] {
        let mut signal = unix::signal(kind).context("signals cannot be received")?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signal.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

fn leases(options: &Options) -> Vec<lease::Config> {
    let identity = lease::identity(&options.pod_name);
    let own = lease::Config::new(&options.namespace, "slipway-sip", &identity);
    let original = options.original_namespace.as_ref().map(|n| lease::Config::new(n, lease::ORIGINAL, &identity));
    std::iter::once(own).chain(original).collect()
}

fn settings(options: &Options) -> Settings {
    let listed: BTreeSet<String> =
        options.host_namespaces.iter().map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
    // As in the CLI.
    let host_namespaces = (!listed.contains("*")).then_some(listed);
    Settings { host_namespaces, quarantine: options.quarantine_seconds, secrets_known: true }
}

fn installation(options: &Options) -> Installation {
    let proxy = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
    Installation {
        namespace: options.namespace.clone(),
        haproxy_image: options.haproxy_image.clone(),
        slipway_image: options.slipway_image.clone(),
        jump_host_image: options.jump_host_image.clone(),
        dex_image: options.dex_image.clone(),
        proxy: proxy.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect(),
    }
}
