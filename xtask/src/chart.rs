//! The Helm chart: the manifests of `deploy/`, in which what an installation may choose is named.
//!
//! Each choice is a piece of a manifest and the expression that takes its place. A piece that is not found exactly as often
//! as it should be is an error, so the chart cannot fall behind the manifests without anybody noticing.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};

/// Where the chart lies in the checkout.
const CHART: &str = "deploy/chart";
/// The namespace of the kustomization; a release brings its own.
const NAMESPACE: &str = "slipway-system";

/// File, piece, what takes its place.
const CHOICES: [(&str, &str, &str); 11] = [
    ("manager.yaml", "  replicas: 1\n", "  replicas: {{ .Values.replicas }}\n"),
    ("manager.yaml", "image: slipway.local/slipway:dev\n", "image: {{ quote .Values.images.slipway }}\n"),
    ("manager.yaml", "value: vino-system }", "value: {{ join \",\" .Values.hostNamespaces | quote }} }"),
    (
        "manager.yaml",
        "name: SLIPWAY_IMAGE, value: \"slipway.local/slipway:dev\" }",
        "name: SLIPWAY_IMAGE, value: {{ quote .Values.images.slipway }} }",
    ),
    (
        "manager.yaml",
        "name: SLIPWAY_HAPROXY_IMAGE, value: \"docker.io/library/haproxy:3.2\" }",
        "name: SLIPWAY_HAPROXY_IMAGE, value: {{ quote .Values.images.haproxy }} }",
    ),
    (
        "manager.yaml",
        "name: SLIPWAY_JUMP_HOST_IMAGE, value: \"slipway.local/jump-host:dev\" }",
        "name: SLIPWAY_JUMP_HOST_IMAGE, value: {{ quote .Values.images.jumpHost }} }",
    ),
    (
        "manager.yaml",
        "name: SLIPWAY_DEX_IMAGE, value: \"\" }",
        "name: SLIPWAY_DEX_IMAGE, value: {{ quote .Values.images.dex }} }",
    ),
    (
        "manager.yaml",
        "            - { name: SLIPWAY_QUARANTINE_SECONDS, value: \"60\" }\n",
        "            - { name: SLIPWAY_QUARANTINE_SECONDS, value: {{ quote .Values.quarantineSeconds }} }\n\
         {{- range $name, $value := .Values.env }}\n            - { name: {{ $name }}, value: {{ quote $value }} }\n{{- end }}\n",
    ),
    (
        "manager.yaml",
        "          resources:\n            requests: { cpu: 20m, memory: 32Mi }\n            limits: { memory: 256Mi }\n",
        "          resources: {{ toJson .Values.resources }}\n",
    ),
    (
        "manager.yaml",
        "      serviceAccountName: slipway-manager\n",
        "      serviceAccountName: slipway-manager\n{{- with .Values.imagePullSecrets }}\n      imagePullSecrets: {{ toJson . }}\n{{- end }}\n",
    ),
    (
        "policy/claims.yaml",
        "  hostAdmins: |\n    slipway:host-admins\n    kubeadm:cluster-admins\n    system:masters\n",
        "  hostAdmins: {{ printf \"%s\\n\" (join \"\\n\" .Values.hostAdmins) | quote }}\n",
    ),
];

/// What the pieces above choose in the kustomization, and what only a chart can do.
const VALUES: &str = r#"# What an installation chooses; docs/guides/install.md says what each means. Made by `cargo xtask gen`.

# Managers: one leads, the others stand by.
replicas: 1

images:
  # The manager, and the sidecar of load balancers.
  slipway: "slipway.local/slipway:dev"
  # What serves tenants whose SIPCluster names no image; empty: each has to.
  haproxy: "docker.io/library/haproxy:3.2"
  jumpHost: "slipway.local/jump-host:dev"
  dex: ""
imagePullSecrets: []

# Namespaces whose hosts every SIPCluster may take, beside those of its own.
hostNamespaces: [vino-system]

# Namespaces that the manager may work in; they have to exist.
grants:
  # Where hosts lie: their Secrets are read.
  hosts: []
  # Where SIPClusters lie: their services are made.
  tenants: []

# Seconds for which a released host is nobody's.
quarantineSeconds: 60

# Further variables of the manager: SLIPWAY_ORIGINAL_NAMESPACE, SLIPWAY_LOG_FORMAT, HTTPS_PROXY, ...
env: {}

# Groups that may give up hosts in use.
hostAdmins: ["slipway:host-admins", "kubeadm:cluster-admins", "system:masters"]

resources:
  requests: { cpu: 20m, memory: 32Mi }
  limits: { memory: 256Mi }
"#;

/// The rights in namespaces, which the kustomization leaves to a command.
const GRANTS: &str = r#"{{- range $role, $namespaces := dict "slipway-hosts" .Values.grants.hosts "slipway-tenant" .Values.grants.tenants }}
{{- range $namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $role }}
  namespace: {{ . }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $role }} }
subjects:
  - { kind: ServiceAccount, name: slipway-manager, namespace: {{ $.Release.Namespace }} }
{{- end }}
{{- end }}
"#;

const NOTES: &str = r"Slipway {{ .Chart.AppVersion }} runs in namespace {{ .Release.Namespace }}.

Its pods keep Pod Security `restricted`:
  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
{{- if not .Values.grants.tenants }}

It may not work in any tenant's namespace yet: list them in `grants.tenants`, those of hosts in `grants.hosts`.
{{- end }}

Helm never changes a definition that is there. Before an upgrade: kubectl apply --server-side -f deploy/crds
";

/// Every file of the chart: path in the checkout, content.
pub fn files(repo: &Path) -> Result<Vec<(String, String)>> {
    let read = |path: &str| {
        fs::read_to_string(repo.join("deploy").join(path)).with_context(|| format!("cannot read deploy/{path}"))
    };
    let version = env!("CARGO_PKG_VERSION");
    let about = format!(
        "# Made by `cargo xtask gen` from deploy/kustomization.yaml and what it lists.\napiVersion: v2\nname: slipway\n\
         description: From bare metal to tenant Kubernetes clusters\ntype: application\nversion: {version}\n\
         appVersion: \"{version}\"\nkubeVersion: \">=1.33.0-0\"\n"
    );
    let mut files = vec![
        ("Chart.yaml".to_owned(), about),
        ("values.yaml".to_owned(), VALUES.to_owned()),
        ("templates/NOTES.txt".to_owned(), NOTES.to_owned()),
        ("templates/grants.yaml".to_owned(), GRANTS.to_owned()),
    ];
    for path in resources(&read("kustomization.yaml")?)? {
        let text = read(&path)?;
        ensure!(!text.contains("{{"), "deploy/{path}: two braces would mean something else in the chart");
        // Helm makes the namespace of a release itself.
        if path == "namespace.yaml" {
            continue;
        }
        if path.starts_with("crds/") {
            files.push((path, text));
        } else {
            files.push((format!("templates/{}", path.replace('/', "-")), template(&path, text)?));
        }
    }
    let known = |file: &str| files.iter().any(|(path, _)| *path == format!("templates/{}", file.replace('/', "-")));
    for (file, ..) in CHOICES {
        ensure!(known(file), "deploy/{file} is not in the kustomization, and the chart chooses in it");
    }
    Ok(files.into_iter().map(|(path, text)| (format!("{CHART}/{path}"), text)).collect())
}

/// What a kustomization lists.
fn resources(kustomization: &str) -> Result<Vec<String>> {
    let (_, list) =
        kustomization.split_once("\nresources:\n").context("deploy/kustomization.yaml lists no resources")?;
    let paths = list.lines().map_while(|line| line.strip_prefix("  - ")).map(str::to_owned);
    Ok(paths.collect())
}

fn template(path: &str, mut text: String) -> Result<String> {
    for (_, piece, expression) in CHOICES.into_iter().filter(|(file, ..)| *file == path) {
        let found = text.matches(piece).count();
        if found != 1 {
            bail!("deploy/{path} has {piece:?} {found} times: xtask/src/chart.rs has to follow");
        }
        text = text.replace(piece, expression);
    }
    Ok(text.replace(NAMESPACE, "{{ .Release.Namespace }}"))
}

#[cfg(test)]
mod tests;
