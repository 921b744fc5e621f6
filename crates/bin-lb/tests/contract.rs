//! The sidecar reads what the decisions write: the Secrets of plan-sip's golden file, as a mounted volume.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use slipway_lb::{
    config::checksum,
    contract::{Leaving, Status},
    watch,
};

/// Manifests as plan-sip makes them, each value of a Secret as a list of its lines.
const GOLDEN: &str = include_str!("../../plan-sip/src/services/tests/usual.json");

/// Mounts the Secret of this name, and reads it as the sidecar does.
fn read(secret: &str) -> watch::Want {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let volume = tempfile::tempdir().unwrap();
    for (key, lines) in golden[format!("Secret {secret}")]["data"].as_object().unwrap() {
        let lines: Vec<&str> = lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        fs::write(volume.path().join(key), lines.join("\n") + "\n").unwrap();
    }
    watch::read(volume.path()).unwrap()
}

#[test]
fn the_configuration_has_the_checksum_that_is_said() {
    for (secret, servers) in [("loadbalancer-controlplane-blue", 2), ("loadbalancer-worker-blue", 2)] {
        let want = read(secret);
        assert_eq!(want.accepted.sha, checksum(&want.accepted.text), "{secret}");
        assert!(want.accepted.text.contains("\n  server ") && want.candidate.is_none(), "{secret}");
        let named: BTreeSet<&str> = want
            .accepted
            .text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("server ")?.split(' ').next())
            .collect();
        assert_eq!(named.len(), servers, "{secret}: {named:?}");
    }
}

#[test]
fn a_host_that_leaves_is_named_with_its_address_and_can_be_confirmed() {
    let want = read("loadbalancer-controlplane-blue");
    let leaver = Leaving { name: "node03".to_owned(), address: Some("192.0.2.3".to_owned()) };
    assert_eq!(want.leaving, [leaver]);
    assert!(!want.accepted.text.contains("node03"), "{}", want.accepted.text);
    let nobody = Status { serving: Some(want.accepted.sha.clone()), ..Status::default() };
    let leaving: BTreeSet<&str> = want.leaving.iter().map(|leaving| leaving.name.as_str()).collect();
    assert!(!nobody.confirms(&want.accepted.sha, None, &leaving), "a pod that has not read of it confirms nothing");
}
