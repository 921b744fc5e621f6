//! A hypervisor in memory: the power state machine of real guests, faults on demand, and the cases that real ones pass too.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use hypervisor::Hypervisor;
//! use testkit::hypervisor::{FakeHypervisor, Shape};
//!
//! let fake = FakeHypervisor::on(Shape::cells(2).cores(4).threads(2).host());
//! fake.fail("create_volume", 1, FakeHypervisor::disk_full());
//! assert!(fake.domains().await.unwrap().found.is_empty());
//! # }
//! ```
//!
//! Definitions are kept as the XML that libvirt would keep, written and read by the same code: what XML cannot carry, the
//! fake does not carry either. A call is `name(object)` in [`FakeHypervisor::calls`], for tests that count writes.

pub mod conformance;
mod serve;
mod shape;
mod world;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::hypervisor::{Change, Error, Event, Host, PowerState, Uuid};
use futures::channel::mpsc::UnboundedSender;

pub use shape::Shape;
use world::World;

/// A hypervisor in memory. Clones are the same hypervisor.
#[derive(Clone)]
pub struct FakeHypervisor {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    world: World,
    faults: Vec<Fault>,
    /// Unreachable: libvirt is not there. Guests are.
    crashed: bool,
    calls: Vec<String>,
    listeners: Vec<UnboundedSender<Event>>,
}

/// What goes wrong with a call.
struct Fault {
    call: &'static str,
    /// Which of the calls from now on, counted from 1.
    nth: u32,
    error: Error,
    /// Carried out all the same: only the answer is lost.
    carried_out: bool,
}

impl FakeHypervisor {
    /// A hypervisor on this machine, with nothing on it.
    pub fn on(host: Host) -> Self {
        let inner = Inner {
            world: World::new(host),
            faults: Vec::new(),
            crashed: false,
            calls: Vec::new(),
            listeners: Vec::new(),
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A test that panicked while it held the lock has failed already; the others go on.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a full disk says.
    pub fn disk_full() -> Error {
        Error::NoSpace { doing: "write".to_owned(), why: "No space left on device".to_owned() }
    }

    /// What a refusal says.
    pub fn refusal() -> Error {
        Error::Refused { doing: "do it".to_owned(), why: "the hypervisor says no".to_owned() }
    }

    /// The `nth` call of this name from now on fails with `error`, and does nothing.
    pub fn fail(&self, call: &'static str, nth: u32, error: Error) {
        self.lock().faults.push(Fault { call, nth, error, carried_out: false });
    }

    /// The `nth` call of this name from now on is carried out, but its answer is lost.
    pub fn lose_answer(&self, call: &'static str, nth: u32) {
        let error = Error::Unreachable { doing: call.to_owned(), why: "connection reset".to_owned() };
        self.lock().faults.push(Fault { call, nth, error, carried_out: true });
    }

    /// Forgets all faults that have not happened yet.
    pub fn no_more_faults(&self) {
        self.lock().faults.clear();
    }

    /// The hypervisor dies: no call is answered until [`FakeHypervisor::come_back`]. Guests run on.
    pub fn crash(&self) {
        self.lock().crashed = true;
    }

    /// The hypervisor is there again, with what it had.
    pub fn come_back(&self) {
        let mut inner = self.lock();
        inner.crashed = false;
        inner.tell(&Event::Resync);
    }

    /// The machine loses its power and starts again: no guest runs, what starts by itself does.
    pub fn reboot_host(&self) {
        let mut inner = self.lock();
        inner.world.reboot();
        inner.tell(&Event::Resync);
    }

    /// A guest does something of its own accord.
    pub fn guest(&self, uuid: Uuid, act: Guest) {
        let mut inner = self.lock();
        let change = match act {
            Guest::ShutsDown => Change::Stopped,
            Guest::Crashes => Change::Crashed,
            Guest::Reboots => Change::Rebooted,
            Guest::IgnoresAcpi => {
                inner.world.stubborn(uuid);
                return;
            }
        };
        match act {
            Guest::ShutsDown => inner.world.stop(uuid, PowerState::Off),
            Guest::Crashes => inner.world.stop(uuid, PowerState::Crashed),
            Guest::Reboots | Guest::IgnoresAcpi => {}
        }
        inner.tell(&Event::Domain { uuid, change });
    }

    /// Somebody defines a domain with tools of their own.
    pub fn define_by_hand(&self, xml: &str) {
        self.lock().world.define_raw(xml);
    }

    /// A volume is gone, nobody knows why.
    pub fn lose_volume(&self, pool: &str, volume: &str) {
        self.lock().world.lose_volume(pool, volume);
    }

    /// The file system of a pool is not mounted: the directory is there, and empty.
    pub fn unmount_pool(&self, pool: &str) {
        self.lock().world.unmount(pool);
    }

    /// The file system of a pool is mounted again.
    pub fn mount_pool(&self, pool: &str) {
        self.lock().world.mount(pool);
    }

    /// A copy that was interrupted leaves half a volume behind.
    pub fn leave_half_made(&self, pool: &str, volume: &str) {
        self.lock().world.leave_half_made(pool, volume);
    }

    /// The calls that change something, in their order, those that failed included: `define_domain(worker-0)`.
    pub fn calls(&self) -> Vec<String> {
        self.lock().calls.clone()
    }

    /// Forgets the calls.
    pub fn forget_calls(&self) {
        self.lock().calls.clear();
    }
}

/// What a guest does of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// It shuts down.
    ShutsDown,
    /// It falls over.
    Crashes,
    /// It restarts.
    Reboots,
    /// From now on it does not hear the power button.
    IgnoresAcpi,
}

impl Inner {
    fn tell(&mut self, event: &Event) {
        self.listeners.retain(|listener| listener.unbounded_send(event.clone()).is_ok());
    }

    /// What goes wrong with this call, if anything.
    fn fault(&mut self, call: &str) -> Option<Fault> {
        for fault in self.faults.iter_mut().filter(|fault| fault.call == call) {
            fault.nth = fault.nth.saturating_sub(1);
        }
        let at = self.faults.iter().position(|fault| fault.call == call && fault.nth == 0)?;
        Some(self.faults.remove(at))
    }
}
