//! Writes: every one to an existing object names the uid and resourceVersion it was decided on, and is sent at most once.
//!
//! A creation is a server-side apply with a resourceVersion that no object can have: the server makes the object if it
//! is missing and refuses otherwise. Unlike a POST it makes us the *applying* owner of the fields, so that a field we
//! leave out of a later apply is removed.

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::{ApiResource, DynamicObject},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    error::{Cause, Error, Target, Verb},
    lease::Leadership,
    metrics::Metrics,
};

/// Field manager of everything we apply.
pub const MANAGER: &str = "slipway";

/// How long a write may take before it counts as lost.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// etcd's first revision, which belongs to no object: an apply that names it can only create.
const NO_VERSION: &str = "1";

/// Metadata that an apply may state; the rest belongs to the server.
const OURS: [&str; 7] = ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "generateName"];

/// The state of an object that a decision was made on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub resource_version: String,
}

impl Version {
    /// The version of an object that was read; none if it never was on a server.
    pub fn of(meta: &ObjectMeta) -> Option<Version> {
        let (uid, resource_version) = (meta.uid.clone()?, meta.resource_version.clone()?);
        Some(Version { uid, resource_version })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.uid, self.resource_version)
    }
}

/// What a delete led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object is gone.
    Gone,
    /// The object is marked; its finalizers hold it.
    Pending,
}

/// Carries out writes; decides nothing.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    leadership: Option<Leadership>,
    metrics: Option<Metrics>,
    deadline: Duration,
    dry_run: bool,
}

impl Writer {
    /// A writer over `client`, which must not resend writes by itself ([`crate::client::connect`] makes such).
    pub fn new(client: Client) -> Self {
        Writer { client, leadership: None, metrics: None, deadline: DEADLINE, dry_run: false }
    }

    /// Sends nothing unless this process leads.
    #[must_use]
    pub fn while_leading(self, leadership: Leadership) -> Self {
        Writer { leadership: Some(leadership), ..self }
    }

    /// Counts writes and conflicts.
    #[must_use]
    pub fn counted(self, metrics: Metrics) -> Self {
        Writer { metrics: Some(metrics), ..self }
    }

    /// How long a write may take before it counts as lost; [`DEADLINE`] unless said otherwise.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Writer { deadline, ..self }
    }

    /// The same writer, whose writes are checked by the server and not kept.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        Writer { dry_run: true, ..self.clone() }
    }

    /// The client it writes through.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes an object; [`Cause::AlreadyExists`] if there is one of this name. `object` needs `metadata.name`.
    pub async fn create(&self, resource: &ApiResource, object: Value) -> Result<DynamicObject, Error> {
        let (target, body) = applied(resource, object, &[("resourceVersion", NO_VERSION)]);
        let api = self.api(resource, target.namespace.as_deref());
        let (params, patch) = (self.apply_params(), Patch::Apply(&body));
        let answer = self.send(Verb::Create, &target, api.patch(&target.name, &params, &patch)).await;
        let answer = answer.map_err(|error| match error.cause {
            Cause::Conflict(_) => Error { cause: Cause::AlreadyExists, ..error },
            _ => error,
        });
        self.counts(Verb::Create, &target, answer)
    }

    /// Updates the fields of an existing object that are ours to those in `object`; fields of ours that it leaves out
    /// are removed, fields of others stay.
    pub async fn update_ssa(
        &self,
        resource: &ApiResource,
        object: Value,
        on: &Version,
    ) -> Result<DynamicObject, Error> {
        let version = [("uid", on.uid.as_str()), ("resourceVersion", on.resource_version.as_str())];
        let (target, body) = applied(resource, object, &version);
        let api = self.api(resource, target.namespace.as_deref());
        let (params, patch) = (self.apply_params(), Patch::Apply(&body));
        let answer = self.send(Verb::Apply, &target, api.patch(&target.name, &params, &patch)).await;
        self.counts(Verb::Apply, &target, answer)
    }

    /// Changes the fields named in `patch` (RFC 7386: null removes) of an existing object.
    pub async fn patch_merge(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        mut patch: Value,
        on: &Version,
    ) -> Result<DynamicObject, Error> {
        let target = target(resource, namespace, name);
        set_version(&mut patch, on);
        let params =
            PatchParams { dry_run: self.dry_run, field_manager: Some(MANAGER.into()), ..PatchParams::default() };
        let (api, patch) = (self.api(resource, namespace), Patch::Merge(&patch));
        let answer = self.send(Verb::Patch, &target, api.patch(name, &params, &patch)).await;
        self.counts(Verb::Patch, &target, answer)
    }

    /// Replaces the status of an existing object; nothing else of it changes.
    pub async fn put_status(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        status: Value,
        on: &Version,
    ) -> Result<DynamicObject, Error> {
        let target = target(resource, namespace, name);
        let mut object = DynamicObject::new(name, resource).data(json!({ "status": status }));
        object.metadata.namespace = namespace.map(str::to_owned);
        object.metadata.uid = Some(on.uid.clone());
        object.metadata.resource_version = Some(on.resource_version.clone());
        let (api, params) = (self.api(resource, namespace), self.post_params());
        let answer = self.send(Verb::Status, &target, api.replace_status(name, &params, &object)).await;
        self.counts(Verb::Status, &target, answer)
    }

    /// Replaces an existing object as a whole.
    pub async fn replace(
        &self,
        resource: &ApiResource,
        mut object: Value,
        on: &Version,
    ) -> Result<DynamicObject, Error> {
        set_version(&mut object, on);
        let object: DynamicObject = serde_json::from_value(object).map_err(|error| Error {
            verb: Verb::Replace,
            target: target(resource, None, ""),
            cause: Cause::Invalid(format!("the object has no type or bad metadata: {error}")),
        })?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let target = target(resource, object.metadata.namespace.as_deref(), &name);
        let (api, params) = (self.api(resource, target.namespace.as_deref()), self.post_params());
        let answer = self.send(Verb::Replace, &target, api.replace(&name, &params, &object)).await;
        self.counts(Verb::Replace, &target, answer)
    }

    /// Deletes an object, if it still is what was decided on; what it owns goes in the background.
    pub async fn delete(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
        on: &Version,
    ) -> Result<Deletion, Error> {
        let target = target(resource, namespace, name);
        let preconditions =
            Preconditions { uid: Some(on.uid.clone()), resource_version: Some(on.resource_version.clone()) };
        let params = DeleteParams { dry_run: self.dry_run, ..DeleteParams::background().preconditions(preconditions) };
        let api = self.api(resource, namespace);
        let answer = self.send(Verb::Delete, &target, api.delete(name, &params)).await;
        let answer = answer.map(|left| match left.left() {
            Some(object) if object.metadata.deletion_timestamp.is_some() => Deletion::Pending,
            _ => Deletion::Gone,
        });
        self.counts(Verb::Delete, &target, answer)
    }

    fn api(&self, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
        api(&self.client, resource, namespace)
    }

    fn apply_params(&self) -> PatchParams {
        PatchParams { dry_run: self.dry_run, ..PatchParams::apply(MANAGER).force() }
    }

    fn post_params(&self) -> PostParams {
        PostParams { dry_run: self.dry_run, field_manager: Some(MANAGER.into()) }
    }

    async fn send<T>(
        &self,
        verb: Verb,
        target: &Target,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Error> {
        let failed = |cause| Error { verb, target: target.clone(), cause };
        if self.leadership.as_ref().is_some_and(|leadership| !leadership.holds()) {
            return Err(failed(Cause::NotLeading));
        }
        match tokio::time::timeout(self.deadline, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(failed(Cause::of(&error))),
            Err(_) => Err(failed(Cause::Unavailable(format!("no answer within {} s", self.deadline.as_secs())))),
        }
    }

    fn counts<T>(&self, verb: Verb, target: &Target, answer: Result<T, Error>) -> Result<T, Error> {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| !self.dry_run) {
            metrics.wrote(&target.kind, verb, answer.as_ref().err());
        }
        answer
    }
}

/// The same for kinds with a Rust type.
impl Writer {
    /// Makes an object, as [`Writer::create`].
    pub async fn create_as<K>(&self, object: &K) -> Result<K, Error>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let resource = ApiResource::erase::<K>(&());
        typed(Verb::Create, &resource, self.create(&resource, value(Verb::Create, &resource, object)?).await?)
    }

    /// Updates the fields that are ours, as [`Writer::update_ssa`]; the status of `object` is left out.
    pub async fn update_ssa_as<K>(&self, object: &K, on: &Version) -> Result<K, Error>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let resource = ApiResource::erase::<K>(&());
        typed(Verb::Apply, &resource, self.update_ssa(&resource, value(Verb::Apply, &resource, object)?, on).await?)
    }

    /// Changes some fields, as [`Writer::patch_merge`].
    pub async fn patch_merge_as<K>(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: Value,
        on: &Version,
    ) -> Result<K, Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let resource = ApiResource::erase::<K>(&());
        typed(Verb::Patch, &resource, self.patch_merge(&resource, namespace, name, patch, on).await?)
    }

    /// Replaces the status of an object that was read, as [`Writer::put_status`].
    pub async fn put_status_as<K, S>(&self, object: &K, status: &S) -> Result<K, Error>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
        S: Serialize,
    {
        let resource = ApiResource::erase::<K>(&());
        let (meta, on) = (object.meta(), version(Verb::Status, &resource, object)?);
        let status = value(Verb::Status, &resource, status)?;
        let name = meta.name.as_deref().unwrap_or_default();
        let written = self.put_status(&resource, meta.namespace.as_deref(), name, status, &on).await?;
        typed(Verb::Status, &resource, written)
    }

    /// Deletes an object that was read, as [`Writer::delete`].
    pub async fn delete_as<K>(&self, object: &K) -> Result<Deletion, Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let resource = ApiResource::erase::<K>(&());
        let (meta, on) = (object.meta(), version(Verb::Delete, &resource, object)?);
        self.delete(&resource, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default(), &on).await
    }
}

/// The API of one kind, in one namespace or cluster-wide.
pub(crate) fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

pub(crate) fn target(resource: &ApiResource, namespace: Option<&str>, name: &str) -> Target {
    Target { kind: resource.kind.clone(), namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

/// The body of an apply: what `object` says, without what belongs to the server, with the version it is decided on.
fn applied(resource: &ApiResource, object: Value, version: &[(&str, &str)]) -> (Target, Value) {
    let Value::Object(mut body) = object else { return (target(resource, None, ""), object) };
    let mut metadata = match body.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => serde_json::Map::new(),
    };
    metadata.retain(|key, value| OURS.contains(&key.as_str()) && !value.is_null());
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
    let target = target(resource, text("namespace").as_deref(), &text("name").unwrap_or_default());
    for (key, value) in version {
        metadata.insert((*key).to_owned(), json!(value));
    }
    body.remove("status");
    body.insert("apiVersion".into(), json!(resource.api_version));
    body.insert("kind".into(), json!(resource.kind));
    body.insert("metadata".into(), Value::Object(metadata));
    (target, Value::Object(body))
}

fn set_version(object: &mut Value, on: &Version) {
    object["metadata"]["uid"] = json!(on.uid);
    object["metadata"]["resourceVersion"] = json!(on.resource_version);
}

fn value(verb: Verb, resource: &ApiResource, object: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(object).map_err(|error| Error {
        verb,
        target: target(resource, None, ""),
        cause: Cause::Invalid(format!("it cannot be written as JSON: {error}")),
    })
}

fn version<K: Resource<DynamicType = ()>>(verb: Verb, resource: &ApiResource, object: &K) -> Result<Version, Error> {
    let meta = object.meta();
    Version::of(meta).ok_or_else(|| Error {
        verb,
        target: target(resource, meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default()),
        cause: Cause::Invalid(
            "metadata.uid or metadata.resourceVersion is missing: it was not read from a server".into(),
        ),
    })
}

pub(crate) fn typed<K: Resource + DeserializeOwned>(
    verb: Verb,
    resource: &ApiResource,
    object: DynamicObject,
) -> Result<K, Error> {
    let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone().unwrap_or_default());
    object.try_parse().map_err(|error| Error {
        verb,
        target: target(resource, namespace.as_deref(), &name),
        cause: Cause::Other(format!("the answer does not parse: {error}")),
    })
}
