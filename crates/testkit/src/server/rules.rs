//! What single kinds demand and fill in: names, labels, Services' addresses and ports, Secrets, Deployments.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Kind, Refused, State};

/// Fills in what the server fills in, and refuses what it refuses. `before` is none for a creation.
pub(crate) fn settle(state: &State, kind: &Kind, before: Option<&Value>, object: &mut Value) -> Result<(), Refused> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if before.is_none() {
        check_name(kind, &name)?;
    }
    for field in ["labels", "annotations"] {
        for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
            let Some(value) = value.as_str() else {
                return Err(Refused::bad_request(format!("metadata.{field}.{key}: expected string, got {value}")));
            };
            if !base::names::is_label_key(key) || (field == "labels" && !base::names::is_label_value(value)) {
                let why = format!("Invalid value: {:?}", if field == "labels" { value } else { key });
                return Err(Refused::invalid(kind, &name, &format!("metadata.{field}"), &why));
            }
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => service(state, kind, before, object, &name),
        ("", "Secret") => secret(kind, before, object, &name),
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => workload(kind, before, object, &name),
        _ => Ok(()),
    }
}

/// Sources: RFC 1123 subdomains, RFC 1035 labels for Services, RFC 1123 labels for Namespaces.
fn check_name(kind: &Kind, name: &str) -> Result<(), Refused> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label =
        |text: &str| text.starts_with(letter) && text.ends_with(letter) && text.chars().all(|c| letter(c) || c == '-');
    let service = kind.group.is_empty() && kind.kind == "Service";
    let rbac = kind.group == "rbac.authorization.k8s.io";
    let fine = match kind.kind.as_str() {
        _ if rbac => !name.contains(['/', '%']),
        _ if service => label(name) && name.len() <= 63 && name.starts_with(|c: char| c.is_ascii_lowercase()),
        "Namespace" => label(name) && name.len() <= 63,
        _ => name.len() <= 253 && name.split('.').all(label),
    };
    let why = if service {
        format!(
            "Invalid value: {name:?}: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character"
        )
    } else {
        format!(
            "Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        )
    };
    if name.is_empty() {
        return Err(Refused::invalid(kind, name, "metadata.name", "Required value: name or generateName is required"));
    }
    if fine { Ok(()) } else { Err(Refused::invalid(kind, name, "metadata.name", &why)) }
}

fn secret(kind: &Kind, before: Option<&Value>, object: &mut Value, name: &str) -> Result<(), Refused> {
    if let Some(Value::Object(plain)) = object.as_object_mut().and_then(|fields| fields.remove("stringData")) {
        for (key, value) in plain {
            object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
        }
    }
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        if value.as_str().is_none_or(|value| STANDARD.decode(value).is_err()) {
            return Err(Refused::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: data.{key}: illegal base64 data"
            )));
        }
    }
    if object["type"].is_null() {
        object["type"] = json!("Opaque");
    }
    let Some(before) = before else { return Ok(()) };
    if before["type"] != object["type"] {
        let why = format!("Invalid value: {}: field is immutable", object["type"]);
        return Err(Refused::invalid(kind, name, "type", &why));
    }
    if before["immutable"] == true && before["data"] != object["data"] {
        return Err(Refused::invalid(kind, name, "data", "Forbidden: field is immutable when `immutable` is set"));
    }
    Ok(())
}

fn workload(kind: &Kind, before: Option<&Value>, object: &mut Value, name: &str) -> Result<(), Refused> {
    let selector = &object["spec"]["selector"]["matchLabels"];
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let selected =
        selector.as_object().is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(Refused::invalid(kind, name, "spec.selector", "Required value"));
    }
    if !selected {
        let why = format!("Invalid value: {labels}: `selector` does not match template `labels`");
        return Err(Refused::invalid(kind, name, "spec.template.metadata.labels", &why));
    }
    if before.is_some_and(|before| before["spec"]["selector"] != object["spec"]["selector"]) {
        let why = format!("Invalid value: {}: field is immutable", object["spec"]["selector"]);
        return Err(Refused::invalid(kind, name, "spec.selector", &why));
    }
    if kind.kind != "DaemonSet" && object["spec"]["replicas"].is_null() {
        object["spec"]["replicas"] = json!(1);
    }
    Ok(())
}

/// Node ports the server gives by itself. It prefers the upper band, so that fixed ones find room below.
const DYNAMIC: std::ops::RangeInclusive<u64> = 30_086..=32_767;
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30_000..=32_767;

fn service(state: &State, kind: &Kind, before: Option<&Value>, object: &mut Value, name: &str) -> Result<(), Refused> {
    let spec = &mut object["spec"];
    if spec["type"].is_null() {
        spec["type"] = json!("ClusterIP");
    }
    let sort = spec["type"].as_str().unwrap_or_default().to_owned();
    if sort == "ExternalName" {
        return Ok(());
    }
    for (field, default) in
        [("sessionAffinity", "None"), ("internalTrafficPolicy", "Cluster"), ("ipFamilyPolicy", "SingleStack")]
    {
        if spec[field].is_null() {
            spec[field] = json!(default);
        }
    }
    if spec["ipFamilies"].is_null() {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
    ports_are_sound(kind, spec, name)?;
    let mine = object["metadata"]["uid"].clone();
    let others: Vec<&Value> = state.of_kind("Service").filter(|other| other["metadata"]["uid"] != mine).collect();
    cluster_ip(&others, kind, before, object, name)?;
    let spec = &mut object["spec"];
    if sort == "ClusterIP" {
        for port in spec["ports"].as_array_mut().into_iter().flatten() {
            port.as_object_mut().expect("checked above").remove("nodePort");
        }
        return Ok(());
    }
    if spec["externalTrafficPolicy"].is_null() {
        spec["externalTrafficPolicy"] = json!("Cluster");
    }
    node_ports(&others, kind, before, spec, name)
}

fn ports_are_sound(kind: &Kind, spec: &mut Value, name: &str) -> Result<(), Refused> {
    let headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array_mut().map(std::mem::take).unwrap_or_default();
    if ports.is_empty() && !headless {
        return Err(Refused::invalid(kind, name, "spec.ports", "Required value"));
    }
    let mut seen = BTreeSet::new();
    let mut settled = Vec::new();
    for (index, mut port) in ports.iter().cloned().enumerate() {
        let field = |field: &str| format!("spec.ports[{index}].{field}");
        let Some(number) = port["port"].as_u64().filter(|number| (1..=65_535).contains(number)) else {
            let why = format!("Invalid value: {}: must be between 1 and 65535, inclusive", port["port"]);
            return Err(Refused::invalid(kind, name, &field("port"), &why));
        };
        if port["protocol"].is_null() {
            port["protocol"] = json!("TCP");
        }
        if port["targetPort"].is_null() || port["targetPort"] == 0 {
            port["targetPort"] = json!(number);
        }
        if ports.len() > 1 && port["name"].as_str().unwrap_or_default().is_empty() {
            return Err(Refused::invalid(kind, name, &field("name"), "Required value"));
        }
        if !seen.insert((number, port["protocol"].to_string())) {
            return Err(Refused::invalid(kind, name, &format!("spec.ports[{index}]"), "Duplicate value"));
        }
        settled.push(port);
    }
    spec["ports"] = json!(settled);
    Ok(())
}

fn cluster_ip(
    others: &[&Value],
    kind: &Kind,
    before: Option<&Value>,
    object: &mut Value,
    name: &str,
) -> Result<(), Refused> {
    let spec = &mut object["spec"];
    let before = before.map(|before| before["spec"]["clusterIP"].clone()).filter(|ip| !ip.is_null() && *ip != "");
    if let Some(before) = before {
        if spec["clusterIP"].is_null() || spec["clusterIP"] == "" {
            spec["clusterIP"] = before;
        } else if spec["clusterIP"] != before {
            let why = format!("Invalid value: [{}]: may not change once set", spec["clusterIP"]);
            return Err(Refused::invalid(kind, name, "spec.clusterIPs[0]", &why));
        }
    } else {
        let taken: BTreeSet<&str> = others.iter().filter_map(|other| other["spec"]["clusterIP"].as_str()).collect();
        match spec["clusterIP"].as_str().filter(|ip| !ip.is_empty()) {
            Some("None") => {}
            Some(ip) if taken.contains(ip) => {
                let why = format!(
                    "Invalid value: []string{{{ip:?}}}: failed to allocate IP {ip}: provided IP is already allocated"
                );
                return Err(Refused::invalid(kind, name, "spec.clusterIPs", &why));
            }
            Some(_) => {}
            None => {
                let free = (1..=255 * 254_u32).map(|n| format!("10.96.{}.{}", n / 254, n % 254 + 1));
                let ip = free.into_iter().find(|ip| !taken.contains(ip.as_str()));
                spec["clusterIP"] =
                    json!(ip.ok_or_else(|| Refused::internal("failed to allocate a serviceIP: range is full"))?);
            }
        }
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    Ok(())
}

fn node_ports(
    others: &[&Value],
    kind: &Kind,
    before: Option<&Value>,
    spec: &mut Value,
    name: &str,
) -> Result<(), Refused> {
    let used = |service: &Value| -> Vec<(u64, String)> {
        let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ports.iter().filter_map(|port| Some((port["nodePort"].as_u64()?, port["protocol"].to_string()))).collect()
    };
    let mut taken: BTreeSet<(u64, String)> = others.iter().flat_map(|other| used(other)).collect();
    let ports = spec["ports"].as_array_mut().expect("checked before");
    // A PUT that leaves a node port out keeps the one that is there.
    if let Some(old) = before.and_then(|before| before["spec"]["ports"].as_array()) {
        for port in ports.iter_mut().filter(|port| port["nodePort"].as_u64().unwrap_or(0) == 0) {
            let same = |old: &&Value| old["port"] == port["port"] && old["protocol"] == port["protocol"];
            if let Some(kept) = old.iter().find(same).and_then(|old| old["nodePort"].as_u64()) {
                port["nodePort"] = json!(kept);
            }
        }
    }
    for (index, port) in ports.iter_mut().enumerate() {
        let field = format!("spec.ports[{index}].nodePort");
        let protocol = port["protocol"].to_string();
        let Some(asked) = port["nodePort"].as_u64().filter(|asked| *asked != 0) else { continue };
        if !NODE_PORTS.contains(&asked) {
            let why = format!(
                "Invalid value: {asked}: provided port is not in the valid range. The range of valid ports is 30000-32767"
            );
            return Err(Refused::invalid(kind, name, &field, &why));
        }
        if !taken.insert((asked, protocol)) {
            let why = format!("Invalid value: {asked}: provided port is already allocated");
            return Err(Refused::invalid(kind, name, &field, &why));
        }
    }
    for port in ports.iter_mut().filter(|port| port["nodePort"].as_u64().unwrap_or(0) == 0) {
        let protocol = port["protocol"].to_string();
        let free = DYNAMIC.into_iter().find(|free| !taken.contains(&(*free, protocol.clone())));
        let free = free.ok_or_else(|| Refused::internal("failed to allocate a nodePort: range is full"))?;
        taken.insert((free, protocol));
        port["nodePort"] = json!(free);
    }
    Ok(())
}
