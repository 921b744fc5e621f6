//! The file of hosts and logins that the manager mounts.

use std::{fmt, path::Path};

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// All hosts of the cluster, in the order of the file.
#[derive(Debug)]
pub struct Hosts(Vec<Host>);

/// One host.
#[derive(Clone, Debug, Deserialize)]
pub struct Host {
    /// The name of its BareMetalHost.
    pub name: String,
    /// How its BMC is reached.
    pub bmc: Bmc,
}

/// A BMC. The original wrote `ip`, `username` and `password`; the rest is ours and optional.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bmc {
    /// Host and port of the address.
    #[serde(default)]
    pub ip: String,
    /// The whole `bmc.address` of the BareMetalHost.
    #[serde(default)]
    pub address: Option<String>,
    /// Absent when the cluster's owner did not expose the BMC to the jump host.
    #[serde(default)]
    pub username: Option<String>,
    /// As `username`.
    #[serde(default)]
    pub password: Option<String>,
    /// As in the BareMetalHost; true when absent.
    #[serde(default = "unverified")]
    pub disable_certificate_verification: bool,
}

fn unverified() -> bool {
    true
}

/// Never prints the login.
impl fmt::Debug for Bmc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bmc").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Bmc {
    /// The address to dial: the full one if the file has it, else only the host part.
    pub fn address(&self) -> &str {
        self.address.as_deref().filter(|address| !address.is_empty()).unwrap_or(&self.ip)
    }
}

impl Hosts {
    /// Reads the file. The error never quotes its content.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let hosts = serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            anyhow::anyhow!("{} is not a list of hosts (line {line}, column {column})", path.display())
        })?;
        Ok(Hosts(hosts))
    }

    /// In the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.0.iter()
    }

    /// The host of this name.
    pub fn find(&self, name: &str) -> anyhow::Result<&Host> {
        match self.0.iter().find(|host| host.name == name) {
            Some(host) => Ok(host),
            None => bail!("no host is called {name}; `host list` prints the names"),
        }
    }
}
