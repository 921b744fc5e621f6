//! Watches: a stream of events from a version on, with bookmarks, and with what faults do to it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tower::BoxError;

use super::{Call, Content, Happened, Refused, Server, read, selector::Selection};
use crate::faults::OnEvent;

/// How often an idle watch tells how far it is.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// How long a watch lasts if the client does not say.
const LIFETIME: Duration = Duration::from_mins(30);

struct Watch {
    server: Arc<Server>,
    call: Call,
    selection: Selection,
    /// Next position in the history of the kind.
    at: usize,
    changed: tokio::sync::watch::Receiver<u64>,
    cut: tokio::sync::watch::Receiver<u64>,
    lines: VecDeque<Value>,
    /// An event that waits until the next one has gone first.
    swapped: Option<Value>,
    bookmark: Option<Instant>,
    until: Instant,
    ended: bool,
}

/// Opens a watch.
pub(crate) fn stream(server: &Arc<Server>, call: Call) -> Result<Content, Refused> {
    let selection = Selection::parse(call.asked("labelSelector"), call.asked("fieldSelector"))?;
    let asked: u64 = call.asked("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
    let initial = call.asked("sendInitialEvents") == Some("true");
    let bookmarks = call.asked("allowWatchBookmarks") == Some("true");
    let lifetime =
        call.asked("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).map_or(LIFETIME, Duration::from_secs);
    let state = server.state();
    if asked > state.version {
        return Err(Refused::too_new(asked, state.version));
    }
    let mut lines = VecDeque::new();
    let mut ended = false;
    let history = state.history.get(&call.kind.resource()).map_or(&[][..], Vec::as_slice);
    let from = if asked == 0 || initial {
        let found = read::matching(&state, &call, &selection);
        lines.extend(found.iter().map(|object| event("ADDED", &call, object, None)));
        if initial && bookmarks {
            let mut end = bookmark(&call, state.version);
            end["object"]["metadata"]["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
            lines.push_back(end);
        }
        state.version
    } else if asked < state.oldest {
        let why = Refused::expired(format!("too old resource version: {asked} ({})", state.oldest));
        lines.push_back(json!({ "type": "ERROR", "object": why.body() }));
        ended = true;
        asked
    } else {
        asked
    };
    let watch = Watch {
        at: history.partition_point(|happened| happened.version <= from),
        changed: state.changed.subscribe(),
        cut: server.injector.cuts(),
        selection,
        lines,
        swapped: None,
        bookmark: bookmarks.then(|| Instant::now() + BOOKMARKS),
        until: Instant::now() + lifetime,
        ended,
        server: server.clone(),
        call,
    };
    drop(state);
    let frames = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        let mut line = line.to_string();
        line.push('\n');
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from(line))), watch))
    });
    Ok(StreamBody::new(frames).boxed_unsync())
}

impl Watch {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                self.server.injector.running(&self.call.client).await;
                return Some(line);
            }
            if self.ended {
                return None;
            }
            if let Some(line) = self.happened() {
                self.deliver(line).await;
                continue;
            }
            let due = self.bookmark;
            tokio::select! {
                biased;
                _ = self.cut.changed() => return None,
                told = self.changed.changed() => told.ok()?,
                () = sleep_until(due.unwrap_or(self.until)), if due.is_some() => {
                    self.bookmark = Some(Instant::now() + BOOKMARKS);
                    self.lines.extend(self.swapped.take());
                    let version = self.server.state().version;
                    self.lines.push_back(bookmark(&self.call, version));
                }
                () = sleep_until(self.until) => return None,
            }
        }
    }

    /// The next event that this watch is about.
    fn happened(&mut self) -> Option<Value> {
        let state = self.server.state();
        let history = state.history.get(&self.call.kind.resource())?;
        while let Some(happened) = history.get(self.at) {
            self.at += 1;
            if let Some(line) = told(&self.call, &self.selection, happened) {
                return Some(line);
            }
        }
        None
    }

    async fn deliver(&mut self, line: Value) {
        match self.server.injector.event(&self.call, &line["object"]) {
            None => self.lines.push_back(line),
            Some(OnEvent::Skip) => {}
            Some(OnEvent::Repeat) => self.lines.extend([line.clone(), line]),
            Some(OnEvent::Swap) => {
                self.swapped = Some(line);
                return;
            }
            Some(OnEvent::Delay(pause)) => {
                tokio::time::sleep(pause).await;
                self.lines.push_back(line);
            }
            Some(OnEvent::Hold(mut released)) => {
                let _ = released.wait_for(|released| *released).await;
                self.lines.push_back(line);
            }
            Some(OnEvent::Close) => self.ended = true,
            Some(OnEvent::Expire) => {
                self.lines.push_back(json!({ "type": "ERROR", "object": Refused::expired("The resourceVersion for the provided watch is too old.").body() }));
                self.ended = true;
            }
        }
        self.lines.extend(self.swapped.take());
    }
}

/// What a change is to a watch: an object that begins or ceases to match is added or deleted.
fn told(call: &Call, selection: &Selection, happened: &Happened) -> Option<Value> {
    let inside = |object: &Value| {
        let namespace = object["metadata"]["namespace"].as_str();
        call.namespace.as_deref().is_none_or(|wanted| namespace == Some(wanted))
            && call.name.as_deref().is_none_or(|name| object["metadata"]["name"] == name)
            && selection.takes(object)
    };
    let before = happened.before.as_deref().filter(|object| inside(object));
    let after = happened.after.as_deref().filter(|object| inside(object));
    match (before, after) {
        (None, None) => None,
        (None, Some(object)) => Some(event("ADDED", call, object, None)),
        (Some(_), Some(object)) => Some(event("MODIFIED", call, object, None)),
        (Some(object), None) => Some(event("DELETED", call, object, Some(happened.version))),
    }
}

fn event(sort: &str, call: &Call, object: &Value, version: Option<u64>) -> Value {
    let mut object = read::shown(call, object);
    if let Some(version) = version {
        object["metadata"]["resourceVersion"] = json!(version.to_string());
    }
    json!({ "type": sort, "object": object })
}

fn bookmark(call: &Call, version: u64) -> Value {
    let (api_version, kind) = if call.metadata_only {
        ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned())
    } else {
        (call.kind.api_version(), call.kind.kind.clone())
    };
    let metadata = json!({ "resourceVersion": version.to_string(), "creationTimestamp": null });
    json!({ "type": "BOOKMARK", "object": { "apiVersion": api_version, "kind": kind, "metadata": metadata } })
}
