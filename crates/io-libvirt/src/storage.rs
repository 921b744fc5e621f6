//! Pools and volumes. A volume that is being made has a marker beside it, so that half a volume is never taken for one.
//!
//! ```text
//!   marker made ──► volume made, filled, grown ──► marker deleted
//!        │ crash          │ crash                       │
//!        └────────────────┴── the marker says so: listed by nobody, deleted by the next attempt
//! ```

use std::{fs::File, io::Read};

use hypervisor::{
    Error, Kind, Listing, Pool, PoolSpec, Result, Unreadable, Uuid, Volume, VolumeFormat, VolumeRef, VolumeSource,
    VolumeSpec, xml,
};
use virt::{storage_pool::StoragePool, storage_vol::StorageVol, stream::Stream};
use virt_sys as sys;

use crate::{connection::Cx, domains, error::found};

/// What the marker of a volume is called: its name and this.
const MAKING: &str = ".being-made";
/// How much is sent at once.
const CHUNK: usize = 256 << 10;

pub(crate) fn pools(cx: &Cx) -> Result<Listing<Pool>> {
    let mut listing = Listing::default();
    for handle in cx.done(cx.connect.list_all_storage_pools(0))? {
        let name = handle.get_name().unwrap_or_else(|_| "?".to_owned());
        match of(cx, &handle) {
            Ok(pool) => listing.found.push(pool),
            Err(Error::Unreadable(unreadable)) => listing.unreadable.push(Unreadable { name, ..unreadable }),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    listing.found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    Ok(listing)
}

fn of(cx: &Cx, handle: &StoragePool) -> Result<Pool> {
    let spec = xml::read_pool(&cx.done(handle.get_xml_desc(0))?)?;
    let active = cx.done(handle.is_active())?;
    let (capacity, available) = if active {
        let info = cx.done(handle.get_info())?;
        (info.capacity, info.available)
    } else {
        (0, 0)
    };
    Ok(Pool { spec, active, autostart: cx.done(handle.get_autostart())?, capacity, available })
}

fn lookup(cx: &Cx, name: &str) -> Result<StoragePool> {
    let missing = || Error::NotFound { kind: Kind::Pool, name: name.to_owned() };
    if name.contains('\0') {
        return Err(missing());
    }
    cx.done(found(StoragePool::lookup_by_name(&cx.connect, name)))?.ok_or_else(missing)
}

fn active(cx: &Cx, name: &str) -> Result<StoragePool> {
    let pool = lookup(cx, name)?;
    if !cx.done(pool.is_active())? {
        let (name, state) = (name.to_owned(), "not active".to_owned());
        return Err(Error::WrongState { kind: Kind::Pool, name, state, doing: cx.doing.clone() });
    }
    Ok(pool)
}

pub(crate) fn define_pool(cx: &Cx, spec: &PoolSpec) -> Result<()> {
    let xml = xml::pool(spec)?;
    match lookup(cx, &spec.name) {
        Ok(pool) if of(cx, &pool)?.spec == *spec => cx.done(pool.set_autostart(true)).map(drop),
        Ok(_) => Err(Error::Exists { kind: Kind::Pool, name: spec.name.clone() }),
        Err(error) if error.is_not_found() => {
            let pool = cx.done(StoragePool::define_xml(&cx.connect, &xml, 0))?;
            cx.done(pool.set_autostart(true)).map(drop)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn start_pool(cx: &Cx, name: &str) -> Result<()> {
    let pool = lookup(cx, name)?;
    if !cx.done(pool.is_active())? {
        cx.done(pool.build(0))?;
        cx.done(pool.create(0))?;
    }
    Ok(())
}

pub(crate) fn stop_pool(cx: &Cx, name: &str) -> Result<()> {
    let pool = lookup(cx, name)?;
    if cx.done(pool.is_active())? { cx.done(pool.destroy()) } else { Ok(()) }
}

pub(crate) fn undefine_pool(cx: &Cx, name: &str) -> Result<()> {
    let pool = lookup(cx, name)?;
    if cx.done(pool.is_active())? {
        let (name, state, doing) = (name.to_owned(), "active".to_owned(), "undefine it".to_owned());
        return Err(Error::WrongState { kind: Kind::Pool, name, state, doing });
    }
    cx.done(pool.undefine())
}

pub(crate) fn volumes(cx: &Cx, pool: &str) -> Result<Listing<Volume>> {
    let handle = active(cx, pool)?;
    // Others put files there, and the agent itself does. While a volume is being made libvirt refuses: what it knows then is
    // as new as can be.
    let _ = handle.refresh(0);
    let mut listing: Listing<Volume> = Listing::default();
    for volume in cx.done(handle.list_all_volumes(0))? {
        let name = volume.get_name().unwrap_or_else(|_| "?".to_owned());
        match volume.get_xml_desc(0) {
            Ok(text) => match xml::read_volume(&text) {
                Ok(volume) => listing.found.push(volume),
                Err(unreadable) => listing.unreadable.push(Unreadable { name, ..unreadable }),
            },
            Err(error) if crate::error::is_missing(&error) => {}
            Err(error) => return cx.done(Err(error)),
        }
    }
    let half: Vec<String> =
        listing.found.iter().filter_map(|volume| volume.name.strip_suffix(MAKING)).map(str::to_owned).collect();
    listing.found.retain(|volume| !volume.name.ends_with(MAKING) && !half.contains(&volume.name));
    listing.found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

fn volume(cx: &Cx, pool: &StoragePool, name: &str) -> Result<Option<StorageVol>> {
    if name.contains('\0') {
        return Ok(None);
    }
    cx.done(found(StorageVol::lookup_by_name(pool, name)))
}

fn required(cx: &Cx, pool: &StoragePool, volume_ref: &VolumeRef) -> Result<StorageVol> {
    let VolumeRef { pool: pool_name, volume: name } = volume_ref;
    let missing = || Error::NotFound { kind: Kind::Volume, name: format!("{pool_name}/{name}") };
    volume(cx, pool, name)?.ok_or_else(missing)
}

pub(crate) fn create(cx: &Cx, spec: &VolumeSpec) -> Result<()> {
    // Before anything is touched: a name that leaves the pool is refused here.
    let probe = matches!(spec.source, VolumeSource::On(_)).then_some(("", VolumeFormat::Qcow2));
    xml::volume(spec, probe)?;
    let pool = active(cx, &spec.pool)?;
    let marker = format!("{}{MAKING}", spec.name);
    let half = volume(cx, &pool, &marker)?;
    if let Some(there) = volume(cx, &pool, &spec.name)? {
        if half.is_none() {
            return Err(Error::Exists { kind: Kind::Volume, name: format!("{}/{}", spec.pool, spec.name) });
        }
        cx.done(there.delete(0))?;
    }
    let marker = if let Some(marker) = half {
        marker
    } else {
        let marker = VolumeSpec {
            name: marker,
            format: VolumeFormat::Raw,
            capacity: 512,
            sparse: true,
            source: VolumeSource::Blank,
            ..spec.clone()
        };
        cx.done(StorageVol::create_xml(&pool, &xml::volume(&marker, None)?, 0))?
    };
    let made = fill(cx, &pool, spec);
    if made.is_err()
        && let Ok(Some(half)) = volume(cx, &pool, &spec.name)
    {
        // If this fails as well, the marker stays, and says what it is.
        cx.done(half.delete(0))?;
    }
    cx.done(marker.delete(0))?;
    made
}

fn fill(cx: &Cx, pool: &StoragePool, spec: &VolumeSpec) -> Result<()> {
    let from = |name: &str| required(cx, pool, &VolumeRef { pool: spec.pool.clone(), volume: name.to_owned() });
    match &spec.source {
        VolumeSource::Blank => cx.done(StorageVol::create_xml(pool, &xml::volume(spec, None)?, 0)).map(drop),
        VolumeSource::On(name) => {
            let text = cx.done(from(name)?.get_xml_desc(0))?;
            let below = xml::read_volume(&text)?;
            let format = below.format.unwrap_or(VolumeFormat::Raw);
            let spec = VolumeSpec { capacity: spec.capacity.max(below.capacity), ..spec.clone() };
            let xml = xml::volume(&spec, Some((&below.path, format)))?;
            cx.done(StorageVol::create_xml(pool, &xml, 0)).map(drop)
        }
        VolumeSource::CopyOf(name) => {
            let source = from(name)?;
            let size = cx.done(source.get_info())?.capacity;
            let same = VolumeSpec { capacity: size, ..spec.clone() };
            let made = cx.done(StorageVol::create_xml_from(pool, &xml::volume(&same, None)?, &source, 0))?;
            if spec.capacity > size {
                cx.done(made.resize(spec.capacity, 0))?;
            }
            Ok(())
        }
        VolumeSource::File(path) => upload(cx, pool, spec, path),
    }
}

fn upload(cx: &Cx, pool: &StoragePool, spec: &VolumeSpec, path: &std::path::Path) -> Result<()> {
    let local =
        |error: std::io::Error| Error::Refused { doing: cx.doing.clone(), why: format!("{}: {error}", path.display()) };
    let mut file = File::open(path).map_err(local)?;
    let length = file.metadata().map_err(local)?.len();
    // Byte by byte, whatever the bytes mean: libvirt looks at them when the pool is refreshed.
    let raw = VolumeSpec { format: VolumeFormat::Raw, capacity: length, sparse: true, ..spec.clone() };
    let made = cx.done(StorageVol::create_xml(pool, &xml::volume(&raw, None)?, 0))?;
    let stream = cx.done(Stream::new(&cx.connect, 0))?;
    cx.done(made.upload(&stream, 0, length, 0))?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = file.read(&mut buffer).map_err(local)?;
        if read == 0 {
            break;
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            let sent = cx.done(stream.send(rest))?;
            rest = &rest[sent..];
        }
    }
    cx.done(stream.finish())?;
    let _ = pool.refresh(0);
    Ok(())
}

pub(crate) fn grow(cx: &Cx, volume: &VolumeRef, capacity: u64) -> Result<()> {
    let pool = active(cx, &volume.pool)?;
    let handle = required(cx, &pool, volume)?;
    if cx.done(handle.get_info())?.capacity < capacity {
        cx.done(handle.resize(capacity, 0))?;
    }
    Ok(())
}

pub(crate) fn grow_disk(cx: &Cx, uuid: Uuid, target: &str, capacity: u64) -> Result<()> {
    let handle = domains::lookup(cx, uuid)?;
    let state = domains::state(cx, &handle)?;
    if !state.has_guest() || target.contains('\0') {
        let (name, state, doing) = (uuid.to_string(), state.to_string(), cx.doing.clone());
        return Err(Error::WrongState { kind: Kind::Domain, name, state, doing });
    }
    if cx.done(handle.get_block_info(target, 0))?.capacity < capacity {
        cx.done(handle.block_resize(target, capacity, sys::VIR_DOMAIN_BLOCK_RESIZE_BYTES))?;
    }
    Ok(())
}

pub(crate) fn delete(cx: &Cx, volume: &VolumeRef) -> Result<()> {
    let pool = active(cx, &volume.pool)?;
    cx.done(required(cx, &pool, volume)?.delete(0))
}
