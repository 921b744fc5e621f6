//! Reads domain XML: ours whole, that of others as far as it matters to us.

use base::CpuSet;

use super::devices::{read_disks, read_media, read_nics};
use crate::{
    control::{Firmware, Settings},
    domain::{Chipset, DomainSpec, Engine, Placement},
    error::Kind,
    xml::{At, Element, Unreadable, mark::read_domain_element, parse::parse},
};

/// What a definition says, and what the domain's BMC has set (nothing, for domains that are not ours).
pub fn read_domain(xml: &str) -> Result<(DomainSpec, Settings), Unreadable> {
    let root = parse(xml).map_err(|why| Unreadable { kind: Kind::Domain, name: "?".to_owned(), why })?;
    let at = At::new(Kind::Domain, &root);
    if root.name != "domain" {
        return Err(at.wrong(format!("its root element is <{}>, not <domain>", root.name)));
    }
    let kept = read_domain_element(&at, &root)?;
    let names = kept.as_ref().map(|kept| kept.nics.clone()).unwrap_or_default();
    let nothing = Element::new("devices");
    let devices = root.first("devices").unwrap_or(&nothing);
    let os = root.at("os/type");
    let machine = os.and_then(|os| os.get("machine")).unwrap_or_default();
    let uefi = root.first("os").is_some_and(|os| {
        os.get("firmware") == Some("efi")
            || os.first("loader").is_some_and(|loader| loader.get("type") == Some("pflash"))
    });
    let vcpus: u32 = at.text(&root, "vcpu")?;
    let memory = root.first("memory").ok_or_else(|| at.wrong("it has no <memory>"))?;
    let topology = root.at("cpu/topology");
    let mut spec = DomainSpec {
        uuid: at.text(&root, "uuid")?,
        name: root.first("name").map(|name| name.text.clone()).ok_or_else(|| at.wrong("it has no <name>"))?,
        mark: None,
        arch: os.and_then(|os| os.get("arch")).unwrap_or_default().to_owned(),
        engine: match root.get("type").unwrap_or_default() {
            "kvm" => Engine::Kvm,
            "qemu" => Engine::Emulated,
            kind => Engine::Other(kind.to_owned()),
        },
        chipset: chipset(machine),
        firmware: if uefi { Firmware::Uefi } else { Firmware::Bios },
        memory_kib: at.bytes(memory, "KiB")? >> 10,
        vcpus,
        threads: topology.map(|topology| at.attribute(topology, "threads")).transpose()?.flatten().unwrap_or(1),
        placement: placement(&at, &root, vcpus)?,
        disks: read_disks(&at, devices)?,
        nics: read_nics(&at, devices, &names)?,
        console_log: devices.all("serial").find_map(|serial| serial.first("log")?.get("file")).map(str::to_owned),
        vnc: devices.all("graphics").any(|graphics| graphics.get("type") == Some("vnc")),
        overlay: None,
    };
    let Some(kept) = kept else { return Ok((spec, Settings::default())) };
    spec.mark = Some(kept.mark);
    spec.firmware = kept.firmware;
    spec.overlay = kept.overlay;
    let mut settings = kept.settings;
    // What is in the drive is what the drive says: a medium that somebody took out by hand is out.
    settings.media = settings.media.filter(|media| read_media(devices) == Some(media.file.as_str()));
    Ok((spec, settings))
}

/// A mainboard by the name that libvirt gives it, which has the version in it.
pub(super) fn chipset(machine: &str) -> Chipset {
    if machine == "q35" || machine.starts_with("pc-q35") { Chipset::Q35 } else { Chipset::Other(machine.to_owned()) }
}

fn placement(at: &At, root: &Element, vcpus: u32) -> Result<Placement, Unreadable> {
    let mut pins = Vec::new();
    let tune = root.first("cputune");
    for pin in tune.into_iter().flat_map(|tune| tune.all("vcpupin")) {
        let vcpu: usize = at.required(pin, "vcpu")?;
        if vcpu >= 8192 {
            return Err(at.wrong(format!("<vcpupin> speaks of vcpu {vcpu}, and it has {vcpus}")));
        }
        if pins.len() <= vcpu {
            pins.resize(vcpu + 1, CpuSet::new());
        }
        pins[vcpu] = at.required(pin, "cpuset")?;
    }
    let cpuset = |element: Option<&Element>, attribute: &str| -> Result<CpuSet, Unreadable> {
        Ok(element.map(|element| at.attribute(element, attribute)).transpose()?.flatten().unwrap_or_default())
    };
    let memory = root.at("numatune/memory");
    let page = root.at("memoryBacking/hugepages/page");
    let hugepages_kib = match page {
        Some(page) => {
            let size = Element { text: page.get("size").unwrap_or_default().to_owned(), ..page.clone() };
            Some(at.bytes(&size, "KiB")? >> 10)
        }
        None => None,
    };
    Ok(Placement {
        pins,
        shared: cpuset(root.first("vcpu"), "cpuset")?,
        emulator: cpuset(tune.and_then(|tune| tune.first("emulatorpin")), "cpuset")?,
        cells: cpuset(memory, "nodeset")?,
        strict: memory.is_some_and(|memory| memory.get("mode").unwrap_or("strict") == "strict"),
        hugepages_kib,
    })
}
