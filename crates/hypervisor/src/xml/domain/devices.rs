//! Disks, drive and network cards of a domain.

use super::write::Order;
use crate::{
    control::{Media, Settings},
    domain::{Disk, DiskSource, DomainSpec, Nic, NicSource, VolumeRef},
    error::Kind,
    xml::{At, Element, Unreadable, Unwritable, parse::parse, write::write},
};

/// Place of the drive: no disk of ours is on that bus.
const DRIVE: &str = "sda";

/// Where a device was on the bus, if `old` has it.
fn address<'a>(old: Option<&'a Element>, device: &'a str, same: impl Fn(&Element) -> bool) -> Option<Element> {
    old?.all(device).find(|device| same(device))?.first("address").cloned()
}

fn has_target(device: &Element, target: &str) -> bool {
    device.first("target").and_then(|found| found.get("dev")) == Some(target)
}

/// The bus that a place belongs to.
fn bus(target: &str) -> &'static str {
    if target.starts_with("vd") { "virtio" } else { "sata" }
}

pub(super) fn disks(spec: &DomainSpec, order: Order, old: Option<&Element>) -> Vec<Element> {
    let disk = |(at, disk): (usize, &Disk)| {
        let Disk { target, source, format, serial } = disk;
        let (kind, from) = match source {
            DiskSource::Volume(VolumeRef { pool, volume }) => {
                ("volume", Element::new("source").with("pool", pool).with("volume", volume))
            }
            DiskSource::File(file) => ("file", Element::new("source").with("file", file)),
            DiskSource::Other(kind) => (kind.as_str(), Element::new("source")),
        };
        Element::new("disk")
            .with("type", kind)
            .with("device", "disk")
            .child(
                Element::new("driver")
                    .with("name", "qemu")
                    .with("type", format)
                    .with("cache", "none")
                    .with("discard", "unmap"),
            )
            .child(from)
            .child(Element::new("target").with("dev", target).with("bus", bus(target)))
            .children(serial.as_ref().map(|serial| Element::new("serial").text(serial)))
            .children((at == 0).then(|| Element::new("boot").with("order", order.disk)))
            .children(address(old, "disk", |disk| has_target(disk, target)))
    };
    spec.disks.iter().enumerate().map(disk).collect()
}

/// The drive with this in it: what `virDomainUpdateDeviceFlags` takes for a guest that runs.
pub fn drive_element(media: Option<&Media>) -> Result<String, Unwritable> {
    let settings = Settings { media: media.cloned(), ..Settings::default() };
    write(&drive(&settings, Order::of(&settings), None))
}

/// The file in the drive of a domain, as its definition has it.
pub fn drive_file(xml: &str) -> Result<Option<String>, Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Domain, name: "?".to_owned(), why })?;
    Ok(root.first("devices").and_then(read_media).map(str::to_owned))
}

/// The drive for media, with what is in it.
pub(super) fn drive(settings: &Settings, order: Order, old: Option<&Element>) -> Element {
    Element::new("disk")
        .with("type", "file")
        .with("device", "cdrom")
        .child(Element::new("driver").with("name", "qemu").with("type", "raw"))
        .children(settings.media.as_ref().map(|media| Element::new("source").with("file", &media.file)))
        .child(Element::new("target").with("dev", DRIVE).with("bus", "sata"))
        .child(Element::new("readonly"))
        .children(order.drive.map(|order| Element::new("boot").with("order", order)))
        .children(address(old, "disk", |disk| has_target(disk, DRIVE)))
}

pub(super) fn nics(spec: &DomainSpec, order: Order, old: Option<&Element>) -> Vec<Element> {
    // libvirt refuses two devices of one order.
    let first = spec.nics.iter().position(|nic| nic.boot).unwrap_or_default();
    let nic = |(at, nic): (usize, &Nic)| {
        let Nic { name: _, mac, source, mtu, boot } = nic;
        let (kind, from) = match source {
            NicSource::Network(network) => ("network", Element::new("source").with("network", network)),
            NicSource::Bridge(bridge) => ("bridge", Element::new("source").with("bridge", bridge)),
            NicSource::Other(kind) => (kind.as_str(), Element::new("source")),
        };
        let place = u32::try_from(at.saturating_sub(first)).unwrap_or_default();
        let mac = mac.to_string();
        let same = |nic: &Element| {
            nic.first("mac")
                .and_then(|found| found.get("address"))
                .is_some_and(|found| found.eq_ignore_ascii_case(&mac))
        };
        Element::new("interface")
            .with("type", kind)
            .child(Element::new("mac").with("address", &mac))
            .child(from)
            .child(Element::new("model").with("type", "virtio"))
            .children(mtu.map(|size| Element::new("mtu").with("size", size)))
            // Further network cards that boot come after everything else.
            .children(boot.then(|| {
                let order = if place == 0 { order.nic } else { 3 + place };
                Element::new("boot").with("order", order)
            }))
            .children(address(old, "interface", same))
    };
    spec.nics.iter().enumerate().map(nic).collect()
}

pub(super) fn read_disks(at: &At, devices: &Element) -> Result<Vec<Disk>, Unreadable> {
    devices
        .all("disk")
        .filter(|disk| !matches!(disk.get("device"), Some("cdrom" | "floppy")))
        .map(|disk| {
            let target = disk.first("target").and_then(|target| target.get("dev"));
            let text = |attribute: &str| {
                disk.first("source").and_then(|source| source.get(attribute)).unwrap_or_default().to_owned()
            };
            let source = match disk.get("type").unwrap_or("file") {
                "volume" => DiskSource::Volume(VolumeRef { pool: text("pool"), volume: text("volume") }),
                "file" => DiskSource::File(text("file")),
                kind => DiskSource::Other(kind.to_owned()),
            };
            Ok(Disk {
                target: target.ok_or_else(|| at.wrong("a <disk> has no <target dev>"))?.to_owned(),
                source,
                format: disk.first("driver").and_then(|driver| driver.get("type")).unwrap_or("raw").to_owned(),
                serial: disk.first("serial").map(|serial| serial.text.clone()),
            })
        })
        .collect()
}

/// The file in the drive.
pub(super) fn read_media(devices: &Element) -> Option<&str> {
    let drive = devices.all("disk").find(|disk| disk.get("device") == Some("cdrom") && has_target(disk, DRIVE))?;
    drive.first("source")?.get("file")
}

pub(super) fn read_nics(at: &At, devices: &Element, names: &[String]) -> Result<Vec<Nic>, Unreadable> {
    let mut nics = Vec::new();
    for (place, nic) in devices.all("interface").enumerate() {
        // Interfaces of others may have none (a host device whose address is its own); they are plugged into nothing of ours.
        let Some(mac) = nic.first("mac") else { continue };
        let text = |attribute: &str| {
            nic.first("source").and_then(|source| source.get(attribute)).unwrap_or_default().to_owned()
        };
        let source = match nic.get("type").unwrap_or_default() {
            "network" => NicSource::Network(text("network")),
            "bridge" => NicSource::Bridge(text("bridge")),
            kind => NicSource::Other(kind.to_owned()),
        };
        nics.push(Nic {
            name: names.get(place).cloned().unwrap_or_default(),
            mac: at.required(mac, "address")?,
            source,
            mtu: nic.first("mtu").map(|mtu| at.required(mtu, "size")).transpose()?,
            boot: nic.first("boot").is_some(),
        });
    }
    Ok(nics)
}
