//! Our own element in the metadata of domains and networks: whose something is, what was made for it, what its BMC has set.

use super::{At, Element, Unreadable};
use crate::{
    control::{Boot, BootTarget, Firmware, Hold, LastPower, Media, Settings},
    domain::{DomainSpec, Mark, VolumeRef},
    network::NetworkMark,
};

/// Namespace of our element in the metadata of a domain.
pub const DOMAIN_NAMESPACE: &str = "https://vino.airshipit.org/xml/domain/1";
/// Namespace of our element in the metadata of a network.
pub const NETWORK_NAMESPACE: &str = "https://vino.airshipit.org/xml/network/1";
/// Prefix that we write; any other is read as well.
const PREFIX: &str = "vino";

/// What our element holds that is part of a domain's specification but not of libvirt's own elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) mark: Mark,
    pub(crate) settings: Settings,
    pub(crate) firmware: Firmware,
    /// Names of the network cards, in their order.
    pub(crate) nics: Vec<String>,
    pub(crate) overlay: Option<String>,
}

fn ours(name: &str) -> Element {
    Element::new(&format!("{PREFIX}:{name}"))
}

/// The prefix that an element declares for a namespace.
fn prefix<'a>(element: &'a Element, namespace: &str) -> Option<&'a str> {
    element
        .attributes
        .iter()
        .filter(|(_, value)| value == namespace)
        .find_map(|(name, _)| name.strip_prefix("xmlns:"))
        .filter(|prefix| element.name.strip_prefix(*prefix).is_some_and(|rest| rest.starts_with(':')))
}

/// Our element among those of a `<metadata>`, and the prefix it uses.
fn find<'a>(root: &'a Element, namespace: &str) -> Option<(&'a Element, &'a str)> {
    let metadata = root.first("metadata")?;
    metadata.children.iter().find_map(|element| Some((element, prefix(element, namespace)?)))
}

pub(super) fn domain_element(spec: &DomainSpec, mark: &Mark, settings: &Settings) -> Element {
    let Mark { owner, machine, group, host, since, serial, disks } = mark;
    let Settings { boot, firmware, media, last_power } = settings;
    ours("guest")
        .with(&format!("xmlns:{PREFIX}"), DOMAIN_NAMESPACE)
        .with("owner", owner)
        .with("machine", machine)
        .with("group", group)
        .with("host", host)
        .with("since", since)
        .with("serial", serial)
        .children(disks.iter().map(|(name, VolumeRef { pool, volume })| {
            ours("disk").with("name", name).with("pool", pool).with("volume", volume)
        }))
        .children(spec.nics.iter().map(|nic| ours("nic").with("name", &nic.name)))
        .child(ours("boot").with("target", boot.target.name()).with("enabled", boot.hold.name()))
        .child(ours("firmware").with("mode", spec.firmware.name()).with_some("override", firmware.map(Firmware::name)))
        .children(media.as_ref().map(|Media { file, url }| ours("media").with("file", file).with("url", url)))
        .children(
            last_power.as_ref().map(|LastPower { on, boot_id }| ours("power").with("on", on).with("boot", boot_id)),
        )
        .children(spec.overlay.as_ref().map(|overlay| ours("overlay").with("xml", overlay)))
}

pub(super) fn read_domain_element(at: &At, root: &Element) -> Result<Option<Kept>, Unreadable> {
    let Some((element, prefix)) = find(root, DOMAIN_NAMESPACE) else { return Ok(None) };
    let tag = |name: &str| format!("{prefix}:{name}");
    let mark = Mark {
        owner: raw(at, element, "owner")?,
        machine: raw(at, element, "machine")?,
        group: raw(at, element, "group")?,
        host: raw(at, element, "host")?,
        since: at.required(element, "since")?,
        serial: at.required(element, "serial")?,
        disks: element
            .all(&tag("disk"))
            .map(|disk| {
                let volume = VolumeRef { pool: raw(at, disk, "pool")?, volume: raw(at, disk, "volume")? };
                Ok((raw(at, disk, "name")?, volume))
            })
            .collect::<Result<_, Unreadable>>()?,
    };
    let nics = element.all(&tag("nic")).map(|nic| raw(at, nic, "name")).collect::<Result<_, _>>()?;
    let named = |child: &str, attribute: &str| element.first(&tag(child)).and_then(|child| child.get(attribute));
    let boot = Boot {
        target: chosen(at, "boot target", named("boot", "target"), BootTarget::named)?.unwrap_or_default(),
        hold: chosen(at, "boot enabled", named("boot", "enabled"), Hold::named)?.unwrap_or_default(),
    };
    let settings = Settings {
        boot,
        firmware: chosen(at, "firmware override", named("firmware", "override"), Firmware::named)?,
        media: match element.first(&tag("media")) {
            Some(media) => Some(Media { file: raw(at, media, "file")?, url: raw(at, media, "url")? }),
            None => None,
        },
        last_power: match element.first(&tag("power")) {
            Some(power) => Some(LastPower { on: at.required(power, "on")?, boot_id: raw(at, power, "boot")? }),
            None => None,
        },
    };
    Ok(Some(Kept {
        mark,
        settings,
        firmware: chosen(at, "firmware mode", named("firmware", "mode"), Firmware::named)?.unwrap_or_default(),
        nics,
        overlay: named("overlay", "xml").map(str::to_owned),
    }))
}

/// A text as it is, spaces included.
fn raw(at: &At, element: &Element, attribute: &str) -> Result<String, Unreadable> {
    let missing = || at.wrong(format!("<{}> has no {attribute}", element.name));
    element.get(attribute).map(str::to_owned).ok_or_else(missing)
}

fn chosen<T>(
    at: &At,
    what: &str,
    name: Option<&str>,
    named: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Unreadable> {
    let Some(name) = name else { return Ok(None) };
    named(name).map(Some).ok_or_else(|| at.wrong(format!("our metadata says {what} {name:?}, which we do not know")))
}

pub(super) fn network_element(mark: &NetworkMark) -> Element {
    let NetworkMark { owner, serial } = mark;
    ours("network").with(&format!("xmlns:{PREFIX}"), NETWORK_NAMESPACE).with("owner", owner).with("serial", serial)
}

pub(super) fn read_network_element(at: &At, root: &Element) -> Result<Option<NetworkMark>, Unreadable> {
    let Some((element, _)) = find(root, NETWORK_NAMESPACE) else { return Ok(None) };
    Ok(Some(NetworkMark { owner: raw(at, element, "owner")?, serial: at.required(element, "serial")? }))
}
