//! Addresses in a host's network data.
//!
//! Source: OpenStack `network_data.json`; like the original, only `networks[].id` and `networks[].ip_address` are read,
//! as JSON or YAML.

use std::{collections::BTreeMap, net::IpAddr};

use serde::Deserialize;

/// Addresses by network id. Never a prefix length, always a valid address.
pub type Addresses = BTreeMap<String, String>;

#[derive(Deserialize)]
struct NetworkData {
    #[serde(default)]
    networks: Option<Vec<Network>>,
}

#[derive(Deserialize)]
struct Network {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    ip_address: Option<String>,
}

/// The addresses in `text`. A network without id or address (DHCP) is passed over; of two with one id the first counts.
///
/// The error says what is wrong and where, without the content of the Secret.
pub fn addresses(text: &[u8]) -> Result<Addresses, String> {
    let text = std::str::from_utf8(text).map_err(|e| format!("is not UTF-8 (byte {})", e.valid_up_to()))?;
    let data: Option<NetworkData> = serde_saphyr::from_str(text).map_err(|e| match e.location() {
        Some(at) => format!("is neither JSON nor YAML of network data (line {}, column {})", at.line(), at.column()),
        None => "is neither JSON nor YAML of network data".to_owned(),
    })?;
    let networks = data.and_then(|d| d.networks).ok_or("has no list `networks`")?;
    let mut found = Addresses::new();
    for (index, network) in networks.into_iter().enumerate() {
        let (Some(id), Some(address)) = (network.id, network.ip_address) else { continue };
        if id.is_empty() || address.is_empty() {
            continue;
        }
        let bare = address.split_once('/').map_or(address.as_str(), |(bare, _)| bare);
        let ip: IpAddr = bare.parse().map_err(|_| format!("networks[{index}].ip_address is not an IP address"))?;
        found.entry(id).or_insert_with(|| ip.to_string());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
        addresses(text.as_bytes()).map(|a| a.into_iter().collect())
    }

    #[rstest]
    #[case::json(r#"{"links":[],"networks":[{"id":"oam-ipv4","ip_address":"32.68.51.139"}],"services":[]}"#)]
    #[case::yaml("networks:\n- id: oam-ipv4\n  ip_address: 32.68.51.139\n  netmask: 255.255.255.128\n")]
    #[case::with_prefix("networks: [{id: oam-ipv4, ip_address: 32.68.51.139/25}]")]
    #[case::first_of_two("networks: [{id: oam-ipv4, ip_address: 32.68.51.139}, {id: oam-ipv4, ip_address: 10.0.0.1}]")]
    #[case::beside_dhcp("networks: [{id: pxe, type: ipv4_dhcp}, {id: oam-ipv4, ip_address: 32.68.51.139}]")]
    fn the_address_of_a_network_is_found(#[case] text: &str) {
        assert_eq!(pairs(text), Ok(vec![("oam-ipv4".into(), "32.68.51.139".into())]));
    }

    #[test]
    fn ipv6_is_an_address_like_any_other() {
        assert_eq!(
            pairs("networks: [{id: n, ip_address: '2001:DB8::1/64'}]"),
            Ok(vec![("n".into(), "2001:db8::1".into())])
        );
    }

    #[rstest]
    #[case("", "has no list `networks`")]
    #[case("[]", "is neither JSON nor YAML of network data (line 1, column 1)")]
    #[case("{networks: 3}", "is neither JSON nor YAML of network data (line 1, column 12)")]
    #[case("networks: [{id: a, ip_address: 300.1.1.1}]", "networks[0].ip_address is not an IP address")]
    #[case(
        "networks: [{id: a, ip_address: \"10.0.0.1\\n  server evil\"}]",
        "networks[0].ip_address is not an IP address"
    )]
    fn rubbish_is_named(#[case] text: &str, #[case] said: &str) {
        assert_eq!(pairs(text), Err(said.to_owned()));
    }

    #[test]
    fn what_is_not_text_is_named() {
        assert_eq!(addresses(b"networks: \xff"), Err("is not UTF-8 (byte 10)".into()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_and_all_it_returns_are_addresses(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(found) = addresses(&text) {
                prop_assert!(found.values().all(|a| a.parse::<IpAddr>().is_ok()));
            }
        }
    }
}
