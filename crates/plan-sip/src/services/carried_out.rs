//! For tests: what is there once a plan is carried out, and what a plan makes.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::ByteString;
use serde_json::Value;

use super::{Facts, Kind, Object, Owned, Plan, Seen, Step, auth::certificate, jumphost::HOST_KEY};

/// Node port that a Service gets which asks for none.
pub(crate) const ALLOCATED: i32 = 31234;
/// How long a certificate holds, in seconds.
pub(crate) const LIFE: i64 = 90 * 86400;
/// What stands for the certificate of a CA of our own.
pub(crate) const OWN_CA: &str = "-----BEGIN CERTIFICATE-----\nb3du\n-----END CERTIFICATE-----\n";

/// What is there once `plan` is carried out, as the API server would tell it.
pub(crate) fn after(mut seen: Seen, plan: &Plan) -> Seen {
    for step in &plan.steps {
        match step {
            Step::Create(object) | Step::Update { object, .. } => {
                let facts = match object.kind {
                    Kind::Secret => Facts::Secret { data: decoded(&object.body["data"]) },
                    Kind::Deployment => Facts::Deployment { available: true, rolling: false, message: String::new() },
                    Kind::Service => service(&object.body),
                    Kind::RoleBinding => {
                        let account = object.body["subjects"][0]["name"].as_str().unwrap_or_default().to_owned();
                        Facts::Binding { account }
                    }
                    Kind::ConfigMap
                    | Kind::PersistentVolumeClaim
                    | Kind::ServiceAccount
                    | Kind::PodDisruptionBudget => Facts::None,
                };
                put(&mut seen, object, facts);
            }
            Step::MakeHostKeys { object } => {
                put(&mut seen, object, Facts::Secret { data: texts(&[(HOST_KEY, "host key")]) });
            }
            Step::MakeCertificate { object, names, ca_secret, .. } => {
                let meta = certificate::CertificateMeta {
                    not_before: seen.now,
                    not_after: seen.now + LIFE,
                    names: names.clone(),
                    ca_secret: ca_secret.clone(),
                };
                let ca = match ca_secret {
                    Some(name) => String::from_utf8_lossy(&seen.referred[name].data["tls.crt"]).into_owned(),
                    None => OWN_CA.to_owned(),
                };
                let data = texts(&[
                    (certificate::CERTIFICATE, &format!("certificate of {}", seen.now)),
                    (certificate::PRIVATE_KEY, "private key"),
                    (certificate::CA, &ca),
                    (certificate::META, &serde_json::to_string(&meta).expect("numbers and texts")),
                ]);
                put(&mut seen, object, Facts::Secret { data });
            }
            Step::Delete { kind, name, .. } => {
                seen.objects.remove(&(*kind, name.clone()));
            }
            Step::AnnotatePod { name, wanted, .. } => {
                for pod in seen.pods.iter_mut().filter(|pod| pod.name == *name) {
                    pod.wanted = Some(wanted.clone());
                }
            }
            Step::DeletePod { name, .. } => seen.pods.retain(|pod| pod.name != *name),
        }
    }
    seen.published = Some(plan.endpoints.clone());
    seen
}

fn put(seen: &mut Seen, object: &Object, facts: Facts) {
    let label = |key: &str| object.body["metadata"]["labels"][key].as_str().map(str::to_owned);
    let owned = Owned {
        uid: object.name.clone(),
        resource_version: "1".to_owned(),
        owner_name: label(api::keys::OWNER_NAME),
        owner_uid: label(api::keys::OWNER_UID),
        applied: object.applied().map(str::to_owned),
        live: Some(Arc::new(object.body.clone())),
        facts,
    };
    seen.objects.insert((object.kind, object.name.clone()), owned);
}

fn service(body: &Value) -> Facts {
    let ports = body["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let allocated =
        |port: &Value| port["nodePort"].as_i64().map_or(ALLOCATED, |port| i32::try_from(port).expect("a port"));
    Facts::Service {
        cluster_ip: body["spec"]["clusterIP"].as_str().unwrap_or("10.96.0.9").to_owned(),
        node_ports: ports.iter().map(allocated).collect(),
        ingress: None,
    }
}

/// Data of a Secret.
pub(crate) fn texts(entries: &[(&str, &str)]) -> BTreeMap<String, Arc<[u8]>> {
    entries.iter().map(|(key, text)| ((*key).to_owned(), Arc::from(text.as_bytes()))).collect()
}

/// Data of a Secret's manifest.
pub(crate) fn decoded(data: &Value) -> BTreeMap<String, Arc<[u8]>> {
    let data: BTreeMap<String, ByteString> = serde_json::from_value(data.clone()).expect("base64");
    data.into_iter().map(|(key, bytes)| (key, Arc::from(bytes.0))).collect()
}

/// The manifest of this kind and name that a plan creates or updates.
pub(crate) fn made(plan: &Plan, kind: Kind, name: &str) -> Option<Value> {
    plan.steps.iter().find_map(|step| match step {
        Step::Create(object) | Step::Update { object, .. } if (object.kind, object.name.as_str()) == (kind, name) => {
            Some(object.body.clone())
        }
        _ => None,
    })
}
