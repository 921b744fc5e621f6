//! Certificates and kubeconfigs of a control plane, written by kubeadm's own phases.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    config::KUBERNETES,
    files,
    step::{Step, command},
};

/// kubeadm's certificates are good for a year: they are made anew well before.
const RENEW_AFTER: Duration = Duration::from_hours(300 * 24);

/// Files shared by all members of one control plane.
const SHARED: [&str; 8] =
    ["ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key", "etcd/ca.crt", "etcd/ca.key"];

/// One member of a control plane, as its certificates name it.
pub struct Pki {
    /// Where the certificates (`pki/`) and kubeconfigs lie.
    pub dir: PathBuf,
    /// The cluster's name.
    pub cluster: String,
    /// The member's name.
    pub node: String,
    /// The member's address.
    pub address: String,
    /// The port of its API server.
    pub port: u16,
    /// More names and addresses under which the API server is asked.
    pub sans: Vec<String>,
    /// The cluster's pods.
    pub pods: &'static str,
    /// The cluster's services.
    pub services: &'static str,
}

impl Pki {
    /// A file among the certificates.
    pub fn cert(&self, file: &str) -> PathBuf {
        self.dir.join("pki").join(file)
    }

    /// The kubeconfig with all rights.
    pub fn admin(&self) -> PathBuf {
        self.dir.join("super-admin.conf")
    }

    /// Makes what is missing or old; with `first`, from the authorities of that member.
    pub fn ensure(&self, step: &Step, kubeadm: &Path, first: Option<&Pki>) -> Result<()> {
        fs::create_dir_all(self.cert("etcd"))?;
        let config = self.dir.join("kubeadm.yaml");
        // JSON is YAML: kubeadm takes documents of it, one after the other.
        let documents: Vec<String> =
            self.config().iter().map(serde_json::to_string_pretty).collect::<Result<_, _>>()?;
        let text = documents.join("\n---\n");
        let changed = fs::read_to_string(&config).ok().as_ref() != Some(&text);
        if changed || self.old() {
            self.forget_leaves()?;
        }
        if let Some(first) = first.filter(|first| first.dir != self.dir) {
            for file in SHARED {
                fs::copy(first.cert(file), self.cert(file))
                    .with_context(|| format!("no {file} at the first member"))?;
            }
        }
        let done = self.dir.join("complete");
        if done.exists() {
            return Ok(());
        }
        files::write(&config, &text)?;
        let (yaml, dir) = (config.to_string_lossy(), self.dir.to_string_lossy());
        step.run(&mut command(kubeadm, ["init", "phase", "certs", "all", "--config", &yaml]))?;
        step.run(&mut command(
            kubeadm,
            ["init", "phase", "kubeconfig", "all", "--config", &yaml, "--kubeconfig-dir", &dir],
        ))?;
        let args = ["kubeconfig", "user", "--client-name", "system:kube-proxy", "--config", &yaml];
        let proxy = step.output(&mut command(kubeadm, args))?;
        files::write_private(&self.dir.join("kube-proxy.conf"), &proxy)?;
        fs::write(done, "")?;
        Ok(())
    }

    fn config(&self) -> Vec<serde_json::Value> {
        let version = "kubeadm.k8s.io/v1beta4";
        // kubeadm takes no loopback address here; the certificates also name the real one, under which the server is asked.
        let advertised = if self.address.starts_with("127.") { "192.0.2.1" } else { &self.address };
        let names = [&[self.node.clone(), self.address.clone()], &self.sans[..]].concat();
        vec![
            json!({
                "apiVersion": version,
                "kind": "InitConfiguration",
                "localAPIEndpoint": { "advertiseAddress": advertised, "bindPort": self.port },
                "nodeRegistration": { "name": self.node, "criSocket": "unix:///none" },
            }),
            json!({
                "apiVersion": version,
                "kind": "ClusterConfiguration",
                "clusterName": self.cluster,
                "kubernetesVersion": KUBERNETES,
                "certificatesDir": self.dir.join("pki"),
                "controlPlaneEndpoint": format!("{}:{}", self.address, self.port),
                "networking": { "podSubnet": self.pods, "serviceSubnet": self.services },
                "apiServer": { "certSANs": names },
                "etcd": { "local": {
                    "dataDir": self.dir.join("etcd"),
                    "serverCertSANs": names,
                    "peerCertSANs": names,
                } },
            }),
        ]
    }

    fn old(&self) -> bool {
        let made = fs::metadata(self.cert("apiserver.crt")).and_then(|data| data.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > RENEW_AFTER))
    }

    /// Removes everything but the authorities, so that kubeadm makes it anew.
    fn forget_leaves(&self) -> Result<()> {
        let mut files = Vec::new();
        for dir in [self.dir.clone(), self.cert(""), self.cert("etcd")] {
            files.extend(fs::read_dir(&dir)?.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
        }
        for file in files {
            let authority = SHARED.iter().any(|shared| file == self.cert(shared));
            if !authority {
                fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
            }
        }
        Ok(())
    }
}
