//! Calls that `virt` does not wrap: events, NMI, DHCP leases, statistics. All unsafe code of Slipway is in here.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_void},
    mem, ptr,
    sync::Arc,
};

use hypervisor::{Change, Event, Lease, Stats, Uuid};
use virt::{connect::Connect, domain::Domain, error::Error, network::Network};
use virt_sys as sys;

use crate::events::Listeners;

/// What a callback is given: who listens. It is freed by libvirt, through [`release`].
type Opaque = Arc<Listeners>;

extern "C" fn release(opaque: *mut c_void) {
    // SAFETY: every `opaque` that is registered together with this function is an `Arc<Listeners>` of `into_raw`, and libvirt
    // calls this once, after the last call of the callback.
    drop(unsafe { Opaque::from_raw(opaque.cast()) });
}

/// Runs `f` with what the callback was registered with.
fn with(opaque: *mut c_void, f: impl FnOnce(&Listeners)) {
    // SAFETY: as in `release`; libvirt frees it only after this call, so a borrow is good for as long as `f` runs.
    let listeners = unsafe { &*opaque.cast::<Listeners>() };
    f(listeners);
}

fn uuid_of(domain: sys::virDomainPtr) -> Option<Uuid> {
    let mut bytes = [0u8; sys::VIR_UUID_BUFLEN as usize];
    // SAFETY: libvirt hands callbacks a domain that is good for as long as they run; the buffer has the size it asks for.
    let found = unsafe { sys::virDomainGetUUID(domain, bytes.as_mut_ptr()) };
    (found == 0).then(|| Uuid::from_bytes(bytes))
}

fn tell(opaque: *mut c_void, domain: sys::virDomainPtr, change: Change) {
    if let Some(uuid) = uuid_of(domain) {
        with(opaque, |listeners| listeners.tell(&Event::Domain { uuid, change }));
    }
}

extern "C" fn lifecycle(
    _connect: sys::virConnectPtr,
    domain: sys::virDomainPtr,
    event: c_int,
    detail: c_int,
    opaque: *mut c_void,
) {
    let is = |value: u32| u32::try_from(event) == Ok(value);
    let change = if is(sys::VIR_DOMAIN_EVENT_DEFINED) {
        Change::Defined
    } else if is(sys::VIR_DOMAIN_EVENT_UNDEFINED) {
        Change::Undefined
    } else if is(sys::VIR_DOMAIN_EVENT_STARTED) {
        Change::Started
    } else if is(sys::VIR_DOMAIN_EVENT_SUSPENDED) || is(sys::VIR_DOMAIN_EVENT_RESUMED) {
        Change::Paused
    } else if is(sys::VIR_DOMAIN_EVENT_STOPPED) {
        let crashed = u32::try_from(detail) == Ok(sys::VIR_DOMAIN_EVENT_STOPPED_CRASHED);
        if crashed { Change::Crashed } else { Change::Stopped }
    } else if is(sys::VIR_DOMAIN_EVENT_CRASHED) {
        Change::Crashed
    } else {
        return;
    };
    tell(opaque, domain, change);
}

extern "C" fn reboot(_connect: sys::virConnectPtr, domain: sys::virDomainPtr, opaque: *mut c_void) {
    tell(opaque, domain, Change::Rebooted);
}

extern "C" fn closed(_connect: sys::virConnectPtr, _reason: c_int, opaque: *mut c_void) {
    with(opaque, |listeners| listeners.tell(&Event::Resync));
}

pub(crate) fn on_lifecycle(connect: &Connect, listeners: Opaque) -> Result<i32, Error> {
    type Callback = extern "C" fn(sys::virConnectPtr, sys::virDomainPtr, c_int, c_int, *mut c_void);
    let callback: Callback = lifecycle;
    // SAFETY: libvirt asks for callbacks of every event under one type and calls this one, registered for lifecycle events,
    // with the arguments that `virConnectDomainEventCallback` has: those of `Callback`.
    let callback = unsafe { mem::transmute::<Callback, unsafe extern "C" fn(_, _, _)>(callback) };
    register(connect, sys::VIR_DOMAIN_EVENT_ID_LIFECYCLE, callback, listeners)
}

pub(crate) fn on_reboot(connect: &Connect, listeners: Opaque) -> Result<i32, Error> {
    register(connect, sys::VIR_DOMAIN_EVENT_ID_REBOOT, reboot, listeners)
}

fn register(
    connect: &Connect,
    event: u32,
    callback: unsafe extern "C" fn(sys::virConnectPtr, sys::virDomainPtr, *mut c_void),
    listeners: Opaque,
) -> Result<i32, Error> {
    let opaque = Arc::into_raw(listeners).cast_mut().cast::<c_void>();
    let event = c_int::try_from(event).expect("event numbers are small");
    // SAFETY: the connection is open; a null domain means all of them; `opaque` goes with the `release` that frees it.
    let id = unsafe {
        sys::virConnectDomainEventRegisterAny(
            connect.as_ptr(),
            ptr::null_mut(),
            event,
            Some(callback),
            opaque,
            Some(release),
        )
    };
    if id < 0 {
        release(opaque);
        return Err(Error::last_error());
    }
    Ok(id)
}

pub(crate) fn stop_listening(connect: &Connect, id: i32) {
    // SAFETY: the connection is open, if perhaps broken, and `id` is one that it gave. A broken one cannot tell the server,
    // which has forgotten us already; what is held here is freed either way.
    let _ = unsafe { sys::virConnectDomainEventDeregisterAny(connect.as_ptr(), id) };
}

pub(crate) fn on_close(connect: &Connect, listeners: Opaque) -> Result<(), Error> {
    let opaque = Arc::into_raw(listeners).cast_mut().cast::<c_void>();
    // SAFETY: the connection is open; `opaque` goes with the `release` that frees it.
    let done = unsafe { sys::virConnectRegisterCloseCallback(connect.as_ptr(), Some(closed), opaque, Some(release)) };
    if done < 0 {
        release(opaque);
        return Err(Error::last_error());
    }
    Ok(())
}

pub(crate) fn stop_listening_for_close(connect: &Connect) {
    // SAFETY: the connection is open, if perhaps broken; where no callback is registered the call says so and does nothing.
    let _ = unsafe { sys::virConnectUnregisterCloseCallback(connect.as_ptr(), Some(closed)) };
}

pub(crate) fn inject_nmi(domain: &Domain) -> Result<(), Error> {
    // SAFETY: the handle is good for as long as it is borrowed; there are no flags.
    let done = unsafe { sys::virDomainInjectNMI(domain.as_ptr(), 0) };
    if done < 0 { Err(Error::last_error()) } else { Ok(()) }
}

pub(crate) fn leases(network: &Network) -> Result<Vec<Lease>, Error> {
    let mut list: *mut sys::virNetworkDHCPLeasePtr = ptr::null_mut();
    // SAFETY: the handle is good for as long as it is borrowed; a null MAC means all; libvirt allocates the list.
    let count = unsafe { sys::virNetworkGetDHCPLeases(network.as_ptr(), ptr::null(), &raw mut list, 0) };
    let Ok(count) = usize::try_from(count) else { return Err(Error::last_error()) };
    let mut leases = Vec::new();
    for at in 0..count {
        // SAFETY: libvirt says that the list has `count` entries, each a lease of ours to free.
        unsafe {
            let lease = *list.add(at);
            if let (Some(mac), Some(ip)) = (text((*lease).mac), text((*lease).ipaddr))
                && let (Ok(mac), Ok(ip)) = (mac.parse(), ip.parse())
            {
                leases.push(Lease { mac, ip });
            }
            sys::virNetworkDHCPLeaseFree(lease);
        }
    }
    free(list.cast());
    leases.sort();
    Ok(leases)
}

/// A text of libvirt's.
///
/// # Safety
/// `text` is null or a string that ends with a zero byte.
unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Frees what libvirt allocated.
fn free(memory: *mut c_void) {
    unsafe extern "C" {
        fn free(memory: *mut c_void);
    }
    // SAFETY: libvirt allocates its lists with malloc and says that the caller frees them so; null is allowed.
    unsafe { free(memory) };
}

pub(crate) fn stats(connect: &Connect) -> Result<BTreeMap<Uuid, Stats>, Error> {
    let wanted = sys::VIR_DOMAIN_STATS_CPU_TOTAL
        | sys::VIR_DOMAIN_STATS_BALLOON
        | sys::VIR_DOMAIN_STATS_INTERFACE
        | sys::VIR_DOMAIN_STATS_BLOCK;
    let mut records: *mut sys::virDomainStatsRecordPtr = ptr::null_mut();
    // SAFETY: the connection is open; libvirt allocates the list.
    let count = unsafe {
        sys::virConnectGetAllDomainStats(
            connect.as_ptr(),
            wanted,
            &raw mut records,
            sys::VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE,
        )
    };
    let Ok(count) = usize::try_from(count) else { return Err(Error::last_error()) };
    let mut all = BTreeMap::new();
    for at in 0..count {
        // SAFETY: libvirt says that the list has `count` records, each with `nparams` parameters; all of it lives until
        // `virDomainStatsRecordListFree`.
        let (domain, parameters) = unsafe {
            let record = *records.add(at);
            let parameters: &[sys::virTypedParameter] = match usize::try_from((*record).nparams) {
                Ok(count) if count > 0 => std::slice::from_raw_parts((*record).params, count),
                _ => &[],
            };
            ((*record).dom, parameters)
        };
        if let Some(uuid) = uuid_of(domain) {
            all.insert(uuid, sum(parameters));
        }
    }
    // SAFETY: it is the list of the call above, and nothing of it is used any more.
    unsafe { sys::virDomainStatsRecordListFree(records) };
    Ok(all)
}

fn sum(parameters: &[sys::virTypedParameter]) -> Stats {
    let mut stats = Stats::default();
    for parameter in parameters {
        // SAFETY: libvirt fills `field` with a string that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(parameter.field.as_ptr()) }.to_string_lossy();
        let is = |kind: u32| u32::try_from(parameter.type_) == Ok(kind);
        let value = if is(sys::VIR_TYPED_PARAM_ULLONG) {
            // SAFETY: `type_` says which member of the union is filled.
            unsafe { parameter.value.ul }
        } else {
            continue;
        };
        let (group, last) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').take(2).collect::<Vec<_>>());
        match (group, last.as_slice()) {
            ("cpu", ["time", "cpu"]) => stats.cpu_ns = value,
            ("balloon", ["rss", _]) => stats.rss_kib = value,
            ("block", ["bytes", "rd"]) => stats.read_bytes += value,
            ("block", ["bytes", "wr"]) => stats.written_bytes += value,
            ("net", ["bytes", "rx"]) => stats.received_bytes += value,
            ("net", ["bytes", "tx"]) => stats.sent_bytes += value,
            _ => {}
        }
    }
    stats
}
