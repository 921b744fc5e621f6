//! The HTTP server for probes and metrics: `/healthz`, `/readyz`, `/metrics`; every check has a name and a reason.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

type Checks = BTreeMap<(Probe, &'static str), Result<(), String>>;

/// The checks of a process. Clones are the same checks.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<Mutex<Checks>>,
}

/// Which probe a check belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// `/healthz`: a failure has the process restarted.
    Live,
    /// `/readyz`: a failure says that it does not serve.
    Ready,
}

/// One check, for its owner to keep up to date.
#[derive(Clone)]
pub struct Check {
    health: Health,
    key: (Probe, &'static str),
}

impl Health {
    /// No checks: alive and ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check that fails, for this reason, until its owner says otherwise.
    pub fn check(&self, probe: Probe, name: &'static str, reason: impl Into<String>) -> Check {
        let check = Check { health: self.clone(), key: (probe, name) };
        check.fails(reason);
        check
    }

    /// Whether all checks of a probe pass, and a line for each.
    pub fn report(&self, probe: Probe) -> (bool, String) {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let mut well = true;
        for ((_, name), result) in checks.iter().filter(|((of, _), _)| *of == probe) {
            well &= result.is_ok();
            let _ = match result {
                Ok(()) => writeln!(text, "[+] {name}"),
                Err(reason) => writeln!(text, "[-] {name}: {reason}"),
            };
        }
        text.push_str(if well { "ok\n" } else { "failed\n" });
        (well, text)
    }
}

impl Check {
    /// The check passes.
    pub fn passes(&self) {
        self.set(Ok(()));
    }

    /// The check fails, for this reason.
    pub fn fails(&self, reason: impl Into<String>) {
        self.set(Err(reason.into()));
    }

    fn set(&self, result: Result<(), String>) {
        self.health.checks.lock().unwrap_or_else(PoisonError::into_inner).insert(self.key, result);
    }
}

/// The routes, for a server of one's own or a test.
pub fn router(health: Health, metrics: Metrics) -> Router {
    Router::new()
        .route(
            "/healthz",
            get(|State((health, _)): State<(Health, Metrics)>| async move { probe(&health, Probe::Live) }),
        )
        .route(
            "/readyz",
            get(|State((health, _)): State<(Health, Metrics)>| async move { probe(&health, Probe::Ready) }),
        )
        .route("/metrics", get(|State((_, metrics)): State<(Health, Metrics)>| async move { exposition(&metrics) }))
        .with_state((health, metrics))
}

/// Serves until `stop` is cancelled.
pub async fn serve(
    address: SocketAddr,
    health: Health,
    metrics: Metrics,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tracing::info!(address = %listener.local_addr()?, "probes and metrics are served");
    axum::serve(listener, router(health, metrics)).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn probe(health: &Health, probe: Probe) -> Response {
    let (well, text) = health.report(probe);
    let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

fn exposition(metrics: &Metrics) -> Response {
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, format)], metrics.text()).into_response()
}
