//! What libvirt tells without being asked: one event loop for the process, one subscription for each connection.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::channel::mpsc::{UnboundedSender, unbounded};
use hypervisor::{Event, Events};
use virt::{connect::Connect, error::Error};

use crate::ffi;

/// Who listens.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<UnboundedSender<Event>>>);

impl Listeners {
    pub(crate) fn listen(&self) -> Events {
        let (listener, events) = unbounded();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
        Box::pin(events)
    }

    pub(crate) fn tell(&self, event: &Event) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.unbounded_send(event.clone()).is_ok());
    }
}

/// libvirt's event loop runs on a thread of its own, for as long as the process does. It has to be there before the first
/// connection is opened: that one decides whether it can hear at all.
pub(crate) fn start_loop() -> Result<(), Error> {
    static LOOP: OnceLock<Result<(), Error>> = OnceLock::new();
    let started = LOOP.get_or_init(|| {
        // What goes wrong is said by who called, not by the library on its own.
        virt::error::clear_error_callback();
        virt::event::event_register_default_impl()?;
        let run = || {
            loop {
                if let Err(error) = virt::event::event_run_default_impl() {
                    tracing::warn!(error = error.message(), "libvirt's event loop stumbled");
                }
            }
        };
        std::thread::Builder::new()
            .name("libvirt-events".to_owned())
            .spawn(run)
            .map(drop)
            .expect("a process that cannot start one thread at its start cannot work");
        Ok(())
    });
    started.clone()
}

/// What is registered on a connection, until it is dropped.
pub(crate) struct Subscription {
    connect: Connect,
    ids: Vec<i32>,
}

impl Subscription {
    pub(crate) fn new(connect: &Connect, listeners: &Arc<Listeners>) -> Result<Self, Error> {
        let mut subscription = Self { connect: connect.clone(), ids: Vec::new() };
        subscription.ids.push(ffi::on_lifecycle(connect, listeners.clone())?);
        subscription.ids.push(ffi::on_reboot(connect, listeners.clone())?);
        // Drivers that live in this process never lose their connection, and offer no such call.
        if let Err(error) = ffi::on_close(connect, listeners.clone()) {
            tracing::debug!(error = error.message(), "libvirt does not tell when the connection closes");
        }
        Ok(subscription)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        for id in &self.ids {
            ffi::stop_listening(&self.connect, *id);
        }
        ffi::stop_listening_for_close(&self.connect);
    }
}
