//! The report: what is served, over HTTP, for the manager and for kubelet's probes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use tokio::{
    sync::{Mutex, watch::Receiver},
    time::Instant,
};

use crate::{
    contract::{Backends, Refused, Status, WorkerState},
    master::Master,
    turn::{Running, Sha, Want, Worker, leaving},
};

/// A sidecar that has finished no turn for this long hangs: longer than the longest reload.
const HANGS_AFTER: Duration = Duration::from_secs(150);

/// HAProxy is asked about its servers at most once in this time, however many ask us.
const FRESH: Duration = Duration::from_secs(2);

/// What was seen of HAProxy.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its workers; none while it does not run.
    pub running: Option<Running>,
    /// Its version.
    pub version: Option<String>,
}

/// The report of a turn. Its age is filled in when it is asked for.
pub fn status(want: &Want, facts: &Facts, refused: &BTreeMap<Sha, String>, error: Option<String>) -> Status {
    let Facts { running, version } = facts;
    let state = |worker: &Worker, current| WorkerState { pid: worker.pid, serving: worker.serving.clone(), current };
    let workers = running.iter().flat_map(|Running { current, old, stale: _ }| {
        std::iter::once(state(current, true)).chain(old.iter().map(|worker| state(worker, false)))
    });
    Status {
        serving: running.as_ref().and_then(|running| running.current.serving.clone()),
        accepted: Some(want.accepted.clone()),
        candidate: want.candidate.clone(),
        refused: refused.iter().map(|(sha, message)| Refused { sha: sha.clone(), message: message.clone() }).collect(),
        leaving: leaving(&want.leaving, running.as_ref()),
        workers: workers.collect(),
        haproxy_version: version.clone(),
        error,
        age_seconds: 0,
    }
}

/// A status and when it was made.
pub type Stamped = (Instant, Status);

/// What HAProxy last said of its servers. The lock is held while it is asked, so that one question is on its way at most.
struct Health {
    master: Master,
    reports: Receiver<Stamped>,
    last: Mutex<Option<(Instant, Backends)>>,
}

/// `GET /status`, `GET /backends`, and for kubelet `/healthz` (readiness: HAProxy serves a configuration of ours, whatever
/// its backends) and `/livez` (the sidecar's own liveness).
pub fn router(reports: Receiver<Stamped>, master: Master) -> Router {
    let health = Arc::new(Health { master, reports: reports.clone(), last: Mutex::default() });
    Router::new()
        .route("/status", get(current))
        .route("/healthz", get(ready))
        .route("/livez", get(alive))
        .with_state(reports)
        .merge(Router::new().route("/backends", get(backends)).with_state(health))
}

async fn backends(State(health): State<Arc<Health>>) -> Result<Json<Backends>, (StatusCode, String)> {
    let mut last = health.last.lock().await;
    if let Some((_, known)) = last.as_ref().filter(|(read, _)| read.elapsed() < FRESH) {
        return Ok(Json(known.clone()));
    }
    let away = |why: String| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    let worker = health.reports.borrow().1.workers.iter().find(|worker| worker.current).map(|worker| worker.pid);
    let worker = worker.ok_or_else(|| away("HAProxy does not run".to_owned()))?;
    let backends = health.master.health(worker).await.map_err(|error| away(error.to_string()))?;
    let backends = Backends { backends };
    *last = Some((Instant::now(), backends.clone()));
    Ok(Json(backends))
}

async fn current(State(reports): State<Receiver<Stamped>>) -> Json<Status> {
    let (made, mut status) = reports.borrow().clone();
    status.age_seconds = made.elapsed().as_secs();
    Json(status)
}

async fn ready(State(reports): State<Receiver<Stamped>>) -> (StatusCode, String) {
    let (_, Status { serving, error, .. }) = reports.borrow().clone();
    match serving {
        Some(serving) => (StatusCode::OK, format!("serving {serving}\n")),
        None => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", error.unwrap_or_else(|| "not yet".to_owned()))),
    }
}

async fn alive(State(reports): State<Receiver<Stamped>>) -> StatusCode {
    let (made, _) = &*reports.borrow();
    if made.elapsed() < HANGS_AFTER { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt as _;
    use tokio::{sync::watch, time::advance};
    use tower::ServiceExt as _;

    use super::*;

    async fn get(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_ready_when_haproxy_serves_and_alive_while_turns_end() {
        let (send, reports) = watch::channel((Instant::now(), Status::default()));
        let router = router(reports, Master::new("/nonexistent/master.sock".into()));
        assert_eq!(get(&router, "/healthz").await, (StatusCode::SERVICE_UNAVAILABLE, "not yet\n".to_owned()));
        assert_eq!(get(&router, "/livez").await.0, StatusCode::OK);
        let away = (StatusCode::SERVICE_UNAVAILABLE, "HAProxy does not run\n".to_owned());
        assert_eq!(get(&router, "/backends").await, away);
        let serving = Status { serving: Some("aa".to_owned()), ..Status::default() };
        send.send((Instant::now(), serving.clone())).unwrap();
        assert_eq!(get(&router, "/healthz").await, (StatusCode::OK, "serving aa\n".to_owned()));
        advance(HANGS_AFTER).await;
        assert_eq!(get(&router, "/livez").await.0, StatusCode::SERVICE_UNAVAILABLE);
        let told: Status = serde_json::from_str(&get(&router, "/status").await.1).unwrap();
        assert_eq!(told, Status { age_seconds: HANGS_AFTER.as_secs(), ..serving });
    }
}
