//! What the manager is told on its command line and in its environment.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, ValueEnum};

/// Takes bare-metal hosts to tenant Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "manager", version)]
pub struct Options {
    /// Which capabilities run.
    #[arg(long, value_delimiter = ',', default_value = "sip")]
    pub controllers: Vec<Capability>,

    /// Where metrics and probes are served.
    #[arg(long, default_value = "[::]:8080", value_parser = address)]
    pub metrics_addr: SocketAddr,

    /// Accepted for manifests of the original operator: leaders are always elected.
    #[arg(long, hide = true)]
    pub enable_leader_election: bool,

    /// Namespace of this installation: its lease and its HAProxy templates lie there.
    #[arg(long, env = "POD_NAMESPACE", default_value = "slipway-system")]
    pub namespace: String,

    /// Name of this process in leases.
    #[arg(long, env = "POD_NAME", default_value = "manager")]
    pub pod_name: String,

    /// Namespace in which the original SIP operator may run: its lease is held too, so that the two never run together.
    #[arg(long, env = "SLIPWAY_ORIGINAL_NAMESPACE")]
    pub original_namespace: Option<String>,

    /// Namespaces whose hosts every SIPCluster may take, beside those of its own namespace; `*` for all.
    #[arg(long, env = "SLIPWAY_HOST_NAMESPACES", value_delimiter = ',', default_value = "vino-system")]
    pub host_namespaces: Vec<String>,

    /// How many seconds a released host is nobody's.
    #[arg(long, env = "SLIPWAY_QUARANTINE_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(i64).range(0..=86400))]
    pub quarantine_seconds: i64,

    /// HAProxy, where an entry of a SIPCluster names no image.
    #[arg(long, env = "SLIPWAY_HAPROXY_IMAGE", default_value = "haproxy:2.3.2")]
    pub haproxy_image: String,

    /// Our own image: the sidecar of the load balancers.
    #[arg(long, env = "SLIPWAY_IMAGE", default_value = "slipway.local/slipway:dev")]
    pub slipway_image: String,

    /// The jump host, where an entry of a SIPCluster names no image.
    #[arg(long, env = "SLIPWAY_JUMP_HOST_IMAGE", default_value = "")]
    pub jump_host_image: String,

    /// Dex, where an entry of a SIPCluster names no image; empty: every entry has to name one.
    #[arg(long, env = "SLIPWAY_DEX_IMAGE", default_value = "")]
    pub dex_image: String,

    /// Kubeconfig; default: KUBECONFIG, the usual file, or, in a pod, its service account.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,

    /// How the log is written to standard error.
    #[arg(long, env = "SLIPWAY_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// A capability of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Capability {
    /// SIPClusters.
    Sip,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line each, for people.
    Text,
    /// One JSON object each, for programs.
    Json,
}

/// `:8080`, as the original takes it, means every address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    whole.parse().map_err(|_| "not an address and port, such as [::]:8080 or :8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_original_operator_are_understood() {
        let options =
            Options::try_parse_from(["manager", "--metrics-addr=:9090", "--enable-leader-election"]).expect("parses");
        assert_eq!(options.metrics_addr.port(), 9090);
    }

    #[test]
    fn the_options_are_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }
}
