//! What the built-in templates render is a configuration to a real HAProxy.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use api::{
    keys::{CONTROL_PLANE, WORKER},
    sipcluster::{Common, LoadBalancerControlPlane, LoadBalancerWorker, NodePortRange, SIPClusterSpec, Services},
};
use base::Key;
use k8s_openapi::ByteString;
use plan_sip::services::{Backend, CustomTemplate, Installation, Kind, Seen, Step, Want, plan};

fn spec() -> SIPClusterSpec {
    let common = Common { node_interface_id: Some("oam".to_owned()), ..Common::default() };
    let services = Services {
        load_balancer_control_plane: vec![LoadBalancerControlPlane { common: common.clone(), node_port: 30_000 }],
        load_balancer_worker: vec![LoadBalancerWorker {
            common,
            node_port_range: NodePortRange { start: 30_001, end: 30_040 },
            node_port: None,
        }],
        ..Services::default()
    };
    SIPClusterSpec { services, ..SIPClusterSpec::default() }
}

fn host(role: &str, namespace: &str, name: &str, address: &str) -> Backend {
    Backend {
        host: Key::new(namespace, name),
        role: role.to_owned(),
        addresses: BTreeMap::from([("oam".to_owned(), address.to_owned())]),
        bmc_address: String::new(),
        bmc_insecure: false,
        leaving: false,
    }
}

/// `haproxy.cfg` and `candidate.cfg` of both load balancers.
fn configurations(backends: Vec<Backend>, seen: &Seen) -> Vec<String> {
    let installation = Installation {
        haproxy_image: "haproxy".to_owned(),
        slipway_image: "slipway".to_owned(),
        ..Installation::default()
    };
    let spec = spec();
    let want = Want {
        owner: Key::new("tenant", "blue"),
        owner_uid: "uid".to_owned(),
        spec: &spec,
        backends,
        installation: &installation,
        gone: false,
    };
    let plan = plan(&want, seen);
    let secrets = plan.steps.iter().filter_map(|step| match step {
        Step::Create(object) if object.kind == Kind::Secret => Some(&object.body["data"]),
        _ => None,
    });
    let texts = secrets.flat_map(|data| {
        ["haproxy.cfg", "candidate.cfg"].into_iter().filter_map(|key| data.get(key)).map(|value| {
            let ByteString(bytes) = serde_json::from_value(value.clone()).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    });
    texts.collect()
}

fn haproxy() -> PathBuf {
    let named = env::var_os("SLIPWAY_TEST_HAPROXY").map(PathBuf::from);
    let places = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"].map(PathBuf::from);
    named
        .into_iter()
        .chain(places)
        .find(|path| path.exists())
        .expect("these tests need HAProxy: install the package `haproxy`, or name the program in SLIPWAY_TEST_HAPROXY")
}

/// What HAProxy says of a configuration, on a kernel with and without IPv6.
fn checked(name: &str, text: &str) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("haproxy-{}-{name}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("haproxy.cfg");
    fs::write(&file, text).unwrap();
    for listen in [None, Some("[::]")] {
        let mut command = Command::new(haproxy());
        command.args(["-c", "-W", "-db", "-f"]).arg(&file).env_remove("SLIPWAY_LISTEN");
        if let Some(listen) = listen {
            command.env("SLIPWAY_LISTEN", listen);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "HAProxy refuses (listening on {listen:?}): {said}\n{text}");
        assert!(!said.contains("[WARNING]"), "HAProxy warns (listening on {listen:?}): {said}\n{text}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn the_built_in_templates_give_configurations() {
    let backends = vec![
        host(CONTROL_PLANE, "metal", "node01", "192.0.2.1"),
        host(CONTROL_PLANE, "metal", "node02", "2001:db8::2/64"),
        host(CONTROL_PLANE, "other", "node02", "192.0.2.3/24"),
        host(WORKER, "metal", "node03.rack-1", "192.0.2.4"),
        host(WORKER, "metal", "node04", "2001:db8::4"),
    ];
    let texts = configurations(backends, &Seen::default());
    assert_eq!(texts.len(), 2);
    for (index, text) in texts.iter().enumerate() {
        checked(&format!("built-in-{index}"), text);
    }
}

#[test]
fn a_load_balancer_without_hosts_has_a_configuration() {
    let texts = configurations(Vec::new(), &Seen::default());
    assert_eq!(texts.len(), 2);
    for (index, text) in texts.iter().enumerate() {
        checked(&format!("empty-{index}"), text);
    }
}

#[test]
fn hostile_names_and_addresses_stay_words() {
    let names = ["a\n  server evil 203.0.113.66:6443", "b c", "d\"e", "", "f#g", "h\\", "i\u{fc}", "j$HOME", "${HOME}"];
    let mut backends: Vec<Backend> = names
        .iter()
        .enumerate()
        .map(|(n, name)| host(CONTROL_PLANE, "metal", name, &format!("192.0.2.{}", n + 1)))
        .collect();
    backends.push(host(CONTROL_PLANE, "metal", "z", "192.0.2.77:1\n  server evil 203.0.113.66"));
    let texts = configurations(backends, &Seen::default());
    let control_plane = texts.iter().find(|text| text.contains("http-frontend")).unwrap();
    let servers: Vec<Vec<&str>> = control_plane
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.first() == Some(&"server"))
        .collect();
    assert_eq!(servers.len(), names.len(), "{control_plane}");
    for words in servers {
        assert_eq!(words.len(), 3, "{words:?}");
        assert!(words[2].starts_with("192.0.2."), "{words:?}");
    }
    checked("hostile", control_plane);
}

#[test]
fn a_template_of_the_original_gives_a_configuration() {
    let text = "\
global
  log stdout format raw local0 notice
  daemon

defaults
  mode tcp
  log global
  option tcplog
  timeout queue 30s
  timeout connect 30s
  timeout client 600s
  timeout server 600s

{{- $servers := .Servers }}
{{- range $port := .ContainerPorts }}
{{- $name := $port.Name }}
{{- $number := $port.ContainerPort }}
frontend {{ $name }}-frontend
  bind *:{{ $number }}
  default_backend {{ $name }}-backend
backend {{ $name }}-backend
  balance roundrobin
  default-server check
{{- range $server := $servers }}
{{- $server_name := $server.Name }}
{{- $ip := $server.IP }}
  server {{ $server_name }} {{ $ip }}:{{ $number }}
{{- end }}
{{ end -}}
";
    let custom = CustomTemplate { config_map: Key::new("tenant", "loadbalancerworker"), text: Arc::from(text) };
    let seen = Seen { templates: BTreeMap::from([("loadBalancerWorker.cfg".to_owned(), custom)]), ..Seen::default() };
    let backends = vec![host(WORKER, "metal", "a", "192.0.2.1"), host(WORKER, "metal", "b", "2001:db8::1")];
    let texts = configurations(backends, &seen);
    assert_eq!(texts.len(), 3, "the worker's own template is tried beside the built-in one");
    let candidate = texts.iter().find(|text| text.contains("bind *:30001")).unwrap();
    assert!(candidate.contains("  server b [2001:db8::1]:30040"), "{candidate}");
    checked("original", candidate);
}
