//! Cases about pools and volumes.

use ::hypervisor::{Error, Kind, Pool, PoolSpec, Volume, VolumeFormat, VolumeRef, VolumeSource, VolumeSpec};

use super::Lab;

const MIB: u64 = 1 << 20;

async fn pool(lab: &Lab, case: &str) -> PoolSpec {
    let spec = PoolSpec { name: format!("case-{case}"), path: format!("{}/{case}", lab.directory) };
    lab.hypervisor.define_pool(&spec).await.expect("it can be defined");
    lab.hypervisor.start_pool(&spec.name).await.expect("it starts");
    spec
}

async fn found(lab: &Lab, name: &str) -> Option<Pool> {
    lab.hypervisor.pools().await.expect("a list").found.into_iter().find(|pool| pool.spec.name == name)
}

async fn gone(lab: &Lab, pool: &PoolSpec) {
    for volume in lab.hypervisor.volumes(&pool.name).await.expect("a list").found {
        let volume = VolumeRef { pool: pool.name.clone(), volume: volume.name };
        lab.hypervisor.delete_volume(&volume).await.expect("it can be deleted");
    }
    lab.hypervisor.stop_pool(&pool.name).await.expect("it can be stopped");
    lab.hypervisor.undefine_pool(&pool.name).await.expect("it can be undefined");
    assert_eq!(found(lab, &pool.name).await, None);
}

fn volume(pool: &PoolSpec, name: &str) -> VolumeSpec {
    VolumeSpec {
        pool: pool.name.clone(),
        name: name.to_owned(),
        format: VolumeFormat::Qcow2,
        capacity: 8 * MIB,
        sparse: true,
        source: VolumeSource::Blank,
    }
}

async fn named(lab: &Lab, pool: &PoolSpec, name: &str) -> Option<Volume> {
    lab.hypervisor.volumes(&pool.name).await.expect("a list").found.into_iter().find(|volume| volume.name == name)
}

pub(super) async fn a_pool_is_as_it_was_asked_for(lab: &Lab) {
    let spec = pool(lab, "pool-asked").await;
    let pool = found(lab, &spec.name).await.expect("it is there");
    assert_eq!((&pool.spec, pool.active, pool.autostart), (&spec, true, true));
    assert!(pool.capacity > 0 && pool.available > 0);
    for _ in 0..2 {
        lab.hypervisor.define_pool(&spec).await.expect("again");
        lab.hypervisor.start_pool(&spec.name).await.expect("again");
    }
    let error = lab.hypervisor.undefine_pool(&spec.name).await.expect_err("it is active");
    assert!(matches!(error, Error::WrongState { kind: Kind::Pool, .. }), "{error}");
    lab.hypervisor.stop_pool(&spec.name).await.expect("it stops");
    let error = lab.hypervisor.volumes(&spec.name).await.expect_err("it is not active");
    assert!(matches!(error, Error::WrongState { kind: Kind::Pool, .. }), "{error}");
    lab.hypervisor.start_pool(&spec.name).await.expect("it starts again");
    gone(lab, &spec).await;
}

pub(super) async fn volumes_come_and_go(lab: &Lab) {
    let pool = pool(lab, "vol-come").await;
    for name in ["a", "b c & <d>.qcow2"] {
        let spec = volume(&pool, name);
        lab.hypervisor.create_volume(&spec).await.expect("it can be made");
        let found = named(lab, &pool, name).await.expect("it is there");
        assert_eq!((found.format, found.capacity, found.backing), (Some(VolumeFormat::Qcow2), 8 * MIB, None));
        assert_eq!(found.path, format!("{}/{name}", pool.path));
        let volume = VolumeRef { pool: pool.name.clone(), volume: name.to_owned() };
        lab.hypervisor.delete_volume(&volume).await.expect("it can be deleted");
        assert_eq!(named(lab, &pool, name).await, None);
        assert!(lab.hypervisor.delete_volume(&volume).await.expect_err("it is gone").is_not_found());
    }
    gone(lab, &pool).await;
}

pub(super) async fn a_volume_that_is_there_is_not_made_again(lab: &Lab) {
    let pool = pool(lab, "vol-again").await;
    lab.hypervisor.create_volume(&volume(&pool, "a")).await.expect("it can be made");
    let larger = VolumeSpec { capacity: 16 * MIB, ..volume(&pool, "a") };
    let error = lab.hypervisor.create_volume(&larger).await.expect_err("it is there");
    assert_eq!(error, Error::Exists { kind: Kind::Volume, name: format!("{}/a", pool.name) });
    assert_eq!(named(lab, &pool, "a").await.map(|volume| volume.capacity), Some(8 * MIB));
    gone(lab, &pool).await;
}

pub(super) async fn a_name_that_leaves_the_pool_is_refused(lab: &Lab) {
    let pool = pool(lab, "vol-name").await;
    for name in ["../evil", "..", "a/b", "", "a\u{0}b"] {
        let error = lab.hypervisor.create_volume(&volume(&pool, name)).await.expect_err("no file name");
        assert!(matches!(error, Error::Unwritable(_)), "{name:?}: {error}");
    }
    gone(lab, &pool).await;
}

pub(super) async fn a_volume_grows_and_never_shrinks(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let pool = pool(lab, "vol-grow").await;
    lab.hypervisor.create_volume(&volume(&pool, "a")).await.expect("it can be made");
    let a = VolumeRef { pool: pool.name.clone(), volume: "a".to_owned() };
    for (asked, has) in [(16 * MIB, 16 * MIB), (4 * MIB, 16 * MIB)] {
        lab.hypervisor.grow_volume(&a, asked).await.expect("it grows, or stays");
        assert_eq!(named(lab, &pool, "a").await.map(|volume| volume.capacity), Some(has));
    }
    gone(lab, &pool).await;
}

pub(super) async fn a_copy_has_what_it_was_copied_from(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let pool = pool(lab, "vol-copy").await;
    lab.hypervisor.create_volume(&volume(&pool, "image")).await.expect("it can be made");
    let copy = |name: &str, from: &str, capacity| VolumeSpec {
        capacity,
        source: VolumeSource::CopyOf(from.to_owned()),
        ..volume(&pool, name)
    };
    for (name, asked, has) in [("same", MIB, 8 * MIB), ("larger", 32 * MIB, 32 * MIB)] {
        lab.hypervisor.create_volume(&copy(name, "image", asked)).await.expect("it can be copied");
        let found = named(lab, &pool, name).await.expect("it is there");
        assert_eq!((found.capacity, found.backing), (has, None), "{name}");
    }
    let error = lab.hypervisor.create_volume(&copy("c", "nothing", MIB)).await.expect_err("nothing to copy");
    assert!(error.is_not_found(), "{error}");
    assert_eq!(named(lab, &pool, "c").await, None, "and nothing is left of it");
    gone(lab, &pool).await;
}

pub(super) async fn a_volume_on_another_stores_the_difference(lab: &Lab) {
    if !lab.can_all() {
        return;
    }
    let pool = pool(lab, "vol-on").await;
    lab.hypervisor.create_volume(&volume(&pool, "image")).await.expect("it can be made");
    let on = VolumeSpec { capacity: 32 * MIB, source: VolumeSource::On("image".to_owned()), ..volume(&pool, "disk") };
    lab.hypervisor.create_volume(&on).await.expect("it can be made");
    let found = named(lab, &pool, "disk").await.expect("it is there");
    assert_eq!((found.capacity, found.backing), (32 * MIB, Some(format!("{}/image", pool.path))));
    gone(lab, &pool).await;
}
