//! The objects that a command looks at, from files or from the cluster, each checked once.

mod admission;
mod documents;
mod origin;
mod overlay;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use api::SIPCluster;
use api_foreign::BareMetalHost;
use base::Key;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use plan_sip::host::Host;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use admission::Admission;
pub use origin::{Bad, BadInput, Origin};

/// Namespace of objects that name none.
const NAMESPACE: &str = "default";

/// An object with the place it came from.
#[derive(Clone, Debug)]
pub struct Found<K> {
    /// Where it came from.
    pub at: Origin,
    /// Its namespace and name.
    pub key: Key,
    /// It.
    pub object: K,
}

/// The objects that decisions read, in the order they came.
#[derive(Debug, Default)]
pub struct Objects {
    /// SIPClusters.
    pub clusters: Vec<Found<SIPCluster>>,
    /// BareMetalHosts.
    pub hosts: Vec<Found<BareMetalHost>>,
    /// Secrets.
    pub secrets: Vec<Found<Secret>>,
    /// ConfigMaps: some are templates of load balancers.
    pub config_maps: Vec<Found<ConfigMap>>,
    /// What else there was: objects by kind.
    pub others: BTreeMap<String, usize>,
    /// What was given twice, and not alike: which of the two counts.
    pub twice: Vec<String>,
}

/// Reads files, directories and `-`. What is bad does not keep the rest from being read.
pub fn load(paths: &[PathBuf], recursive: bool) -> (Objects, Vec<Bad>) {
    let mut reader = Reader::default();
    let bad = reader.files(paths, recursive);
    (reader.objects, bad)
}

/// Sorts documents into objects.
#[derive(Default)]
pub struct Reader {
    objects: Objects,
    bad: Vec<Bad>,
    admission: Option<Admission>,
    seen: BTreeMap<(String, Key), (Origin, Value)>,
}

impl Reader {
    /// Takes an object that an API server has accepted. What is bad about it is kept apart.
    pub fn accepted(&mut self, mut object: Value) {
        admission::without_nulls(&mut object);
        self.object(Origin::Cluster, object);
    }

    /// Reads files, directories and `-`. What they hold counts in place of what an API server has under the same names.
    /// What is bad.
    pub fn files(&mut self, paths: &[PathBuf], recursive: bool) -> Vec<Bad> {
        let (documents, mut bad) = documents::read(paths, recursive);
        for (origin, document) in documents {
            self.document(origin, document);
        }
        bad.append(&mut self.bad);
        bad
    }

    /// What has been bad so far, once.
    pub fn bad(&mut self) -> Vec<Bad> {
        std::mem::take(&mut self.bad)
    }

    /// What has been read so far.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// All objects, and what is bad.
    pub fn finish(self) -> (Objects, Vec<Bad>) {
        (self.objects, self.bad)
    }

    /// One document: an object, or a list of them.
    fn document(&mut self, origin: Origin, mut document: Value) {
        admission::without_nulls(&mut document);
        let text = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if document.is_null() {
            return;
        }
        let Origin::File { file, document: number, .. } = &origin else { return self.object(origin, document) };
        let nameless = document.pointer("/metadata/name").is_none();
        match (kind.strip_suffix("List"), document.get_mut("items")) {
            (Some(of), Some(Value::Array(items))) => {
                for (index, mut item) in std::mem::take(items).into_iter().enumerate() {
                    // Items of a typed list may leave out what the list says already.
                    if let (false, Value::Object(fields)) = (of.is_empty(), &mut item) {
                        fields.entry("apiVersion").or_insert_with(|| version.clone().into());
                        fields.entry("kind").or_insert_with(|| of.into());
                    }
                    self.object(Origin::File { file: file.clone(), document: *number, item: Some(index) }, item);
                }
            }
            (Some(_), None) if nameless => {}
            _ => self.object(origin, document),
        }
    }

    fn object(&mut self, origin: Origin, mut object: Value) {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.entry("namespace").or_insert_with(|| NAMESPACE.into());
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        if !object.is_object() || kind.is_empty() {
            let what = if object.is_object() { "has no kind" } else { "is no object" };
            self.bad.push(Bad::whole(origin, format!("{what}: a Kubernetes object has apiVersion, kind and metadata")));
            return;
        }
        let wanted = match kind.as_str() {
            "SIPCluster" => "airship.airshipit.org/v1",
            "BareMetalHost" => "metal3.io/v1alpha1",
            "Secret" | "ConfigMap" => "v1",
            _ => {
                *self.objects.others.entry(kind).or_default() += 1;
                return;
            }
        };
        let key = Key::new(text("/metadata/namespace"), text("/metadata/name"));
        let mut wrong = |name: &str, field: &str, message: String| {
            let object = format!("{kind} {name}").trim_end().to_owned();
            self.bad.push(Bad { place: origin.to_string(), object, field: field.to_owned(), message });
        };
        if version != wanted {
            return wrong(&key.to_string(), "apiVersion", format!("must be {wanted}, and is {version:?}"));
        }
        if key.name.is_empty() {
            return wrong("", "metadata.name", "is missing".to_owned());
        }
        let known = self.seen.get(&(kind.clone(), key.clone())).cloned();
        match &known {
            Some((_, first)) if *first == object => return,
            // What files hold counts.
            Some(_) if origin == Origin::Cluster => return,
            _ => self.seen.insert((kind.clone(), key.clone()), (origin.clone(), object.clone())),
        };
        if kind == "SIPCluster" && origin != Origin::Cluster {
            let admission = self.admission.get_or_insert_with(Admission::of_sipclusters);
            let faults = admission.faults(&object);
            if !faults.is_empty() {
                return faults.into_iter().for_each(|(field, message)| wrong(&key.to_string(), &field, message));
            }
        }
        match known {
            Some((Origin::Cluster, live)) => {
                self.objects.forget(&kind, &key);
                object = overlay::applied(&kind, live, object);
            }
            Some((first, _)) => {
                self.objects.forget(&kind, &key);
                self.objects.twice.push(format!(
                    "{kind} {key} is given twice, and not alike: the later one counts, {origin}, not {first}"
                ));
            }
            None => {}
        }
        if let ("BareMetalHost", Value::Object(fields)) = (kind.as_str(), &mut object) {
            // Metal3's definition does not require it.
            fields.entry("spec").or_insert_with(|| json!({}));
        }
        let objects = &mut self.objects;
        let outcome = match kind.as_str() {
            "SIPCluster" => put(&mut objects.clusters, origin.clone(), &key, object),
            "BareMetalHost" => put(&mut objects.hosts, origin.clone(), &key, object),
            "Secret" => put(&mut objects.secrets, origin.clone(), &key, object),
            _ => put(&mut objects.config_maps, origin.clone(), &key, object),
        };
        if let Err((field, message)) = outcome {
            let message = if kind == "Secret" { about_a_secret(&field) } else { message };
            wrong(&key.to_string(), &field, message);
        }
    }
}

impl Objects {
    /// Takes an object out, for another of its name to take its place.
    fn forget(&mut self, kind: &str, key: &Key) {
        match kind {
            "SIPCluster" => self.clusters.retain(|found| found.key != *key),
            "BareMetalHost" => self.hosts.retain(|found| found.key != *key),
            "Secret" => self.secrets.retain(|found| found.key != *key),
            _ => self.config_maps.retain(|found| found.key != *key),
        }
    }

    /// Whether a Secret is there that a host names. Without one, nothing is known of network data and credentials.
    pub fn name_secrets(&self) -> bool {
        let given: BTreeSet<&Key> = self.secrets.iter().map(|found| &found.key).collect();
        let mut hosts = self.hosts.iter().map(|found| Host::from(found.object.clone()));
        hosts.any(|host| [host.network_data, host.credentials].into_iter().flatten().any(|key| given.contains(&key)))
    }
}

fn put<K: DeserializeOwned>(
    into: &mut Vec<Found<K>>,
    at: Origin,
    key: &Key,
    object: Value,
) -> Result<(), (String, String)> {
    let object = serde_path_to_error::deserialize(object)
        .map_err(|error| (error.path().to_string().trim_matches('.').to_owned(), error.into_inner().to_string()))?;
    into.push(Found { at, key: key.clone(), object });
    Ok(())
}

/// What is wrong with a field of a Secret, without what stands in it.
fn about_a_secret(field: &str) -> String {
    match field.split('.').next() {
        Some("data") => "is not base64",
        Some("stringData") => "is not a text: put it in quotes",
        _ => "is not what a Secret has there",
    }
    .to_owned()
}
