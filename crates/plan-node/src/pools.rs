//! Storage pools.

use hypervisor::{DiskSource, PoolSpec};

use crate::{
    plan::{Object, Plan, Reason, Step},
    seen::Seen,
    want::Want,
};

/// The pool that has the marker file.
const DEFAULT: &str = api::keys::vino::DEFAULT_POOL;

pub(crate) fn plan(want: &Want, seen: &Seen, plan: &mut Plan) {
    for (name, pool) in want.pools.iter().filter(|(_, pool)| pool.present) {
        let object = || Object::Pool(name.clone());
        match seen.pools.get(name) {
            None => {
                plan.steps.push(Step::DefinePool(PoolSpec { name: name.clone(), path: pool.path.clone() }));
                plan.steps.push(Step::StartPool(name.clone()));
            }
            Some(there) if there.spec.path != pool.path => {
                let message =
                    format!("it is at {:?}, and {:?} is asked for: a pool does not move", there.spec.path, pool.path);
                plan.trouble(object(), Reason::PoolElsewhere, message);
            }
            Some(there) if !there.active => plan.steps.push(Step::StartPool(name.clone())),
            Some(_) => {}
        }
    }
    // Before the first disk is made: from then on a pool without it is not this one.
    let usable = plan.pool_is_usable(want, seen, DEFAULT);
    if seen.marker.is_none() && usable {
        plan.steps.push(Step::MarkPool { pool: DEFAULT.to_owned(), marker: want.machine.clone() });
    }
}

pub(crate) fn remove(want: &Want, seen: &Seen, plan: &mut Plan) {
    for (name, pool) in want.pools.iter().filter(|(_, pool)| !pool.present) {
        let Some(there) = seen.pools.get(name).filter(|there| there.spec.path == pool.path) else { continue };
        let user = seen.domains.values().find(|domain| {
            !plan.removes(domain.spec.uuid)
                && domain
                    .spec
                    .disks
                    .iter()
                    .any(|disk| matches!(&disk.source, DiskSource::Volume(volume) if volume.pool == *name))
        });
        if let Some(user) = user {
            let message = format!("it shall go, and {} has a disk in it", user.spec.name);
            plan.trouble(Object::Pool(name.clone()), Reason::InUse, message);
            continue;
        }
        if there.active {
            plan.steps.push(Step::StopPool(name.clone()));
        }
        plan.steps.push(Step::UndefinePool(name.clone()));
    }
}
