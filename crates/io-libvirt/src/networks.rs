//! Networks: read, defined, started, stopped, and who their DHCP answers.

use std::collections::BTreeSet;

use hypervisor::{DhcpHost, Error, Kind, Lease, Listing, Network, NetworkSpec, Result, Unreadable, xml};
use virt::network::Network as Handle;
use virt_sys as sys;

use crate::{connection::Cx, error::found, ffi};

pub(crate) fn list(cx: &Cx) -> Result<Listing<Network>> {
    let mut listing = Listing::default();
    for handle in cx.done(cx.connect.list_all_networks(0))? {
        let name = handle.get_name().unwrap_or_else(|_| "?".to_owned());
        match of(cx, &handle) {
            Ok(network) => listing.found.push(network),
            Err(Error::Unreadable(unreadable)) => listing.unreadable.push(Unreadable { name, ..unreadable }),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    listing.found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    Ok(listing)
}

fn of(cx: &Cx, handle: &Handle) -> Result<Network> {
    let config = config(cx, handle)?;
    let running =
        if cx.done(handle.is_active())? { Some(xml::read_network(&cx.done(handle.get_xml_desc(0))?)?) } else { None };
    let autostart = cx.done(handle.get_autostart())?;
    Ok(Network { spec: xml::read_network(&config)?, running, autostart })
}

/// What is defined for the next start.
fn config(cx: &Cx, handle: &Handle) -> Result<String> {
    match handle.get_xml_desc(sys::VIR_NETWORK_XML_INACTIVE) {
        // The test driver has one definition for both.
        Err(error) if error.message().contains("unsupported flags") => cx.done(handle.get_xml_desc(0)),
        answer => cx.done(answer),
    }
}

fn lookup(cx: &Cx, name: &str) -> Result<Handle> {
    let missing = || Error::NotFound { kind: Kind::Network, name: name.to_owned() };
    if name.contains('\0') {
        return Err(missing());
    }
    cx.done(found(Handle::lookup_by_name(&cx.connect, name)))?.ok_or_else(missing)
}

pub(crate) fn define(cx: &Cx, spec: &NetworkSpec) -> Result<()> {
    // First without what is there, for a name that no XML carries must not be looked up either.
    xml::network(spec, None)?;
    let old = match lookup(cx, &spec.name) {
        Ok(handle) => Some(config(cx, &handle)?),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error),
    };
    let handle = cx.done(Handle::define_xml(&cx.connect, &xml::network(spec, old.as_deref())?))?;
    cx.done(handle.set_autostart(true)).map(drop)
}

pub(crate) fn set_hosts(cx: &Cx, name: &str, hosts: &[DhcpHost]) -> Result<()> {
    let handle = lookup(cx, name)?;
    let wanted: BTreeSet<&DhcpHost> = hosts.iter().collect();
    // What is defined first: after a crash in between, what runs is brought in line by the next call.
    let mut places = vec![(config(cx, &handle)?, sys::VIR_NETWORK_UPDATE_AFFECT_CONFIG)];
    if cx.done(handle.is_active())? {
        places.push((cx.done(handle.get_xml_desc(0))?, sys::VIR_NETWORK_UPDATE_AFFECT_LIVE));
    }
    for (which, flag) in places {
        let spec = xml::read_network(&which)?;
        let Some(dhcp) = spec.dhcp else {
            return Err(Error::Refused { doing: cx.doing.clone(), why: "it has no DHCP".to_owned() });
        };
        let there: BTreeSet<&DhcpHost> = dhcp.hosts.iter().collect();
        for (command, host) in there
            .difference(&wanted)
            .map(|host| (sys::VIR_NETWORK_UPDATE_COMMAND_DELETE, *host))
            .chain(wanted.difference(&there).map(|host| (sys::VIR_NETWORK_UPDATE_COMMAND_ADD_LAST, *host)))
        {
            // One without an address is an option of the server: it takes effect with the next definition.
            let Some(element) = xml::dhcp_host(host) else { continue };
            let section = sys::VIR_NETWORK_SECTION_IP_DHCP_HOST;
            cx.done(handle.update(command, section, -1, &element?, flag))?;
        }
    }
    Ok(())
}

pub(crate) fn start(cx: &Cx, name: &str) -> Result<()> {
    let handle = lookup(cx, name)?;
    if !cx.done(handle.is_active())? {
        cx.done(handle.create())?;
    }
    Ok(())
}

pub(crate) fn stop(cx: &Cx, name: &str) -> Result<()> {
    let handle = lookup(cx, name)?;
    if cx.done(handle.is_active())? {
        cx.done(handle.destroy())?;
    }
    Ok(())
}

pub(crate) fn undefine(cx: &Cx, name: &str) -> Result<()> {
    let handle = lookup(cx, name)?;
    if cx.done(handle.is_active())? {
        let (name, state, doing) = (name.to_owned(), "active".to_owned(), "undefine it".to_owned());
        return Err(Error::WrongState { kind: Kind::Network, name, state, doing });
    }
    cx.done(handle.undefine())
}

pub(crate) fn leases(cx: &Cx, name: &str) -> Result<Vec<Lease>> {
    let handle = lookup(cx, name)?;
    if cx.done(handle.is_active())? { cx.done(ffi::leases(&handle)) } else { Ok(Vec::new()) }
}
