//! Disks: made once, with their machine; missed when they are gone, and never made again by themselves.
//!
//! A volume carries the UUID of its machine in its name. So one that lies there without a domain (the definition was lost,
//! or the agent died between making one and the other) is known as its own and taken as it is, and one of anybody else
//! never is.

use std::collections::BTreeMap;

use hypervisor::{Disk, DiskSource, Domain, Mark, Uuid, VolumeFormat, VolumeRef, VolumeSource, VolumeSpec};

use crate::{
    images,
    plan::{Plan, Reason, Step, volumes},
    seen::Seen,
    want::{Want, WantDisk, WantVm},
};

/// Whether the name of a volume says that it is this machine's.
fn is_of(uuid: Uuid, volume: &str) -> bool {
    volume.contains(&uuid.hyphenated().to_string()) || volume.contains(&uuid.simple().to_string())
}

/// The disks of a machine, and what was made for it.
pub(crate) struct Disks {
    pub(crate) disks: Vec<Disk>,
    pub(crate) made: BTreeMap<String, VolumeRef>,
}

/// Plans the disks of a machine. An error says why it cannot be defined, or must not be started.
pub(crate) fn plan(
    want: &Want,
    seen: &Seen,
    uuid: Uuid,
    vm: &WantVm,
    there: Option<&Domain>,
    plan: &mut Plan,
) -> Result<Disks, (Reason, String)> {
    let mark = there.and_then(|domain| domain.spec.mark.as_ref());
    let mut made = mark.map(|mark: &Mark| mark.disks.clone()).unwrap_or_default();
    let mut steps = Vec::new();
    let mut disks: Vec<(Option<String>, Disk)> = Vec::new();
    for disk in &vm.disks {
        let WantDisk { name, volume, capacity, format: _, sparse: _, image: _ } = disk;
        let recorded = seen.recorded.get(&uuid).is_some_and(|disks| disks.contains(name));
        // A disk stays where it was made, whatever is asked for since.
        let at = made.get(name).unwrap_or(volume).clone();
        if !plan.pool_is_usable(want, seen, &at.pool) {
            return Err((Reason::PoolNotReady, format!("disk {name}: pool {} is not there yet", at.pool)));
        }
        match seen.volume(&at) {
            Some(found) => {
                if !made.contains_key(name) && !is_of(uuid, &at.volume) && !recorded {
                    let message =
                        format!("disk {name}: there is a volume {} in pool {}, and it is not ours", at.volume, at.pool);
                    return Err((Reason::Foreign, message));
                }
                if found.capacity < *capacity {
                    steps.push(grow(uuid, there, &at, *capacity));
                }
            }
            None if !seen.knows(&at.pool) && (recorded || made.contains_key(name)) => {
                return Err((
                    Reason::PoolNotReady,
                    format!("disk {name}: what is in pool {} is not known yet", at.pool),
                ));
            }
            None if recorded || made.contains_key(name) => {
                let message = format!(
                    "disk {name} was made as {}/{}, and is missing: the machine is not started",
                    at.pool, at.volume
                );
                return Err((Reason::DiskLost, message));
            }
            None => steps.extend(make(seen, disk, plan)),
        }
        made.insert(name.clone(), at.clone());
        let old = there.and_then(|domain| volumes(&domain.spec).find(|(_, volume)| **volume == at));
        let serial: String =
            format!("{}-{name}", vm.name).chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        disks.push((
            old.map(|(target, _)| target.to_owned()),
            Disk {
                target: String::new(),
                source: DiskSource::Volume(at),
                format: format_of(there, disk),
                // What QEMU's virtio disks carry at most.
                serial: Some(serial.chars().take(20).collect()),
            },
        ));
    }
    plan.steps.extend(steps);
    Ok(Disks { disks: targets(disks), made })
}

/// How a disk is stored: as it was made.
fn format_of(there: Option<&Domain>, disk: &WantDisk) -> String {
    let made = there.and_then(|domain| {
        domain.spec.disks.iter().find(|found| found.source == DiskSource::Volume(disk.volume.clone()))
    });
    made.map_or_else(|| disk.format.name().to_owned(), |found| found.format.clone())
}

fn grow(uuid: Uuid, there: Option<&Domain>, at: &VolumeRef, capacity: u64) -> Step {
    let running = there.and_then(|domain| domain.running.as_ref());
    match running.and_then(|running| volumes(running).find(|(_, volume)| *volume == at)) {
        Some((target, _)) => Step::GrowDisk { uuid, target: target.to_owned(), volume: at.clone(), capacity },
        None => Step::GrowVolume { volume: at.clone(), capacity },
    }
}

fn make(seen: &Seen, disk: &WantDisk, plan: &Plan) -> Vec<Step> {
    let WantDisk { name: _, volume, capacity, format, sparse, image } = disk;
    let mut steps = Vec::new();
    let source = match image {
        None => VolumeSource::Blank,
        Some(image) => {
            let from = images::volume(&volume.pool, image);
            if seen.volume(&from).is_none() && !plan.makes(&from) {
                steps.push(Step::FetchImage {
                    volume: from.clone(),
                    url: image.url.clone(),
                    sha256: image.sha256.clone(),
                });
            }
            if image.backing && *format == VolumeFormat::Qcow2 {
                VolumeSource::On(from.volume)
            } else {
                VolumeSource::CopyOf(from.volume)
            }
        }
    };
    steps.push(Step::CreateVolume(Box::new(VolumeSpec {
        pool: volume.pool.clone(),
        name: volume.volume.clone(),
        format: *format,
        capacity: *capacity,
        sparse: *sparse,
        source,
    })));
    steps
}

/// Gives each disk its place: the one it had, else the first that is free.
fn targets(disks: Vec<(Option<String>, Disk)>) -> Vec<Disk> {
    let mut taken: Vec<String> = disks.iter().filter_map(|(old, _)| old.clone()).collect();
    let letters = || ('a'..='z').map(|letter| format!("vd{letter}"));
    disks
        .into_iter()
        .map(|(old, disk)| {
            let target = old.unwrap_or_else(|| {
                let free = letters().find(|target| !taken.contains(target)).expect("there are at most 16 disks");
                taken.push(free.clone());
                free
            });
            Disk { target, ..disk }
        })
        .collect()
}

/// Removes what was made for a machine that goes: what its mark or its record says, and what carries its UUID.
pub(crate) fn remove(seen: &Seen, uuid: Uuid, vm: &WantVm, there: Option<&Domain>, plan: &mut Plan) {
    let marked = there.and_then(|domain| domain.spec.mark.as_ref()).into_iter().flat_map(|mark| mark.disks.values());
    let recorded = seen.recorded.get(&uuid);
    let asked = vm.disks.iter().filter(|disk| {
        is_of(uuid, &disk.volume.volume) || recorded.is_some_and(|recorded| recorded.contains(&disk.name))
    });
    let mut goes: Vec<&VolumeRef> = marked.chain(asked.map(|disk| &disk.volume)).collect();
    goes.sort();
    goes.dedup();
    let used_by_others = |volume: &VolumeRef| {
        let others = seen.domains.iter().filter(|(other, _)| **other != uuid);
        others.flat_map(|(_, domain)| volumes(&domain.spec)).any(|(_, used)| used == volume)
    };
    for volume in goes {
        if seen.volume(volume).is_some() && !used_by_others(volume) {
            plan.steps.push(Step::DeleteVolume(volume.clone()));
        }
    }
}
