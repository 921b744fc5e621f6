//! Everything that CI runs, the least powerful test first, and a table of it at the end.

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    bmc, config,
    context::{self, Cx},
    down, egress_test, generated, gobuild, layers, packages, real_api, up,
};

/// What this machine's hardware cannot show, and what shows it instead.
const NOT_SHOWN: [(&str, &str); 2] = [
    ("a second physical machine", "the hosts are network namespaces with addresses, routes and cables of their own"),
    ("Metal3 provisioning real hardware", "its CRD is the real one, its part of the life of a host is played by tests"),
];

/// The file that marks a crate's tests as ones for a real API server. They are behind the feature `real-api`.
const REAL_API: &str = "real_api";
/// The crate with the tests of the whole system, which want the local stack.
const SYSTEM: &str = "tests";

/// Tells what the tests of the whole system start that the stack is locked for them already.
pub const HOLDS_THE_LOCK: &str = "SLIPWAY_STACK_IS_LOCKED";

struct Stage {
    name: String,
    time: Duration,
    ok: bool,
}

/// Runs all stages until one fails. With `keep`, leaves the stack up at the end.
pub fn test(cx: &Cx, keep: bool) -> Result<()> {
    let mut stages = Vec::new();
    let outcome = run(cx, keep, &mut stages);
    table(&stages, outcome.is_ok());
    outcome
}

fn run(cx: &Cx, keep: bool, stages: &mut Vec<Stage>) -> Result<()> {
    let mut stage = |name: &str, work: &mut dyn FnMut() -> Result<()>| {
        eprintln!("\n==> {name}");
        let began = Instant::now();
        let outcome = work();
        stages.push(Stage { name: name.to_owned(), time: began.elapsed(), ok: outcome.is_ok() });
        outcome.with_context(|| format!("stage `{name}`"))
    };
    stage("machine", &mut || {
        context::require_root()?;
        packages::ensure(cx)?;
        gobuild::programs(cx)?;
        bmc::install(cx)?;
        gobuild::metal3_crd(cx).map(drop)
    })?;
    stage("format", &mut || cargo(cx, &["fmt", "--all", "--check"]))?;
    stage("layers", &mut || layers::check(cx))?;
    stage("generated files", &mut || generated::generate(cx, true))?;
    stage("clippy", &mut || {
        cargo(cx, &["clippy", "--workspace", "--all-targets", "--all-features", "--locked", "--", "-D", "warnings"])
    })?;
    stage("unit tests", &mut || cargo(cx, &["test", "--workspace", "--locked"]))?;
    stage("downloads through a proxy", &mut || egress_test::test(cx))?;
    for member in with_real_api(cx)? {
        stage(&format!("{member} on a real API server"), &mut || {
            let words = ["cargo", "test", "--locked", "-p", &member, "--features", "real-api", "--test", REAL_API];
            real_api::run(cx, &words.map(OsString::from))
        })?;
    }
    stage("virtual machines on real libvirt and QEMU", &mut || {
        // The tests start a libvirtd of their own, in namespaces of its own.
        cargo(cx, &["test", "--locked", "-p", "io-libvirt", "--features", "real-libvirt", "--test", "real"])
    })?;
    stage("login at a real Dex", &mut || {
        let dex = gobuild::dex(cx)?;
        let mut test = command(cx, &["test", "--locked", "-p", "bin-cli", "--features", "real-dex", "--test", "dex"]);
        succeed(test.env("SLIPWAY_DEX", dex))
    })?;
    stage("local stack up", &mut || {
        let stack = Cx::new(&config::state("log"))?;
        up::up(&stack, false)
    })?;
    if cx.repo.join(SYSTEM).join("Cargo.toml").exists() {
        stage("whole system", &mut || {
            let manifest = cx.repo.join(SYSTEM).join("Cargo.toml");
            // The tests run `slipway` as people do: by its name.
            cargo(cx, &["build", "--locked", "-p", "bin-cli"])?;
            let mut test = command(cx, &["test", "--locked", "--features", "local-stack", "--manifest-path"]);
            test.arg(manifest).arg("--").arg("--test-threads=1").env("KUBECONFIG", cx.kubeconfig());
            test.env(HOLDS_THE_LOCK, "1");
            succeed(&mut test)
        })?;
    }
    if !keep {
        stage("local stack down", &mut || {
            down::down(cx)?;
            leftovers()
        })?;
    }
    Ok(())
}

/// The crates with tests for a real API server.
fn with_real_api(cx: &Cx) -> Result<Vec<String>> {
    let mut members = Vec::new();
    for entry in fs::read_dir(cx.repo.join("crates"))? {
        let dir = entry?.path();
        let test = dir.join("tests").join(REAL_API);
        if test.with_extension("rs").exists() || test.join("main.rs").exists() {
            members.extend(dir.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    members.sort();
    Ok(members)
}

/// Fails when `down` left something.
fn leftovers() -> Result<()> {
    let mut left: Vec<PathBuf> = [config::STATE, config::RUN, config::LOCK].map(PathBuf::from).into();
    left.extend([config::HOSTS_BRIDGE, config::POD_BRIDGE].map(|link| PathBuf::from("/sys/class/net").join(link)));
    left.retain(|path| path.exists() && path != std::path::Path::new(config::LOCK));
    if left.is_empty() {
        return Ok(());
    }
    bail!("`make down` left {left:?}")
}

fn command(cx: &Cx, args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(&cx.repo);
    cargo
}

fn cargo(cx: &Cx, args: &[&str]) -> Result<()> {
    succeed(&mut command(cx, args))
}

fn succeed(command: &mut Command) -> Result<()> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let status = command.status().context("cannot start cargo")?;
    if status.success() { Ok(()) } else { bail!("`cargo {}` ended with {status}", words.join(" ")) }
}

fn table(stages: &[Stage], all: bool) {
    println!("\n{:<44} {:>8}", "stage", "time");
    for Stage { name, time, ok } in stages {
        println!("{name:<44} {:>7.1}s  {}", time.as_secs_f64(), if *ok { "ok" } else { "FAILED" });
    }
    let total: Duration = stages.iter().map(|stage| stage.time).sum();
    println!("{:<44} {:>7.1}s", "total", total.as_secs_f64());
    if all {
        println!("\nnot shown on this machine:");
        for (what, instead) in NOT_SHOWN {
            println!("  {what}: {instead}");
        }
    }
}
