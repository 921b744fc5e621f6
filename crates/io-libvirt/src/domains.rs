//! Domains: read, defined, changed, removed.

use hypervisor::{
    Domain, DomainSpec, Effect, Error, Kind, Listing, Mark, Media, PowerState, Result, Settings, Unreadable, Uuid, xml,
};
use virt::domain::Domain as Handle;
use virt_sys as sys;

use crate::{connection::Cx, error::found};

pub(crate) fn list(cx: &Cx) -> Result<Listing<Domain>> {
    let mut listing = Listing::default();
    for handle in cx.done(cx.connect.list_all_domains(0))? {
        let name = handle.get_name().unwrap_or_else(|_| "?".to_owned());
        match of(cx, &handle) {
            Ok(domain) => listing.found.push(domain),
            Err(Error::Unreadable(unreadable)) => listing.unreadable.push(Unreadable { name, ..unreadable }),
            // It went while the list was read.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    listing.found.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    Ok(listing)
}

pub(crate) fn read(cx: &Cx, uuid: Uuid) -> Result<Domain> {
    of(cx, &lookup(cx, uuid)?)
}

pub(crate) fn lookup(cx: &Cx, uuid: Uuid) -> Result<Handle> {
    let handle = cx.done(found(Handle::lookup_by_uuid(&cx.connect, uuid)))?;
    handle.ok_or_else(|| Error::NotFound { kind: Kind::Domain, name: uuid.to_string() })
}

fn of(cx: &Cx, handle: &Handle) -> Result<Domain> {
    let state = state(cx, handle)?;
    let (spec, settings) = xml::read_domain(&config(cx, handle)?)?;
    let running = if state.has_guest() {
        let live = cx.done(handle.get_xml_desc(0))?;
        Some(xml::read_domain(&live)?.0)
    } else {
        None
    };
    let persistent = cx.done(handle.is_persistent())?;
    Ok(Domain { spec, settings, state, running, persistent })
}

/// What is defined for the next start.
fn config(cx: &Cx, handle: &Handle) -> Result<String> {
    cx.done(handle.get_xml_desc(sys::VIR_DOMAIN_XML_INACTIVE))
}

pub(crate) fn state(cx: &Cx, handle: &Handle) -> Result<PowerState> {
    let (state, _) = cx.done(handle.get_state())?;
    Ok(match state {
        sys::VIR_DOMAIN_SHUTOFF => PowerState::Off,
        sys::VIR_DOMAIN_SHUTDOWN => PowerState::ShuttingDown,
        sys::VIR_DOMAIN_PAUSED | sys::VIR_DOMAIN_PMSUSPENDED => PowerState::Paused,
        // A domain that crashed and is gone from memory is off like any other.
        sys::VIR_DOMAIN_CRASHED if handle.get_id().is_none() => PowerState::Off,
        sys::VIR_DOMAIN_CRASHED => PowerState::Crashed,
        _ => PowerState::On,
    })
}

pub(crate) fn define(cx: &Cx, spec: &DomainSpec) -> Result<()> {
    let old = cx.done(found(Handle::lookup_by_uuid(&cx.connect, spec.uuid)))?;
    let old = old.map(|handle| config(cx, &handle)).transpose()?;
    let settings = match &old {
        Some(old) => xml::read_domain(old)?.1,
        None => Settings::default(),
    };
    // Built before anything is asked for by name: a name that no XML carries, no call carries either.
    let new = xml::domain(spec, &settings, old.as_deref())?;
    if let Some(other) = cx.done(found(Handle::lookup_by_name(&cx.connect, &spec.name)))?
        && cx.done(other.get_uuid())? != spec.uuid
    {
        return Err(Error::Exists { kind: Kind::Domain, name: spec.name.clone() });
    }
    put(cx, spec, &settings, old.as_deref(), &new)
}

/// Writes a definition, unless it says what is there already.
fn put(cx: &Cx, spec: &DomainSpec, settings: &Settings, old: Option<&str>, new: &str) -> Result<()> {
    if let Some(old) = old
        && let Ok((old_spec, old_settings)) = xml::read_domain(old)
        && (&old_spec, &old_settings) == (spec, settings)
    {
        return Ok(());
    }
    cx.done(Handle::define_xml(&cx.connect, new)).map(drop)
}

/// Changes what is defined, keeping the rest.
fn change(cx: &Cx, uuid: Uuid, change: impl FnOnce(&mut DomainSpec, &mut Settings)) -> Result<()> {
    let old = config(cx, &lookup(cx, uuid)?)?;
    let (mut spec, mut settings) = xml::read_domain(&old)?;
    if spec.mark.is_none() {
        let why = "it is not ours".to_owned();
        return Err(Error::Refused { doing: cx.doing.clone(), why });
    }
    change(&mut spec, &mut settings);
    let new = xml::domain(&spec, &settings, Some(&old))?;
    put(cx, &spec, &settings, Some(&old), &new)
}

pub(crate) fn set(cx: &Cx, uuid: Uuid, set: impl FnOnce(&mut Settings)) -> Result<()> {
    change(cx, uuid, |_, settings| set(settings))
}

pub(crate) fn mark(cx: &Cx, uuid: Uuid, mark: Mark) -> Result<()> {
    change(cx, uuid, |spec, _| spec.mark = Some(mark))
}

pub(crate) fn undefine(cx: &Cx, uuid: Uuid) -> Result<()> {
    let handle = lookup(cx, uuid)?;
    let state = state(cx, &handle)?;
    if state.has_guest() {
        let (name, state, doing) = (uuid.to_string(), state.to_string(), "undefine it".to_owned());
        return Err(Error::WrongState { kind: Kind::Domain, name, state, doing });
    }
    let all = sys::VIR_DOMAIN_UNDEFINE_MANAGED_SAVE
        | sys::VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA
        | sys::VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA
        | sys::VIR_DOMAIN_UNDEFINE_NVRAM;
    match handle.undefine_flags(all) {
        // A driver that keeps none of these knows no flags for them.
        Err(error) if error.message().contains("unsupported flags") => cx.done(handle.undefine()),
        answer => cx.done(answer),
    }
}

/// Puts a medium into the drive, or takes it out: in the running guest first, for that is what may be refused.
pub(crate) fn set_media(cx: &Cx, uuid: Uuid, media: Option<&Media>) -> Result<Effect> {
    let handle = lookup(cx, uuid)?;
    let mut effect = Effect::Nothing;
    if state(cx, &handle)?.has_guest() {
        let live = cx.done(handle.get_xml_desc(0))?;
        if xml::drive_file(&live)?.as_deref() != media.map(|media| media.file.as_str()) {
            // Forced: a guest that has locked its drive has no say in what its BMC does.
            let flags = sys::VIR_DOMAIN_AFFECT_LIVE | sys::VIR_DOMAIN_DEVICE_MODIFY_FORCE;
            cx.done(handle.update_device_flags(&xml::drive(media)?, flags))?;
            effect = Effect::Done;
        }
    }
    set(cx, uuid, |settings| {
        if settings.media.as_ref() != media {
            effect = Effect::Done;
            settings.media = media.cloned();
        }
    })?;
    Ok(effect)
}
