//! Network XML: a bridge, its address, and a DHCP server that answers those it knows.

use std::net::IpAddr;

use base::Mac;
use ipnet::IpNet;

use super::{
    At, Element, Unreadable, Unwritable,
    mark::{network_element, read_network_element},
    parse::parse,
    write::write,
};
use crate::{
    error::Kind,
    network::{DhcpHost, DhcpSpec, Forward, NetBoot, NetworkSpec},
};

const DNSMASQ: &str = "http://libvirt.org/schemas/network/dnsmasq/1.0";
/// Options that are not dnsmasq's own syntax but ours to read back.
const IGNORE_UNKNOWN: &str = "dhcp-ignore=tag:!known";

/// The definition of a network.
///
/// `previous` is the definition it replaces, if there is one: its UUID stays, for libvirt takes another one for another
/// network.
pub fn network(spec: &NetworkSpec, previous: Option<&str>) -> Result<String, Unwritable> {
    let NetworkSpec { name, mark, forward, bridge, mac, mtu, address, dns, dhcp, tftp_root } = spec;
    let mut root = Element::new("network");
    let options = dhcp.as_ref().map(|dhcp| options(dhcp, address.as_ref())).unwrap_or_default();
    if !options.is_empty() {
        root = root.with("xmlns:dnsmasq", DNSMASQ);
    }
    root = root
        .child(Element::new("name").text(name))
        .children(previous.and_then(|xml| parse(xml).ok()?.first("uuid").cloned()))
        .children(mark.as_ref().map(|mark| Element::new("metadata").child(network_element(mark))));
    let mode = match forward {
        Forward::Open => Some("open"),
        Forward::HostBridge => Some("bridge"),
        Forward::Other(mode) => Some(mode.as_str()).filter(|mode| !mode.is_empty()),
    };
    root = root.children(mode.map(|mode| Element::new("forward").with("mode", mode)));
    if *forward == Forward::HostBridge {
        return write(&root.child(Element::new("bridge").with("name", bridge)));
    }
    root = root
        .child(Element::new("bridge").with("name", bridge).with("stp", "off").with("delay", 0))
        .children(mac.map(|mac| Element::new("mac").with("address", mac)))
        .children(mtu.map(|size| Element::new("mtu").with("size", size)));
    if !dns {
        root = root.child(Element::new("dns").with("enable", "no"));
    }
    if let Some(address) = address {
        let family = if address.addr().is_ipv6() { "ipv6" } else { "ipv4" };
        root = root.child(
            Element::new("ip")
                .with("family", family)
                .with("address", address.addr())
                .with("prefix", address.prefix_len())
                .children(tftp_root.as_ref().map(|tftp| Element::new("tftp").with("root", tftp)))
                .children(dhcp.as_ref().map(dhcp_element)),
        );
    }
    if !options.is_empty() {
        let option = |value: String| Element::new("dnsmasq:option").with("value", value);
        root = root.child(Element::new("dnsmasq:options").children(options.into_iter().map(option)));
    }
    write(&root)
}

fn dhcp_element(dhcp: &DhcpSpec) -> Element {
    let DhcpSpec { range, hosts, dns_servers: _, routes: _, boot } = dhcp;
    Element::new("dhcp")
        .children(range.map(|(start, end)| Element::new("range").with("start", start).with("end", end)))
        .children(hosts.iter().filter_map(host_element))
        .children(boot.as_ref().map(|NetBoot { file, server }| {
            Element::new("bootp").with("file", file).with_some("server", server.as_ref())
        }))
}

/// The element of a host with an address: what `virNetworkUpdate` takes. None: it has no address, and is an option instead.
pub fn dhcp_host(host: &DhcpHost) -> Option<Result<String, Unwritable>> {
    host_element(host).map(|element| write(&element))
}

fn host_element(host: &DhcpHost) -> Option<Element> {
    let DhcpHost { mac, ip, name } = host;
    let ip = (*ip)?;
    let element = Element::new("host");
    // DHCPv6 knows no MAC addresses: a client is known by its DUID, which of type 3 (RFC 8415 section 11.4) is the MAC.
    let element =
        if ip.is_ipv6() { element.with("id", format!("00:03:00:01:{mac}")) } else { element.with("mac", mac) };
    Some(element.with_some("name", name.as_ref()).with("ip", ip))
}

/// What libvirt has no element for, as dnsmasq's options. All values are typed: none can hold a further option.
fn options(dhcp: &DhcpSpec, address: Option<&IpNet>) -> Vec<String> {
    let DhcpSpec { range: _, hosts, dns_servers, routes, boot: _ } = dhcp;
    let v6 = address.is_some_and(|address| address.addr().is_ipv6());
    let mut options = vec![IGNORE_UNKNOWN.to_owned()];
    if !dns_servers.is_empty() {
        let list: Vec<String> =
            dns_servers.iter().map(|ip| if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() }).collect();
        let option = if v6 { "option6" } else { "option" };
        options.push(format!("dhcp-option={option}:dns-server,{}", list.join(",")));
    }
    // DHCPv6 announces no routes; router advertisements do.
    if !routes.is_empty() && !v6 {
        let list: Vec<String> = routes.iter().map(|(to, gateway)| format!("{to},{gateway}")).collect();
        options.push(format!("dhcp-option=option:classless-static-route,{}", list.join(",")));
    }
    options.extend(hosts.iter().filter(|host| host.ip.is_none()).map(|host| format!("dhcp-host={}", host.mac)));
    options
}

/// What a definition of a network says.
pub fn read_network(xml: &str) -> Result<NetworkSpec, Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Network, name: "?".to_owned(), why })?;
    let at = At::new(Kind::Network, &root);
    if root.name != "network" {
        return Err(at.wrong(format!("its root element is <{}>, not <network>", root.name)));
    }
    let attribute = |path: &str, name: &str| root.at(path).and_then(|element| element.get(name));
    let ip = root.first("ip");
    let address = match ip {
        Some(ip) => Some(read_address(&at, ip)?),
        None => None,
    };
    let forward = match root.first("forward").map(|forward| forward.get("mode").unwrap_or("nat")) {
        Some("open") => Forward::Open,
        Some("bridge") => Forward::HostBridge,
        mode => Forward::Other(mode.unwrap_or_default().to_owned()),
    };
    Ok(NetworkSpec {
        name: root.first("name").ok_or_else(|| at.wrong("it has no <name>"))?.text.clone(),
        mark: read_network_element(&at, &root)?,
        bridge: attribute("bridge", "name").unwrap_or_default().to_owned(),
        mac: root.first("mac").map(|mac| at.required(mac, "address")).transpose()?,
        mtu: root.first("mtu").map(|mtu| at.required(mtu, "size")).transpose()?,
        address,
        dns: forward != Forward::HostBridge && attribute("dns", "enable") != Some("no"),
        dhcp: read_dhcp(&at, ip, &root)?,
        tftp_root: attribute("ip/tftp", "root").map(str::to_owned),
        forward,
    })
}

fn read_address(at: &At, ip: &Element) -> Result<IpNet, Unreadable> {
    let address: IpAddr = at.required(ip, "address")?;
    let prefix = match (at.attribute(ip, "prefix")?, at.attribute::<IpAddr>(ip, "netmask")?) {
        (Some(prefix), _) => prefix,
        (None, Some(mask)) => ipnet::ip_mask_to_prefix(mask).map_err(|_| at.wrong(format!("<ip> netmask={mask}")))?,
        (None, None) => match address {
            IpAddr::V4(_) => 24,
            IpAddr::V6(_) => 64,
        },
    };
    IpNet::new(address, prefix).map_err(|error| at.wrong(format!("<ip> prefix={prefix}: {error}")))
}

fn read_dhcp(at: &At, ip: Option<&Element>, root: &Element) -> Result<Option<DhcpSpec>, Unreadable> {
    let options = root.children.iter().filter(|child| child.name.ends_with(":options"));
    let options: Vec<&str> =
        options.flat_map(|options| &options.children).filter_map(|option| option.get("value")).collect();
    let nothing = Element::new("dhcp");
    let dhcp = match ip.and_then(|ip| ip.first("dhcp")) {
        Some(dhcp) => dhcp,
        // libvirt leaves the element out when nobody is in it; that there is a server, our option says.
        None if options.contains(&IGNORE_UNKNOWN) => &nothing,
        None => return Ok(None),
    };
    let mut spec = DhcpSpec {
        range: match dhcp.first("range") {
            Some(range) => Some((at.required(range, "start")?, at.required(range, "end")?)),
            None => None,
        },
        boot: dhcp.first("bootp").map(|boot| NetBoot {
            file: boot.get("file").unwrap_or_default().to_owned(),
            server: boot.get("server").map(str::to_owned),
        }),
        ..DhcpSpec::default()
    };
    for host in dhcp.all("host") {
        let ip: IpAddr = at.required(host, "ip")?;
        let mac: Option<Mac> = match host.get("id").and_then(|id| id.strip_prefix("00:03:00:01:")) {
            Some(mac) => Some(mac.parse().map_err(|error| at.wrong(format!("<host> id: {error}")))?),
            None => at.attribute(host, "mac")?,
        };
        // A host known by its name alone is none of ours.
        let Some(mac) = mac else { continue };
        spec.hosts.push(DhcpHost { mac, ip: Some(ip), name: host.get("name").map(str::to_owned) });
    }
    for option in options {
        read_option(at, option, &mut spec)?;
    }
    Ok(Some(spec))
}

fn read_option(at: &At, option: &str, spec: &mut DhcpSpec) -> Result<(), Unreadable> {
    let wrong = || at.wrong(format!("dnsmasq's option {option:?} is not one that we write"));
    if let Some(mac) = option.strip_prefix("dhcp-host=") {
        spec.hosts.push(DhcpHost { mac: mac.parse().map_err(|_| wrong())?, ip: None, name: None });
    } else if let Some(list) = option
        .strip_prefix("dhcp-option=option:dns-server,")
        .or_else(|| option.strip_prefix("dhcp-option=option6:dns-server,"))
    {
        for ip in list.split(',') {
            spec.dns_servers.push(ip.trim_matches(['[', ']']).parse().map_err(|_| wrong())?);
        }
    } else if let Some(list) = option.strip_prefix("dhcp-option=option:classless-static-route,") {
        let mut parts = list.split(',');
        while let (Some(to), Some(gateway)) = (parts.next(), parts.next()) {
            spec.routes.push((to.parse().map_err(|_| wrong())?, gateway.parse().map_err(|_| wrong())?));
        }
    }
    Ok(())
}
