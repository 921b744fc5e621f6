//! The tower service in front of the server: who asks, which faults apply, what is written into the log.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header::CONTENT_TYPE, request::Parts};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use super::{Call, Kind, Refused, State, read, watch, write};
use crate::{
    clock::Clock,
    faults::{After, Before, Injector},
    log::{Effect, Entry, Verb},
};

/// The body of an answer.
pub(crate) type Content = UnsyncBoxBody<Bytes, BoxError>;

/// A server, shared by its clients.
pub(crate) struct Server {
    state: Mutex<State>,
    log: Mutex<Vec<Entry>>,
    pub injector: Injector,
    pub clock: Clock,
}

/// What a client is answered.
enum Answer {
    Json(u16, Value),
    Stream(Content),
}

impl Server {
    pub fn new(clock: Clock, kinds: Vec<Kind>) -> Arc<Self> {
        let state = Mutex::new(State::new(clock.clone(), kinds));
        Arc::new(Server { state, log: Mutex::default(), injector: Injector::default(), clock })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle(self: Arc<Self>, client: Arc<str>, parts: Parts, body: Bytes) -> Result<Answer, BoxError> {
        if let Some(answer) = self.about_itself(parts.uri.path()) {
            return Ok(answer);
        }
        let call = Call::parse(&client, &parts, &body, &self.state().kinds);
        let call = match call {
            Ok(call) => call,
            Err(refused) => return Ok(Answer::Json(refused.code, refused.body())),
        };
        let fault = self.injector.before(&call);
        if fault.is_none() && self.injector.is_open(&client) {
            return self.now(&call).await;
        }
        // On its way: it arrives even if whoever sent it gave up waiting.
        let late = tokio::spawn(async move { self.late(call, fault).await });
        late.await.map_err(BoxError::from)?
    }

    /// A request that something happens to before it is carried out.
    async fn late(self: Arc<Self>, call: Call, fault: Option<Before>) -> Result<Answer, BoxError> {
        match fault {
            Some(Before::Refuse(refused)) => {
                self.note(&call, Effect::Refused(refused.code, refused.message.clone()));
                return Ok(Answer::Json(refused.code, refused.body()));
            }
            Some(Before::Hang) => {
                self.note(&call, Effect::Lost);
                return std::future::pending().await;
            }
            Some(Before::Disconnect) => {
                self.note(&call, Effect::Lost);
                return Err("connection reset by peer".into());
            }
            Some(Before::Delay(pause)) => tokio::time::sleep(pause).await,
            Some(Before::Run(hook)) => hook(&crate::Api::over(self.clone())),
            None => {}
        }
        if let Err(lost) = self.injector.opened(&call.client).await {
            self.note(&call, Effect::Lost);
            return Err(lost.into());
        }
        self.now(&call).await
    }

    /// Carries a request out, then lets happen to the answer what shall.
    async fn now(self: &Arc<Self>, call: &Call) -> Result<Answer, BoxError> {
        let (answer, effect) = self.carry_out(call);
        self.note(call, effect.clone());
        match self.injector.after(call, &effect) {
            None => Ok(answer),
            Some(After::LoseAnswer) => Err("connection closed before message completed".into()),
            Some(After::Fail(refused)) => Ok(Answer::Json(refused.code, refused.body())),
            Some(After::Hang) => std::future::pending().await,
        }
    }

    fn carry_out(self: &Arc<Self>, call: &Call) -> (Answer, Effect) {
        let refused = |refused: Refused| {
            (Answer::Json(refused.code, refused.body()), Effect::Refused(refused.code, refused.message))
        };
        match call.verb {
            Verb::Watch => match watch::stream(self, call.clone()) {
                Ok(body) => (Answer::Stream(body), Effect::Read),
                Err(why) => refused(why),
            },
            Verb::Get | Verb::List => {
                let mut state = self.state();
                let found = if call.verb == Verb::Get { read::get(&state, call) } else { read::list(&mut state, call) };
                found.map_or_else(refused, |body| (Answer::Json(200, body), Effect::Read))
            }
            _ => match write::write(&mut self.state(), call) {
                Ok(written) => {
                    let body = if written.body["kind"] == "Status" {
                        (*written.body).clone()
                    } else {
                        read::shown(call, &written.body)
                    };
                    (Answer::Json(written.code, body), written.effect)
                }
                Err(why) => refused(why),
            },
        }
    }

    fn note(&self, call: &Call, effect: Effect) {
        let at = self.clock.now();
        let mut log = self.log();
        let number = log.len();
        let named = call.body["metadata"]["name"].as_str().map(str::to_owned);
        log.push(Entry {
            number,
            at,
            client: call.client.clone(),
            verb: call.verb,
            kind: call.kind.kind.clone(),
            namespace: call.namespace.clone(),
            name: call.name.clone().or(named),
            subresource: call.subresource.clone(),
            dry_run: call.dry_run(),
            effect,
            body: call.body.clone(),
        });
    }

    /// What is not about objects: version and discovery.
    fn about_itself(&self, path: &str) -> Option<Answer> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let state = self.state();
        let kinds = |group: &str, version: &str| -> Vec<Value> {
            let of_group = state.kinds.iter().filter(|kind| kind.group == group && kind.version == version);
            let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
            of_group
                .map(|kind| json!({ "name": kind.plural, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs }))
                .collect()
        };
        let resources = |group_version: String, resources: Vec<Value>| {
            Answer::Json(
                200,
                json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources }),
            )
        };
        match parts.as_slice() {
            ["version"] => Some(Answer::Json(
                200,
                json!({ "major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": "" }),
            )),
            ["api"] => Some(Answer::Json(
                200,
                json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
            )),
            ["apis"] => {
                let mut versions: Vec<(&str, &str)> = state
                    .kinds
                    .iter()
                    .filter(|kind| !kind.group.is_empty())
                    .map(|kind| (kind.group.as_str(), kind.version.as_str()))
                    .collect();
                versions.dedup();
                let mut groups: Vec<Value> = Vec::new();
                for (group, version) in versions {
                    let entry = json!({ "groupVersion": format!("{group}/{version}"), "version": version });
                    match groups.iter_mut().find(|other| other["name"] == group) {
                        Some(other) => {
                            let known = other["versions"].as_array_mut().expect("made below");
                            if !known.contains(&entry) {
                                known.push(entry);
                            }
                        }
                        None => groups.push(json!({ "name": group, "versions": [entry], "preferredVersion": entry })),
                    }
                }
                Some(Answer::Json(200, json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })))
            }
            ["api", version] => Some(resources((*version).to_owned(), kinds("", version))),
            ["apis", group, version] => {
                let found = kinds(group, version);
                (!found.is_empty()).then(|| resources(format!("{group}/{version}"), found))
            }
            _ => None,
        }
    }
}

/// One client's connection.
#[derive(Clone)]
pub(crate) struct Connection {
    pub server: Arc<Server>,
    pub client: Arc<str>,
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Content>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Content>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Connection { server, client } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let (code, body) = match server.handle(client, parts, body).await? {
                Answer::Json(code, body) => (code, whole(serde_json::to_vec(&body)?)),
                Answer::Stream(body) => (200, body),
            };
            Ok(Response::builder().status(code).header(CONTENT_TYPE, "application/json").body(body)?)
        })
    }
}

fn whole(body: Vec<u8>) -> Content {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
}
