//! The forms of `bmc.address` that Metal3 knows for Redfish.

use std::net::Ipv6Addr;

use reqwest::Url;

/// Where a BMC's Redfish service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Scheme, host and port.
    pub service: Url,
    /// Path of the system; none when the address names only the service.
    pub system: Option<String>,
}

/// Why an address cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is another protocol.
    #[error("BMC address {0} is not Redfish: `host` speaks Redfish only")]
    Protocol(String),
    /// It is no address.
    #[error("BMC address {0} cannot be read")]
    Syntax(String),
}

/// The drivers of Metal3 that speak Redfish (baremetal-operator, docs/api.md, "address"), and plain http(s).
const DRIVERS: [&str; 6] =
    ["redfish", "redfish-virtualmedia", "redfish-uefihttp", "idrac-redfish", "idrac-virtualmedia", "ilo5-redfish"];

/// Reads an address: `<driver>[+http|+https]://<host>[:<port>][/<path>]`, or only `<host>[:<port>]`, where https is meant.
pub fn parse(address: &str) -> Result<Address, Unusable> {
    let (scheme, rest) = match address.split_once("://") {
        Some((driver, rest)) => (scheme(driver).ok_or_else(|| Unusable::Protocol(shown(address)))?, rest),
        None => ("https", address),
    };
    let (authority, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    // A login in the address is not used: the file has fields for it.
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
    let syntax = || Unusable::Syntax(shown(address));
    if host.is_empty() {
        return Err(syntax());
    }
    let service = Url::parse(&format!("{scheme}://{host}/")).map_err(|_| syntax())?;
    let path = path.trim_end_matches('/');
    Ok(Address { service, system: (!path.is_empty()).then(|| path.to_owned()) })
}

fn scheme(driver: &str) -> Option<&'static str> {
    match driver.split_once('+') {
        _ if driver == "http" => Some("http"),
        _ if driver == "https" => Some("https"),
        None if DRIVERS.contains(&driver) => Some("https"),
        Some((driver, "https")) if DRIVERS.contains(&driver) => Some("https"),
        Some((driver, "http")) if DRIVERS.contains(&driver) => Some("http"),
        _ => None,
    }
}

/// The address without a login.
fn shown(address: &str) -> String {
    match address.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
        Some((scheme, Some((_, rest)))) => format!("{scheme}://{rest}"),
        _ => address.rsplit_once('@').map_or(address, |(_, rest)| rest).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("redfish://10.0.0.1/redfish/v1/Systems/1", "https://10.0.0.1/", Some("/redfish/v1/Systems/1"))]
    #[case(
        "redfish+https://10.0.0.1:8443/redfish/v1/Systems/1/",
        "https://10.0.0.1:8443/",
        Some("/redfish/v1/Systems/1")
    )]
    #[case("redfish+http://10.0.0.2:8000/redfish/v1/Systems/x", "http://10.0.0.2:8000/", Some("/redfish/v1/Systems/x"))]
    #[case("redfish-virtualmedia+https://h/redfish/v1/Systems/x", "https://h/", Some("/redfish/v1/Systems/x"))]
    #[case(
        "idrac-redfish://h/redfish/v1/Systems/System.Embedded.1",
        "https://h/",
        Some("/redfish/v1/Systems/System.Embedded.1")
    )]
    #[case("ilo5-redfish://h", "https://h/", None)]
    #[case("redfish://[2001:db8::5]:8000/", "https://[2001:db8::5]:8000/", None)]
    #[case("redfish://user:secret@h/redfish/v1/Systems/x", "https://h/", Some("/redfish/v1/Systems/x"))]
    #[case("10.0.0.2:8000", "https://10.0.0.2:8000/", None)]
    #[case("[::1]:8000", "https://[::1]:8000/", None)]
    #[case("2001:db8::5", "https://[2001:db8::5]/", None)]
    fn an_address_gives_service_and_system(#[case] address: &str, #[case] service: &str, #[case] system: Option<&str>) {
        let parsed = parse(address).unwrap();
        assert_eq!((parsed.service.as_str(), parsed.system.as_deref()), (service, system));
    }

    #[test]
    fn what_is_not_redfish_is_refused_without_showing_a_login() {
        assert_eq!(parse("ipmi://me:secret@10.0.0.1").unwrap_err(), Unusable::Protocol("ipmi://10.0.0.1".to_owned()));
        assert!(matches!(parse("redfish+ftp://10.0.0.1"), Err(Unusable::Protocol(_))));
        assert!(matches!(parse(""), Err(Unusable::Syntax(_))));
        assert!(matches!(parse("redfish:///redfish/v1"), Err(Unusable::Syntax(_))));
    }
}
