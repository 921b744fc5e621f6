//! The logic behind the Makefile: one subcommand per target.

mod before;
mod bmc;
mod cgroup;
mod chart;
mod cluster;
mod config;
mod context;
mod deploy;
mod down;
mod egress;
mod egress_test;
mod example;
mod files;
mod firewall;
mod generated;
mod gobuild;
mod hosts;
mod http;
mod images;
mod kube;
mod layers;
mod mounts;
mod net;
mod packages;
mod process;
mod real_api;
mod status;
mod step;
mod summary;
mod tenant;
mod test;
mod up;

use std::{
    env,
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use context::Cx;

/// Development tasks of Slipway.
#[derive(Parser)]
#[command(name = "xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// From a fresh machine to a running Slipway with a tenant; repairs what runs already
    Up {
        /// Stop after the base cluster
        #[arg(long)]
        base: bool,
    },
    /// Remove everything that `up` made
    Down,
    /// Build the images of the local stack
    Images {
        /// Only these
        #[arg(value_enum)]
        only: Vec<images::Image>,
    },
    /// Say what of the local stack runs
    Status,
    /// Install Slipway into the cluster that KUBECONFIG names
    Deploy {
        /// A kustomization to apply instead of `deploy/`, on which it is built
        #[arg(long)]
        overlay: Option<PathBuf>,
    },
    /// Everything that CI runs
    Test {
        /// Leave the local stack up at the end
        #[arg(long)]
        keep: bool,
    },
    /// Check the layer rule: which crate may use which
    Check,
    /// Write what is made from other sources: CRDs, reference pages, the Helm chart
    Gen {
        /// Only say what is not current
        #[arg(long)]
        check: bool,
    },
    /// Build what comes as Go modules: Kubernetes, etcd, metal3's CRD, Dex
    Programs,
    /// Show that downloads go through a proxy that is the only way out
    EgressTest,
    /// What `egress-test` runs inside
    #[command(hide = true)]
    EgressProbe {
        /// Where the downloads go
        dir: PathBuf,
    },
    /// Run a command with a bare etcd and kube-apiserver; without one, a shell
    RealApi {
        /// The command and its arguments
        #[arg(trailing_var_arg = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match context::cache().and_then(|cache| egress::adopt(&cache)).and_then(|()| run(args.task)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Up { base } => {
            let _lock = lock()?;
            up::up(&Cx::new(&config::state("log"))?, base)
        }
        Task::Down => {
            let _lock = lock()?;
            down::down(&cached()?)
        }
        Task::Images { only } => {
            context::require_root()?;
            let images = if only.is_empty() { images::Image::ALL.to_vec() } else { only };
            for built in images::build(&cached()?, &images)? {
                println!("{} {}", built.name, built.archive.display());
            }
            Ok(())
        }
        Task::Status => {
            status::print();
            Ok(())
        }
        Task::Deploy { overlay } => deploy::deploy(&cached()?, overlay.as_deref()),
        Task::Test { keep } => {
            let _lock = lock()?;
            test::test(&cached()?, keep)
        }
        Task::Check => layers::check(&cached()?),
        Task::Gen { check } => generated::generate(&cached()?, check),
        Task::Programs => {
            let cx = cached()?;
            gobuild::programs(&cx)?;
            gobuild::metal3_crd(&cx)?;
            gobuild::dex(&cx).map(drop)
        }
        Task::EgressTest => {
            let _lock = lock()?;
            egress_test::test(&cached()?)
        }
        Task::EgressProbe { dir } => egress_test::probe(&Cx::new(&dir.join("log"))?, &dir),
        Task::RealApi { command } => real_api::run(&cached()?, &command),
    }
}

/// The context of a command that keeps its logs with the build cache.
fn cached() -> Result<Cx> {
    Cx::new(Path::new("log"))
}

/// One change of the stack at a time, whatever checkout it comes from. A test of the whole system that repairs the stack
/// does so under the lock of the `test` that runs it.
fn lock() -> Result<File> {
    context::require_root()?;
    let file = File::create(config::LOCK).with_context(|| format!("cannot write {}", config::LOCK))?;
    if env::var_os(test::HOLDS_THE_LOCK).is_some() {
        return Ok(file);
    }
    // A program that a killed run was just starting holds the lock for a moment longer.
    for _ in 0..20 {
        if file.try_lock().is_ok() {
            return Ok(file);
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!("another `make up` or `make down` is at work: wait until it has ended")
}
