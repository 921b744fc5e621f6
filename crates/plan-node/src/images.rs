//! Images that disks come from: fetched once for a pool, cleared away when no disk needs them.

use std::{collections::BTreeSet, fmt::Write as _};

use hypervisor::VolumeRef;
use sha2::{Digest, Sha256};

use crate::{
    plan::{Plan, Step},
    seen::Seen,
    want::{Want, WantImage},
};

/// What the names of their volumes begin with.
const PREFIX: &str = "slipway-image-";

/// The volume of an image in a pool. Another checksum is another image, though the URL be the same.
pub(crate) fn volume(pool: &str, image: &WantImage) -> VolumeRef {
    let text = format!("{}\n{}", image.sha256.as_deref().unwrap_or_default(), image.url);
    let digest = Sha256::digest(text.as_bytes());
    let mut name = PREFIX.to_owned();
    for byte in digest.iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    VolumeRef { pool: pool.to_owned(), volume: name }
}

/// Clears away what no disk comes from, or rests on, any more.
pub(crate) fn clear(want: &Want, seen: &Seen, plan: &mut Plan) {
    let wanted: BTreeSet<VolumeRef> = want
        .vms
        .values()
        .filter(|vm| vm.present)
        .flat_map(|vm| &vm.disks)
        .filter_map(|disk| Some(volume(&disk.volume.pool, disk.image.as_ref()?)))
        .collect();
    for (pool, volumes) in &seen.volumes {
        for image in volumes.values().filter(|volume| volume.name.starts_with(PREFIX)) {
            let found = VolumeRef { pool: pool.clone(), volume: image.name.clone() };
            let rests_on_it = volumes.values().any(|volume| {
                let goes = VolumeRef { pool: pool.clone(), volume: volume.name.clone() };
                volume.backing.as_deref() == Some(image.path.as_str()) && !plan.deletes(&goes)
            });
            if !wanted.contains(&found) && !rests_on_it {
                plan.steps.push(Step::DeleteVolume(found));
            }
        }
    }
}
