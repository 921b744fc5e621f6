//! What the tenant's API server needs to trust the provider, in the forms in which API servers are configured.

use serde_json::{Value, json};

use super::config::{CLIENT, quoted};

/// Where the flags and the patches expect the CA certificate on the tenant's control-plane machines.
const CA_DIRECTORY: &str = "/etc/kubernetes/oidc";

/// One provider as its tenant's API server sees it.
pub(super) struct Trust<'a> {
    /// The issuer's URL.
    pub issuer: &'a str,
    /// CA of its certificate, PEM.
    pub ca: &'a str,
    /// Prefix of user names.
    pub username_prefix: &'a str,
    /// Prefix of groups.
    pub groups_prefix: &'a str,
}

impl Trust<'_> {
    /// Data of the ConfigMap.
    pub fn data(&self) -> Value {
        json!({
            "ca.crt": self.ca,
            "flags": concat(self.flags().iter().map(|(name, value)| format!("--{name}={value}\n"))),
            "authentication-config.yaml": self.authentication_config("v1"),
            "authentication-config-v1beta1.yaml": self.authentication_config("v1beta1"),
            "kubeadm-patch.yaml": self.kubeadm_patch(false),
            "kubeadm-patch-v1beta2.yaml": self.kubeadm_patch(true),
        })
    }

    /// The flags of API servers before structured configuration. An empty prefix is `-` for user names (an absent one
    /// would mean the issuer) and an absent flag for groups.
    fn flags(&self) -> Vec<(&'static str, String)> {
        let username_prefix = if self.username_prefix.is_empty() { "-" } else { self.username_prefix };
        let mut flags = vec![
            ("oidc-issuer-url", self.issuer.to_owned()),
            ("oidc-client-id", CLIENT.to_owned()),
            ("oidc-username-claim", "email".to_owned()),
            ("oidc-username-prefix", username_prefix.to_owned()),
            ("oidc-groups-claim", "groups".to_owned()),
            ("oidc-ca-file", format!("{CA_DIRECTORY}/ca.crt")),
        ];
        if !self.groups_prefix.is_empty() {
            flags.push(("oidc-groups-prefix", self.groups_prefix.to_owned()));
        }
        flags
    }

    /// `version`: `v1` from Kubernetes 1.34 on, `v1beta1` from 1.30 on. Names of Kubernetes itself are refused, so that
    /// no directory of users can make somebody `system:masters`.
    fn authentication_config(&self, version: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/{version}\n\
             kind: AuthenticationConfiguration\n\
             jwt:\n\
             - issuer:\n\
             \x20   url: {issuer}\n\
             \x20   audiences:\n\
             \x20   - {CLIENT}\n\
             \x20   certificateAuthority: |\n{ca}\
             \x20 claimMappings:\n\
             \x20   username:\n\
             \x20     claim: email\n\
             \x20     prefix: {username_prefix}\n\
             \x20   groups:\n\
             \x20     claim: groups\n\
             \x20     prefix: {groups_prefix}\n\
             \x20 userValidationRules:\n\
             \x20 - expression: \"!user.username.startsWith('system:')\"\n\
             \x20   message: user names of Kubernetes itself are not for people\n\
             \x20 - expression: \"user.groups.all(group, !group.startsWith('system:'))\"\n\
             \x20   message: groups of Kubernetes itself are not for people\n",
            issuer = quoted(self.issuer),
            ca = indented(self.ca, 6),
            username_prefix = quoted(self.username_prefix),
            groups_prefix = quoted(self.groups_prefix),
        )
    }

    /// To be merged into a KubeadmControlPlane. Its `extraArgs` are a map up to v1beta1 of Cluster API (and up to
    /// v1beta3 of kubeadm), a list since.
    fn kubeadm_patch(&self, list: bool) -> String {
        let version = if list { "v1beta2" } else { "v1beta1" };
        let argument = |(name, value): &(&str, String)| {
            let value = quoted(value);
            if list {
                format!("        - name: {name}\n          value: {value}\n")
            } else {
                format!("          {name}: {value}\n")
            }
        };
        format!(
            "apiVersion: controlplane.cluster.x-k8s.io/{version}\n\
             kind: KubeadmControlPlane\n\
             spec:\n\
             \x20 kubeadmConfigSpec:\n\
             \x20   files:\n\
             \x20   - path: {CA_DIRECTORY}/ca.crt\n\
             \x20     owner: root:root\n\
             \x20     permissions: \"0644\"\n\
             \x20     content: |\n{ca}\
             \x20   clusterConfiguration:\n\
             \x20     apiServer:\n\
             \x20       extraArgs:\n{arguments}\
             \x20       extraVolumes:\n\
             \x20       - name: oidc\n\
             \x20         hostPath: {CA_DIRECTORY}\n\
             \x20         mountPath: {CA_DIRECTORY}\n\
             \x20         pathType: DirectoryOrCreate\n\
             \x20         readOnly: true\n",
            ca = indented(self.ca, 8),
            arguments = concat(self.flags().iter().map(argument)),
        )
    }
}

fn indented(text: &str, by: usize) -> String {
    concat(text.lines().map(|line| format!("{:by$}{line}\n", "")))
}

fn concat(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().concat()
}
