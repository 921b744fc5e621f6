//! A wall clock that follows tokio's (paused) time and can be set wrong.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock for tests. It starts at 2026-01-01T00:00:00Z and runs with tokio's time; clones are the same clock.
#[derive(Clone)]
pub struct Clock {
    zero: Instant,
    skew: Arc<Mutex<SignedDuration>>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Clock { zero: Instant::now(), skew: Arc::default() }
    }

    /// The time it shows.
    pub fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
        let elapsed = SignedDuration::try_from(self.zero.elapsed()).expect("a test does not run for ages");
        start + elapsed + *self.skew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the clock forward or back, as an administrator or NTP does. Nothing that counts elapsed time notices.
    pub fn jump(&self, by: SignedDuration) {
        let mut skew = self.skew.lock().unwrap_or_else(PoisonError::into_inner);
        *skew += by;
    }

    /// Another clock of the same age: jumps of one leave the other alone.
    #[must_use]
    pub fn twin(&self) -> Clock {
        let skew = *self.skew.lock().unwrap_or_else(PoisonError::into_inner);
        Clock { zero: self.zero, skew: Arc::new(Mutex::new(skew)) }
    }

    /// The clock as the function that controllers take.
    pub fn source(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }
}
