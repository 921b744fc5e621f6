//! Switches power, and keeps what was last known of it.

use hypervisor::{Act, Effect, LastPower, PowerAction, Result, Uuid, xml};
use virt::domain::Domain as Handle;
use virt_sys as sys;

use crate::{
    connection::Cx,
    domains::{lookup, set, state},
    ffi,
};

pub(crate) fn switch(cx: &Cx, uuid: Uuid, action: PowerAction, boot_id: &str) -> Result<Effect> {
    let handle = lookup(cx, uuid)?;
    match action.on(state(cx, &handle)?) {
        Act::Nothing => return Ok(Effect::Nothing),
        Act::Start => start(cx, uuid, &handle, boot_id)?,
        Act::Stop => {
            stop(cx, &handle)?;
            note_ours(cx, uuid, &handle, false, boot_id)?;
        }
        Act::Restart => {
            stop(cx, &handle)?;
            start(cx, uuid, &handle, boot_id)?;
        }
        Act::AskShutdown => drop(cx.done(handle.shutdown())?),
        Act::AskRestart => cx.done(handle.reboot(0))?,
        Act::Interrupt => cx.done(ffi::inject_nmi(&handle))?,
    }
    Ok(Effect::Done)
}

fn stop(cx: &Cx, handle: &Handle) -> Result<()> {
    match handle.destroy() {
        // libvirt kills the guest first and looks afterwards: where somebody else saw it die in between (a libvirtd that is
        // just coming back reads its monitor), it refuses what it has done.
        Err(error) if handle.is_active().unwrap_or(true) => cx.done(Err(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn start(cx: &Cx, uuid: Uuid, handle: &Handle, boot_id: &str) -> Result<()> {
    cx.done(handle.create())?;
    if !is_ours(cx, handle)? {
        return Ok(());
    }
    set(cx, uuid, |settings| {
        settings.boot = settings.boot.after_start();
        settings.last_power = Some(LastPower { on: true, boot_id: boot_id.to_owned() });
    })
}

pub(crate) fn note(cx: &Cx, uuid: Uuid, on: bool, boot_id: &str) -> Result<()> {
    set(cx, uuid, |settings| settings.last_power = Some(LastPower { on, boot_id: boot_id.to_owned() }))
}

fn note_ours(cx: &Cx, uuid: Uuid, handle: &Handle, on: bool, boot_id: &str) -> Result<()> {
    if is_ours(cx, handle)? { note(cx, uuid, on, boot_id) } else { Ok(()) }
}

/// Whether the domain keeps what we know of it: those of others have no place for it, and a transient one that was
/// stopped is gone.
fn is_ours(cx: &Cx, handle: &Handle) -> Result<bool> {
    match handle.get_xml_desc(sys::VIR_DOMAIN_XML_INACTIVE) {
        Err(error) if crate::error::is_missing(&error) => Ok(false),
        config => Ok(xml::read_domain(&cx.done(config)?)?.0.mark.is_some()),
    }
}
