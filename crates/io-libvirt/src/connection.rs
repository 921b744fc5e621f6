//! The connection: calls on threads of their own, within a time limit, over a connection that is made anew when it broke.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hypervisor::{Error, Event, Events, Result, Uuid};
use tokio::{sync::Semaphore, time::timeout};
use virt::connect::Connect;

use crate::{
    error::refused,
    events::{self, Listeners, Subscription},
};

/// Calls that libvirt may hold up at once: enough that one slow copy does not delay the others, few enough that a libvirt
/// that hangs does not eat all threads.
const AT_ONCE: usize = 16;
/// Locks of domains; two that share one wait for each other, which is harmless.
const LOCKS: usize = 64;
/// A libvirtd that says nothing for this long, asked three times, is gone.
const KEEP_ALIVE_SECONDS: i32 = 5;

pub(crate) struct Link {
    uri: String,
    open: Mutex<Option<Open>>,
    places: Arc<Semaphore>,
    locks: [Mutex<()>; LOCKS],
    listeners: Arc<Listeners>,
}

/// A connection and what is registered on it. The subscription is dropped first: it holds the connection open.
struct Open {
    #[allow(dead_code, reason = "held for its Drop")]
    subscription: Option<Subscription>,
    connect: Connect,
}

/// What a call works with.
pub(crate) struct Cx {
    pub(crate) connect: Connect,
    /// What is being done, for errors.
    pub(crate) doing: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here is left half done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            open: Mutex::new(None),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            locks: [const { Mutex::new(()) }; LOCKS],
            listeners: Arc::default(),
        }
    }

    pub(crate) fn events(&self) -> Events {
        self.listeners.listen()
    }

    /// Carries out a call that blocks, elsewhere, and waits for it at most this long.
    pub(crate) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        doing: impl Into<String>,
        limit: Duration,
        call: impl FnOnce(&Cx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(None, doing.into(), limit, call).await
    }

    /// The same, while no other call about this domain is carried out.
    pub(crate) async fn exclusive<T: Send + 'static>(
        self: &Arc<Self>,
        uuid: Uuid,
        doing: String,
        limit: Duration,
        call: impl FnOnce(&Cx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(Some(uuid), doing, limit, call).await
    }

    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        domain: Option<Uuid>,
        doing: String,
        limit: Duration,
        call: impl FnOnce(&Cx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let link = self.clone();
        let what = doing.clone();
        let work = async move {
            let place = link.places.clone().acquire_owned().await.expect("the semaphore is never closed");
            let thread = tokio::task::spawn_blocking(move || {
                // Given back only when libvirt has answered, however long ago the caller went away.
                let _place = place;
                let _lock = domain.map(|uuid| lock(&link.locks[uuid.as_u128() as usize % LOCKS]));
                link.blocking(what, call)
            });
            match thread.await {
                Ok(answer) => answer,
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        };
        match timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Timeout { doing, after: limit }),
        }
    }

    fn blocking<T>(&self, doing: String, call: impl FnOnce(&Cx) -> Result<T>) -> Result<T> {
        let cx = Cx { connect: self.connect(&doing)?, doing };
        let answer = call(&cx);
        // A failure may be the connection's: then nothing is known of the call, and the next one starts with a new one.
        if let Err(error) = &answer
            && !cx.connect.is_alive().unwrap_or(false)
        {
            let why = error.to_string();
            self.forget(&cx.connect);
            return Err(Error::Unreachable { doing: cx.doing, why });
        }
        answer
    }

    fn connect(&self, doing: &str) -> Result<Connect> {
        let mut open = lock(&self.open);
        if let Some(there) = open.as_ref() {
            if there.connect.is_alive().unwrap_or(false) {
                return Ok(there.connect.clone());
            }
            *open = None;
        }
        events::start_loop().map_err(|error| unreachable(doing, &error))?;
        let connect = Connect::open(Some(&self.uri)).map_err(|error| unreachable(doing, &error))?;
        // The test driver has no such thing: it is in this process, and as alive as we are.
        let _ = connect.set_keep_alive(KEEP_ALIVE_SECONDS, 3);
        let subscription = match Subscription::new(&connect, &self.listeners) {
            Ok(subscription) => Some(subscription),
            Err(error) => {
                tracing::warn!(
                    error = error.message(),
                    uri = self.uri,
                    "libvirt tells no events: changes are seen late"
                );
                None
            }
        };
        tracing::info!(uri = self.uri, "connected to libvirt");
        *open = Some(Open { subscription, connect: connect.clone() });
        self.listeners.tell(&Event::Resync);
        Ok(connect)
    }

    /// The connection broke; unless there is a new one already, the next call makes one.
    fn forget(&self, broken: &Connect) {
        let mut open = lock(&self.open);
        if open.as_ref().is_some_and(|there| there.connect.as_ptr() == broken.as_ptr()) {
            *open = None;
            tracing::warn!(uri = self.uri, "the connection to libvirt broke");
        }
    }
}

fn unreachable(doing: &str, error: &virt::error::Error) -> Error {
    Error::Unreachable { doing: doing.to_owned(), why: error.message().to_owned() }
}

impl Cx {
    /// What libvirt answered.
    pub(crate) fn done<T>(&self, answer: std::result::Result<T, virt::error::Error>) -> Result<T> {
        answer.map_err(|error| refused(&self.doing, &error))
    }
}
