//! Whether KVM really works: a trial guest that ends by itself within a second where it does.
//!
//! A device file that opens proves nothing: nested in another hypervisor, `/dev/kvm` may be there and every guest hang for
//! ever. The trial guest needs no disk and no file: with nothing to boot, its firmware restarts the machine at once, and
//! libvirt is told to end a guest that restarts. If it is still there after some seconds, its processor has not run.

use std::{thread, time::Duration};

use hypervisor::{Acceleration, Result};
use virt::domain::Domain;
use virt_sys as sys;

use crate::{connection::Cx, error::is_missing};

/// What a real processor does in a second, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(50);

/// A guest that ends as soon as its firmware has run. `kind` is libvirt's domain type.
fn guest(kind: &str) -> String {
    format!(
        "<domain type='{kind}'>\
           <name>slipway-trial-{kind}</name>\
           <memory unit='MiB'>32</memory>\
           <vcpu>1</vcpu>\
           <os><type machine='q35'>hvm</type><bios rebootTimeout='0'/></os>\
           <features><acpi/></features>\
           <on_poweroff>destroy</on_poweroff><on_reboot>destroy</on_reboot><on_crash>destroy</on_crash>\
           <devices><memballoon model='none'/></devices>\
         </domain>"
    )
}

pub(crate) fn run(cx: &Cx) -> Result<Acceleration> {
    let emulated = |why: String| {
        tracing::warn!(why, "guests are emulated");
        Ok(Acceleration::Emulated { why })
    };
    if cx.done(cx.connect.get_type())? != "QEMU" {
        return Ok(Acceleration::Unknown);
    }
    let capabilities = cx.done(cx.connect.get_capabilities())?;
    if !capabilities.contains("<domain type='kvm'") {
        return emulated("libvirt finds no usable /dev/kvm".to_owned());
    }
    match trial(cx, "kvm") {
        Ok(true) => Ok(Acceleration::Kvm),
        Ok(false) => {
            emulated(format!("there is a /dev/kvm, but a trial guest made no progress within {} s", PATIENCE.as_secs()))
        }
        Err(error) => emulated(format!("a trial guest with KVM does not start: {}", error.message())),
    }
}

/// Whether a guest of this kind comes to its end.
pub(crate) fn trial(cx: &Cx, kind: &str) -> std::result::Result<bool, virt::error::Error> {
    // One that an earlier agent left behind is in the way of its name.
    if let Ok(old) = Domain::lookup_by_name(&cx.connect, &format!("slipway-trial-{kind}")) {
        let _ = old.destroy();
    }
    let domain = Domain::create_xml(&cx.connect, &guest(kind), sys::VIR_DOMAIN_START_AUTODESTROY)?;
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        match domain.is_active() {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            Err(error) if is_missing(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
    match domain.destroy() {
        Err(error) if !is_missing(&error) => Err(error),
        _ => Ok(false),
    }
}
