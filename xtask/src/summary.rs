//! The last words of `up`: the tenant, its hosts, its endpoints, and commands to try.

use anyhow::Result;
use serde_json::Value;

use crate::{
    config::{TENANT_NAME, TENANT_NAMESPACE},
    context::Cx,
    example,
    kube::Kubectl,
};

/// The user of `examples/quickstart.yaml`, as people type it.
const EXAMPLE_USER: &str = "ada@example.org, password slipway-demo";

/// Prints what came to be.
pub fn print(cx: &Cx, kubectl: &Kubectl) -> Result<()> {
    let mut object = Value::Null;
    cx.steps.run("summary", |step| {
        object = example::sipcluster(step, kubectl)?;
        Ok("below")
    })?;
    println!("\n{}", text(cx, &object));
    Ok(())
}

fn text(cx: &Cx, object: &Value) -> String {
    let status = &object["status"];
    let mut lines = vec![format!("Tenant {TENANT_NAMESPACE}/{TENANT_NAME}"), String::new(), "  hosts".into()];
    for host in list(&status["hosts"]) {
        let domains: Vec<&str> =
            host["domains"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
        let addresses: Vec<&str> =
            host["addresses"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
        lines.push(format!(
            "    {:<18} {:<13} {:<14} {}",
            word(host, "name"),
            word(host, "role"),
            addresses.join(","),
            domains.join(",")
        ));
    }
    lines.push(String::new());
    lines.push("  endpoints".into());
    let endpoints = &status["endpoints"];
    for (kind, what) in
        [("controlPlane", "API"), ("worker", "node ports"), ("jumpHost", "jump host"), ("auth", "login")]
    {
        for endpoint in list(&endpoints[kind]) {
            let range = endpoint["lastPort"].as_i64().map(|last| format!("-{last}")).unwrap_or_default();
            lines.push(format!("    {what:<11} {}:{}{range}", word(endpoint, "host"), endpoint["port"]));
        }
    }
    lines.extend([String::new(), "Try".into()]);
    lines.extend(commands(cx, endpoints).into_iter().map(|command| format!("  {command}")));
    lines.join("\n")
}

/// What can be pasted.
fn commands(cx: &Cx, endpoints: &Value) -> Vec<String> {
    let mut commands = vec![
        format!("export PATH={}:$PATH KUBECONFIG={}", cx.tools().display(), cx.kubeconfig().display()),
        format!("kubectl get sipclusters,baremetalhosts --all-namespaces"),
        format!("slipway explain {TENANT_NAMESPACE}/{TENANT_NAME}"),
    ];
    if let Some(api) = list(&endpoints["controlPlane"]).next() {
        commands.push(format!("curl --insecure https://{}:{}/version", word(api, "host"), api["port"]));
    }
    if let Some(worker) = list(&endpoints["worker"]).next() {
        commands.push(format!("curl http://{}:{}/", word(worker, "host"), worker["port"]));
    }
    if let Some(jump) = list(&endpoints["jumpHost"]).next() {
        let key = example::login_key(cx);
        commands.push(format!(
            "ssh -i {} -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={} -p {} ubuntu@{} /opt/sip/bin/host list",
            key.display(),
            key.with_file_name("known_hosts").display(),
            jump["port"],
            word(jump, "host")
        ));
    }
    if list(&endpoints["auth"]).next().is_some() {
        commands.push(format!("slipway kubeconfig {TENANT_NAMESPACE}/{TENANT_NAME} > edge.kubeconfig"));
        commands.push(format!(
            "kubectl --kubeconfig edge.kubeconfig get namespaces    # opens a browser: {EXAMPLE_USER}; on a server see README.md"
        ));
    }
    commands
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}
