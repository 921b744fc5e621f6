//! Builds domain XML.

use base::CpuSet;

use super::devices::{disks, drive, nics};
use crate::{
    control::{BootTarget, Settings},
    domain::{Chipset, DomainSpec, Engine, Placement},
    error::Result,
    host::Acceleration,
    xml::{Element, mark::domain_element, overlay, parse::parse, write::write},
};

/// The definition of a domain.
///
/// `previous` is the definition it replaces, if there is one: what libvirt chose there for the guest's sake (the version of
/// its mainboard, controllers, where on the bus its devices are) stays as it is, for a guest that finds its network card
/// in another slot calls it by another name.
pub fn domain(spec: &DomainSpec, settings: &Settings, previous: Option<&str>) -> Result<String> {
    let DomainSpec {
        uuid,
        name,
        mark,
        arch,
        engine,
        chipset,
        firmware,
        memory_kib,
        vcpus,
        threads,
        placement,
        disks: _,
        nics: _,
        console_log,
        vnc,
        overlay: over,
    } = spec;
    let previous = previous.and_then(|xml| parse(xml).ok());
    let kind = match engine {
        Engine::Kvm => "kvm",
        Engine::Emulated => "qemu",
        Engine::Other(kind) => kind,
    };
    let metadata = mark.as_ref().map(|mark| Element::new("metadata").child(domain_element(spec, mark, settings)));
    let Placement { pins, shared, emulator, cells, strict, hugepages_kib } = placement;
    let backing = hugepages_kib.map(|size| {
        let page = Element::new("page").with("size", size).with("unit", "KiB");
        Element::new("memoryBacking").child(Element::new("hugepages").child(page))
    });
    let memory = (!cells.is_empty()).then(|| {
        let mode = if *strict { "strict" } else { "preferred" };
        Element::new("numatune").child(Element::new("memory").with("mode", mode).with("nodeset", cells))
    });
    let mut root = Element::new("domain")
        .with("type", kind)
        .child(Element::new("name").text(name))
        .child(Element::new("uuid").text(uuid))
        .children(metadata)
        .child(Element::new("memory").with("unit", "KiB").text(memory_kib))
        .children(backing)
        .child(
            Element::new("vcpu")
                .with("placement", "static")
                .with_some("cpuset", (!shared.is_empty()).then_some(shared))
                .text(vcpus),
        )
        .children(cputune(pins, emulator))
        .children(memory)
        .child(os(arch, chipset, settings.firmware.unwrap_or(*firmware), previous.as_ref()))
        .child(Element::new("features").child(Element::new("acpi")).child(Element::new("apic")))
        .child(cpu(engine, *vcpus, *threads))
        .child(
            Element::new("clock")
                .with("offset", "utc")
                .child(Element::new("timer").with("name", "rtc").with("tickpolicy", "catchup"))
                .child(Element::new("timer").with("name", "pit").with("tickpolicy", "delay"))
                .child(Element::new("timer").with("name", "hpet").with("present", "no")),
        )
        .child(Element::new("on_poweroff").text("destroy"))
        .child(Element::new("on_reboot").text("restart"))
        .child(Element::new("on_crash").text("destroy"));

    let old = previous.as_ref().filter(|old| same_chipset(old, chipset)).and_then(|old| old.first("devices"));
    let order = Order::of(settings);
    let mut devices = Element::new("devices")
        .children(disks(spec, order, old))
        .child(drive(settings, order, old))
        .children(old.into_iter().flat_map(|old| old.all("controller").cloned()))
        .children(nics(spec, order, old))
        .child(console(console_log.as_deref()))
        .child(
            Element::new("console")
                .with("type", "pty")
                .child(Element::new("target").with("type", "serial").with("port", 0)),
        )
        .child(
            Element::new("rng")
                .with("model", "virtio")
                .child(Element::new("backend").with("model", "random").text("/dev/urandom")),
        )
        .child(Element::new("memballoon").with("model", "virtio").child(Element::new("stats").with("period", 10)));
    if *vnc {
        devices = devices.child(
            Element::new("graphics")
                .with("type", "vnc")
                .with("port", -1)
                .with("autoport", "yes")
                .with("listen", "127.0.0.1"),
        );
    }
    root = root.child(devices);
    if let Some(over) = over {
        overlay::lay(&mut root, over)?;
    }
    Ok(write(&root)?)
}

fn cputune(pins: &[CpuSet], emulator: &CpuSet) -> Option<Element> {
    let pinned = pins.iter().enumerate().filter(|(_, cpus)| !cpus.is_empty());
    let tune = Element::new("cputune")
        .children(pinned.map(|(vcpu, cpus)| Element::new("vcpupin").with("vcpu", vcpu).with("cpuset", cpus)))
        .children((!emulator.is_empty()).then(|| Element::new("emulatorpin").with("cpuset", emulator)));
    (!tune.children.is_empty()).then_some(tune)
}

fn os(arch: &str, chipset: &Chipset, firmware: crate::Firmware, previous: Option<&Element>) -> Element {
    let wanted = match chipset {
        Chipset::Q35 => "q35",
        Chipset::Other(machine) => machine,
    };
    let old = previous.filter(|old| same_chipset(old, chipset)).and_then(|old| old.at("os/type")?.get("machine"));
    let mut os = Element::new("os");
    if firmware == crate::Firmware::Uefi {
        os = os.with("firmware", "efi");
    }
    os.child(
        Element::new("type")
            .with_some("arch", (!arch.is_empty()).then_some(arch))
            .with_some("machine", Some(old.unwrap_or(wanted)).filter(|machine| !machine.is_empty()))
            .text("hvm"),
    )
}

/// Whether a definition has this mainboard, in whatever version.
fn same_chipset(previous: &Element, chipset: &Chipset) -> bool {
    let machine = previous.at("os/type").and_then(|kind| kind.get("machine")).unwrap_or_default();
    super::read::chipset(machine) == *chipset
}

fn cpu(engine: &Engine, vcpus: u32, threads: u32) -> Element {
    let mut cpu = match engine {
        Engine::Kvm => Element::new("cpu").with("mode", "host-passthrough"),
        // Everything that QEMU can emulate: a named model would lack what today's guests ask for.
        Engine::Emulated => Element::new("cpu").with("mode", "maximum"),
        Engine::Other(_) => Element::new("cpu"),
    };
    if threads > 1 && vcpus.is_multiple_of(threads) {
        cpu = cpu.child(
            Element::new("topology")
                .with("sockets", 1)
                .with("dies", 1)
                .with("cores", vcpus / threads)
                .with("threads", threads),
        );
    }
    cpu
}

fn console(log: Option<&str>) -> Element {
    Element::new("serial")
        .with("type", "pty")
        .children(log.map(|file| Element::new("log").with("file", file).with("append", "on")))
        .child(Element::new("target").with("port", 0))
}

/// In which order devices are tried: 1 is the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) disk: u32,
    pub(super) nic: u32,
    pub(super) drive: Option<u32>,
}

impl Order {
    /// A medium is tried only when it is asked for, as on real machines; what is asked for is tried before the rest.
    pub(super) fn of(settings: &Settings) -> Self {
        match settings.boot.effective() {
            BootTarget::None | BootTarget::Hdd => Self { disk: 1, nic: 2, drive: None },
            BootTarget::Pxe | BootTarget::UefiHttp => Self { nic: 1, disk: 2, drive: None },
            BootTarget::Cd => Self { drive: Some(1), disk: 2, nic: 3 },
        }
    }
}

impl From<&Acceleration> for Engine {
    fn from(acceleration: &Acceleration) -> Self {
        if acceleration.is_kvm() { Engine::Kvm } else { Engine::Emulated }
    }
}
