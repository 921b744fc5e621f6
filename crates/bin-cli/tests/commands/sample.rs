//! Manifests for the tests, as small as they can be.

/// A SIPCluster of namespace `tenants` with so many hosts of role ControlPlane, one per rack.
pub fn cluster(name: &str, hosts: u32) -> String {
    let spec = format!(
        "nodes: {{ControlPlane: {{labelSelector: {{matchLabels: {{flavor: cp}}}}, topologyKey: rack, count: {{active: {hosts}}}}}}}, services: {{}}"
    );
    with_spec(name, &spec)
}

/// A SIPCluster of namespace `tenants` with this spec.
pub fn with_spec(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: airship.airshipit.org/v1\nkind: SIPCluster\nmetadata: {{name: {name}, namespace: tenants}}\nspec: {{{spec}}}\n"
    )
}

/// A host of namespace `metal3` for role ControlPlane in a rack.
pub fn host(name: &str, rack: &str) -> String {
    host_with(name, rack, "")
}

/// The same with more of its metadata, beginning with a comma.
pub fn host_with(name: &str, rack: &str, metadata: &str) -> String {
    format!(
        "---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {{name: {name}, namespace: metal3, labels: {{flavor: cp, rack: {rack}}}{metadata}}}\nspec: {{bmc: {{credentialsName: {name}-bmc}}, networkData: {{name: {name}-net}}}}\n"
    )
}

/// The Secrets of a host: credentials, and an address in network `oam`.
pub fn secrets(host: &str, address: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {host}-bmc, namespace: metal3}}\ndata: {{username: cm9vdA==, password: aHVudGVyMg==}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {host}-net, namespace: metal3}}\nstringData: {{networkData: '{{\"networks\": [{{\"id\": \"oam\", \"ip_address\": \"{address}\"}}]}}'}}\n"
    )
}

/// A host that the labels say belongs to `tenants/<cluster>`; `used`: somebody consumes it.
pub fn claimed(name: &str, rack: &str, cluster: &str, used: bool) -> String {
    let consumer = if used { ", consumerRef: {kind: Metal3Machine, namespace: m, name: x}" } else { "" };
    format!(
        "---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {{name: {name}, namespace: metal3, labels: {{flavor: cp, rack: {rack}, sip.airshipit.org/cluster-namespace: tenants, sip.airshipit.org/cluster-name: {cluster}, sip.airshipit.org/node-type: ControlPlane}}}}\nspec: {{bmc: {{credentialsName: {name}-bmc}}{consumer}}}\n"
    )
}
