//! Virtual machines: made, changed for their next start, brought back after a power cut, removed when their entry says so.

use api::vinonode::CpuPolicy;
use hypervisor::{Chipset, Domain, DomainSpec, Engine, LastPower, Mark, Nic, NicSource, Placement, PowerState, Uuid};

use crate::{
    cores::{Ledger, Short},
    disks,
    plan::{Object, Plan, Reason, Step},
    seen::Seen,
    want::{Want, WantNic, WantVm},
};

/// Machines whose entry says `Absent`.
pub(crate) fn remove(want: &Want, seen: &Seen, plan: &mut Plan) {
    for (uuid, vm) in want.vms.iter().filter(|(_, vm)| !vm.present) {
        let there = match ours(want, seen, *uuid, vm) {
            Ok(there) => there,
            Err((reason, message)) => {
                plan.trouble(Object::Vm(*uuid, vm.name.clone()), reason, message);
                continue;
            }
        };
        if let Some(domain) = there {
            let name = domain.spec.name.clone();
            if domain.state.has_guest() {
                plan.steps.push(Step::Stop { uuid: *uuid, name: name.clone() });
            }
            let console_log = domain.spec.console_log.clone();
            plan.steps.push(Step::UndefineDomain { uuid: *uuid, name, console_log });
        }
        // After the definition: should the agent die in between, the entry still names them.
        disks::remove(seen, *uuid, vm, there, plan);
    }
}

/// The domain of an entry, if there is one; it has to be ours.
fn ours<'a>(want: &Want, seen: &'a Seen, uuid: Uuid, vm: &WantVm) -> Result<Option<&'a Domain>, (Reason, String)> {
    let foreign = |message: String| Err((Reason::Foreign, message));
    let Some(domain) = seen.domains.get(&uuid) else { return Ok(None) };
    match &domain.spec.mark {
        None => foreign(format!("the domain with UUID {uuid} is not ours")),
        Some(mark) if mark.owner != want.owner => {
            foreign(format!("the domain with UUID {uuid} belongs to {}", mark.owner))
        }
        Some(mark) if mark.since > vm.since => {
            let message =
                format!("its domain was asked for by serial {}, and this entry is of {}", mark.since, vm.since);
            Err((Reason::SerialOlder, message))
        }
        Some(_) => Ok(Some(domain)),
    }
}

/// A machine that shall be there, on its way to a definition.
struct Todo<'a> {
    uuid: Uuid,
    vm: &'a WantVm,
    there: Option<&'a Domain>,
    /// Where it will be, and how many threads its cores have. None: not yet known.
    place: Option<(Placement, u32)>,
    /// Whether it stays as large as it is, for want of room.
    small: bool,
    /// Why it stays so, or is not made.
    short: Option<Short>,
}

/// Machines whose entry says `Present`, and what is ours without an entry.
pub(crate) fn plan(want: &Want, seen: &Seen, plan: &mut Plan) {
    let mut todo = Vec::new();
    for (uuid, vm) in want.vms.iter().filter(|(_, vm)| vm.present) {
        match makeable(want, seen, *uuid, vm, plan) {
            Ok(there) => todo.push(Todo { uuid: *uuid, vm, there, place: None, small: false, short: None }),
            Err((reason, message)) => plan.trouble(Object::Vm(*uuid, vm.name.clone()), reason, message),
        }
    }
    place(want, seen, &mut todo, plan);
    todo.sort_by_key(|todo| (todo.vm.name.clone(), todo.uuid));
    let mut starts = Vec::new();
    for Todo { uuid, vm, there, place, small, short } in todo {
        if let Some((placement, threads)) = place {
            match define(want, seen, uuid, vm, there, (placement, threads, small), plan) {
                Ok(()) => starts.push(uuid),
                Err((reason, message)) => plan.trouble(Object::Vm(uuid, vm.name.clone()), reason, message),
            }
        }
        if let Some((reason, message)) = short {
            plan.trouble(Object::Vm(uuid, vm.name.clone()), reason, message);
        }
    }
    for (uuid, domain) in seen.ours(&want.owner).filter(|(uuid, _)| !plan.removes(**uuid)).collect::<Vec<_>>() {
        let has_entry = want.vms.contains_key(uuid);
        marks(want, *uuid, domain, plan);
        power(seen, *uuid, domain, starts.contains(uuid) || (!has_entry && complete(seen, domain)), plan);
    }
}

/// The domain of an entry that can be made, or is there.
fn makeable<'a>(
    want: &Want,
    seen: &'a Seen,
    uuid: Uuid,
    vm: &WantVm,
    plan: &Plan,
) -> Result<Option<&'a Domain>, Short> {
    let there = find(want, seen, uuid, vm, plan)?;
    if let Some(missing) = vm.nics.iter().find(|nic| !plan.has_network(seen, &nic.network)) {
        let message = format!("interface {}: there is no network {}", missing.name, missing.network);
        return Err((Reason::NetworkMissing, message));
    }
    disks::plan(want, seen, uuid, vm, there, &mut plan.clone())?;
    Ok(there)
}

/// Gives every machine its cores and memory.
///
/// What stays as it is has its place already. Of the others, those that are there come before those that are new, for what
/// they give back may be what the new ones need; of the new ones the large before the small, which find room between them.
/// Whoever finds no room is asked again as long as somebody else has moved.
fn place(want: &Want, seen: &Seen, todo: &mut [Todo<'_>], plan: &Plan) {
    let mut ledger = Ledger::new(seen, &want.reserved);
    for uuid in seen.domains.keys().filter(|uuid| plan.removes(**uuid)) {
        ledger.release(*uuid);
    }
    todo.sort_by_key(|todo| {
        let shared = todo.vm.cpu_policy == CpuPolicy::Shared;
        let new = todo.there.is_none();
        (new, shared == new, u32::MAX - todo.vm.vcpus, todo.vm.name.clone(), todo.uuid)
    });
    for todo in &mut *todo {
        if let Some(domain) = todo.there.filter(|domain| ledger.stays(todo.vm, &domain.spec)) {
            todo.place = Some((domain.spec.placement.clone(), domain.spec.threads));
        }
    }
    let mut moved = true;
    while moved {
        moved = false;
        for todo in todo.iter_mut().filter(|todo| todo.place.is_none()) {
            let old = todo.there.map(|domain| &domain.spec.placement);
            match ledger.place(todo.uuid, todo.vm, old) {
                Ok(found) => {
                    let running = todo.there.and_then(|domain| domain.running.as_ref());
                    ledger.claim(todo.uuid, &found.0, todo.vm.memory_kib, running);
                    (todo.place, todo.short, moved) = (Some(found), None, true);
                }
                Err(short) => todo.short = Some(short),
            }
        }
    }
    for todo in todo {
        // One that is there stays as large as it was; the rest of a change is made all the same.
        let old = todo.there.map(|domain| (domain.spec.placement.clone(), domain.spec.threads));
        todo.small = todo.place.is_none();
        todo.place = todo.place.take().or(old);
        let Some((placement, _)) = todo.place.as_mut().filter(|(placement, _)| placement.pins.is_empty()) else {
            continue;
        };
        let shared = ledger.shared(placement.cells.iter().next(), todo.uuid);
        if shared.is_empty() {
            let message = "every core is somebody's own: it goes on where it is".to_owned();
            todo.short.get_or_insert((Reason::CoresShort, message));
        } else {
            placement.shared = shared;
        }
    }
}

/// The domain of an entry; nobody else may have its name.
fn find<'a>(
    want: &Want,
    seen: &'a Seen,
    uuid: Uuid,
    vm: &WantVm,
    plan: &Plan,
) -> Result<Option<&'a Domain>, (Reason, String)> {
    let there = ours(want, seen, uuid, vm)?;
    let namesake = seen.domains.iter().find(|(other, domain)| {
        **other != uuid && domain.spec.name == vm.name && !plan.removes(**other) && there.is_none()
    });
    match namesake {
        None => Ok(there),
        Some((other, domain)) => {
            let whose = match &domain.spec.mark {
                Some(mark) if mark.owner == want.owner => "a machine that is still to go",
                Some(_) => "another owner's",
                None => "not ours",
            };
            Err((Reason::Foreign, format!("the domain {} ({other}) has its name, and is {whose}", vm.name)))
        }
    }
}

/// Defines a machine in its place, if it is not so already; `small`: as large as it was.
fn define(
    want: &Want,
    seen: &Seen,
    uuid: Uuid,
    vm: &WantVm,
    there: Option<&Domain>,
    (placement, threads, small): (Placement, u32, bool),
    plan: &mut Plan,
) -> Result<(), Short> {
    let disks::Disks { disks, made } = disks::plan(want, seen, uuid, vm, there, plan)?;
    let old = there.map(|domain| &domain.spec);
    let size = old.filter(|_| small).map_or((vm.vcpus, vm.memory_kib), |old| (old.vcpus, old.memory_kib));
    let spec = DomainSpec {
        uuid,
        // libvirt does not rename what it has defined.
        name: old.map_or(&vm.name, |old| &old.name).clone(),
        mark: Some(mark(want, vm, there, made)),
        arch: old.map(|old| &old.arch).filter(|arch| !arch.is_empty()).unwrap_or(&seen.host.arch).clone(),
        engine: engine(seen, there),
        chipset: old.map_or(Chipset::Q35, |old| old.chipset.clone()),
        firmware: vm.firmware,
        vcpus: size.0,
        memory_kib: size.1,
        threads,
        placement,
        disks,
        nics: vm.nics.iter().map(nic).collect(),
        console_log: Some(format!("{}/{}-{uuid}.log", seen.log_dir, file_name(&vm.name))),
        vnc: vm.vnc,
        overlay: vm.overlay.clone(),
    };
    let unmarked = |spec: &DomainSpec| DomainSpec { mark: None, ..spec.clone() };
    if old.is_none_or(|old| unmarked(old) != unmarked(&spec)) {
        plan.steps.push(Step::DefineDomain(Box::new(spec)));
    } else if old.is_none_or(|old| old.mark != spec.mark)
        && let Some(mark) = spec.mark
    {
        plan.steps.push(Step::MarkDomain { uuid, mark });
    }
    Ok(())
}

/// The name of a console log: whatever the machine is called, it stays in its directory.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn engine(seen: &Seen, there: Option<&Domain>) -> Engine {
    match there {
        Some(domain) if seen.host.acceleration == hypervisor::Acceleration::Unknown => domain.spec.engine.clone(),
        _ => Engine::from(&seen.host.acceleration),
    }
}

fn mark(
    want: &Want,
    vm: &WantVm,
    there: Option<&Domain>,
    disks: std::collections::BTreeMap<String, hypervisor::VolumeRef>,
) -> Mark {
    let since = there.and_then(|domain| domain.spec.mark.as_ref()).map_or(vm.since, |mark| mark.since);
    Mark {
        owner: want.owner.clone(),
        machine: want.machine.clone(),
        group: vm.group.clone(),
        host: vm.host.clone(),
        since,
        serial: want.serial,
        disks,
    }
}

fn nic(nic: &WantNic) -> Nic {
    let WantNic { name, network, mac, ip: _, mtu, boot } = nic;
    Nic { name: name.clone(), mac: *mac, source: NicSource::Network(network.clone()), mtu: *mtu, boot: *boot }
}

/// Every domain of ours remembers the highest serial: that is what an older VinoNode is known by.
fn marks(want: &Want, uuid: Uuid, domain: &Domain, plan: &mut Plan) {
    let Some(mark) = &domain.spec.mark else { return };
    let planned = plan.steps.iter().any(|step| match step {
        Step::DefineDomain(spec) => spec.uuid == uuid,
        Step::MarkDomain { uuid: marked, .. } => *marked == uuid,
        _ => false,
    });
    if !planned && mark.serial < want.serial {
        plan.steps.push(Step::MarkDomain { uuid, mark: Mark { serial: want.serial, ..mark.clone() } });
    }
}

/// Whether all disks that were made are there.
fn complete(seen: &Seen, domain: &Domain) -> bool {
    let mark = domain.spec.mark.as_ref();
    mark.is_some_and(|mark| mark.disks.values().all(|volume| seen.volume(volume).is_some()))
}

/// Keeps in mind whether it runs, and brings it back after a power cut of the node (`PowerRestorePolicy: LastState`).
///
/// | it runs | noted | node started since | |
/// |---|---|---|---|
/// | yes | no, or of an earlier start | | note it |
/// | no | yes | no | its guest shut down: note it |
/// | no | yes | yes | start it |
fn power(seen: &Seen, uuid: Uuid, domain: &Domain, may_start: bool, plan: &mut Plan) {
    let boot_id = &seen.host.boot_id;
    let runs = domain.state.has_guest();
    let last = domain.settings.last_power.as_ref();
    let now = LastPower { on: runs, boot_id: boot_id.clone() };
    if runs {
        if last != Some(&now) && domain.state != PowerState::Crashed {
            plan.steps.push(Step::NotePower { uuid, on: true });
        }
        return;
    }
    match last {
        Some(last) if last.on && last.boot_id == *boot_id => plan.steps.push(Step::NotePower { uuid, on: false }),
        Some(last) if last.on && may_start => {
            plan.steps.push(Step::Restore { uuid, name: domain.spec.name.clone() });
        }
        Some(_) | None => {}
    }
}

/// What takes effect at the next start of a domain that runs, in words such as `vcpus 2 to 4`.
pub fn at_next_start(domain: &Domain) -> Vec<String> {
    let Some(running) = &domain.running else { return Vec::new() };
    let DomainSpec {
        uuid: _,
        name: _,
        mark: _,
        arch: _,
        engine,
        chipset: _,
        firmware: _,
        memory_kib,
        vcpus,
        threads: _,
        placement,
        disks,
        nics,
        console_log: _,
        vnc,
        overlay,
    } = &domain.spec;
    let mut changes = Vec::new();
    let mut change = |what: &str, from: String, to: String| {
        if from != to {
            changes.push(format!("{what} {from} to {to}"));
        }
    };
    let kvm = |engine: &Engine| if *engine == Engine::Kvm { "on" } else { "off" }.to_owned();
    let cpus = |placement: &Placement| {
        let pinned = placement.pinned();
        if pinned.is_empty() { format!("shared {}", placement.shared) } else { pinned.to_string() }
    };
    change("vcpus", running.vcpus.to_string(), vcpus.to_string());
    change("memory", format!("{} MiB", running.memory_kib >> 10), format!("{} MiB", memory_kib >> 10));
    change("cpus", cpus(&running.placement), cpus(placement));
    change("cells", running.placement.cells.to_string(), placement.cells.to_string());
    change("KVM", kvm(&running.engine), kvm(engine));
    change("firmware", running_firmware(running, domain), domain.firmware().name().to_owned());
    change("disks", running.disks.len().to_string(), disks.len().to_string());
    change("interfaces", running.nics.len().to_string(), nics.len().to_string());
    change("VNC", running.vnc.to_string(), vnc.to_string());
    if running.overlay != *overlay {
        changes.push("overlay".to_owned());
    }
    changes
}

/// The firmware that a running guest was started with, as its own definition says.
fn running_firmware(running: &DomainSpec, domain: &Domain) -> String {
    if running.firmware == domain.spec.firmware { domain.firmware() } else { running.firmware }.name().to_owned()
}
