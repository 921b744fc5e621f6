//! Talks to a cluster through kubectl.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::step::{Step, command};

/// kubectl with a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Kubectl {
    /// For the cluster of this kubeconfig.
    pub fn new(program: &Path, kubeconfig: &Path) -> Self {
        Self { program: program.to_owned(), kubeconfig: Some(kubeconfig.to_owned()) }
    }

    /// For the cluster that the environment names.
    pub fn of_environment(program: &Path) -> Self {
        Self { program: program.to_owned(), kubeconfig: None }
    }

    /// The same program for another cluster.
    pub fn with(&self, kubeconfig: &Path) -> Self {
        Self::new(&self.program, kubeconfig)
    }

    /// The command `kubectl` with these words.
    pub fn command(&self, line: &str) -> Command {
        let mut kubectl = command(&self.program, line.split(' '));
        if let Some(kubeconfig) = &self.kubeconfig {
            kubectl.env("KUBECONFIG", kubeconfig);
        }
        kubectl
    }

    /// Whether the API server answers its readiness endpoint with ok.
    pub fn ready(&self) -> bool {
        let mut kubectl = self.command("get --raw /readyz --request-timeout=3s");
        kubectl.stdin(Stdio::null()).stderr(Stdio::null());
        kubectl.output().is_ok_and(|output| output.stdout == b"ok")
    }

    /// Whether a component with a certificate of its own answers `/healthz` on this port of 127.0.0.1.
    pub fn healthy_at(&self, port: u16) -> bool {
        let line = format!(
            "--server=https://127.0.0.1:{port} --insecure-skip-tls-verify get --raw /healthz --request-timeout=3s"
        );
        let mut kubectl = self.command(&line);
        kubectl.stdin(Stdio::null()).stderr(Stdio::null());
        kubectl.output().is_ok_and(|output| output.stdout == b"ok")
    }

    /// Runs kubectl; its output goes to the step's log.
    pub fn run(&self, step: &Step, line: &str) -> Result<()> {
        step.run(&mut self.command(line))
    }

    /// Runs kubectl with a path as its last word.
    pub fn run_on(&self, step: &Step, line: &str, path: &Path) -> Result<()> {
        step.run(self.command(line).arg(path))
    }

    /// What kubectl prints.
    pub fn output(&self, step: &Step, line: &str) -> Result<String> {
        step.output(&mut self.command(line))
    }

    /// What kubectl prints, as JSON.
    pub fn json(&self, step: &Step, line: &str) -> Result<Value> {
        let text = self.output(step, &format!("{line} --output=json"))?;
        serde_json::from_str(&text).with_context(|| format!("`kubectl {line}` printed no JSON"))
    }

    /// Applies manifests, server-side, so that a second run changes nothing.
    pub fn apply(&self, step: &Step, manifests: &str) -> Result<()> {
        let line = "apply --server-side --force-conflicts --field-manager=slipway-local-stack --filename=-";
        step.feed(&mut self.command(line), manifests).map(drop)
    }

    /// Waits until `line` (a `kubectl get`) prints something for which `ready` holds.
    pub fn wait(
        &self,
        step: &Step,
        what: &str,
        limit: Duration,
        line: &str,
        ready: impl Fn(&str) -> bool,
    ) -> Result<()> {
        step.wait(what, limit, || {
            let output = self.command(line).stdin(Stdio::null()).output()?;
            Ok(ready(&String::from_utf8_lossy(&output.stdout)).then_some(()))
        })
    }
}
