//! Keys and certificates: the only randomness of the SIP capability. Key material is written to Secrets and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use io_kube::read;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use plan_sip::services::{
    Object,
    auth::certificate::{CA, CA_PRIVATE_KEY, CERTIFICATE, CertificateMeta, META, PRIVATE_KEY},
};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;

use crate::{Context, Error};

/// Life of a certificate, in seconds: 90 days. It is renewed at two thirds.
const LIFE: i64 = 90 * 24 * 3600;
/// Life of a CA of our own, in seconds: ten years.
const CA_LIFE: i64 = 3650 * 24 * 3600;
/// How far clocks may differ.
const SKEW: i64 = 300;

/// Puts new ssh host keys (ed25519) into a Secret.
pub fn host_keys(object: &mut Object) -> Result<(), Error> {
    let failed = |why: ssh_key::Error| Error::Keys { name: object.name.clone(), why: why.to_string() };
    let key = ssh_key::PrivateKey::random(&mut rand_core::OsRng, ssh_key::Algorithm::Ed25519).map_err(failed)?;
    let private = key.to_openssh(ssh_key::LineEnding::LF).map_err(failed)?;
    let public = key.public_key().to_openssh().map_err(failed)?;
    put(object, [("ssh_host_ed25519_key", private.as_str()), ("ssh_host_ed25519_key.pub", &format!("{public}\n"))]);
    Ok(())
}

/// Puts a certificate for `names` into a Secret: signed by the CA in `ca_secret` (`tls.crt`, `tls.key`), else by the CA
/// of its own that the Secret has already, else by a new one.
pub async fn certificate(
    object: &mut Object,
    names: &BTreeSet<String>,
    ca_secret: Option<&str>,
    namespace: &str,
    cx: &Context,
) -> Result<(), Error> {
    let now = (cx.now)().as_second();
    let own = match ca_secret {
        Some(_) => None,
        None => secret(cx, &Key::new(namespace, &object.name))
            .await?
            .and_then(|data| Authority::of(&data, CA, CA_PRIVATE_KEY)),
    };
    let authority = match ca_secret {
        Some(name) => {
            let data = secret(cx, &Key::new(namespace, name)).await?.unwrap_or_default();
            let missing = || Error::Keys { name: name.to_owned(), why: "it lacks tls.crt or tls.key".to_owned() };
            Authority::of(&data, CERTIFICATE, PRIVATE_KEY).ok_or_else(missing)?
        }
        None => match own {
            Some(own) => own,
            None => Authority::new(&object.name, now).map_err(|why| Error::Keys { name: object.name.clone(), why })?,
        },
    };
    let meta = CertificateMeta {
        not_before: now - SKEW,
        not_after: now + LIFE,
        names: names.clone(),
        ca_secret: ca_secret.map(str::to_owned),
    };
    let (certificate, key) = authority.sign(&meta).map_err(|why| Error::Keys { name: object.name.clone(), why })?;
    let meta = serde_json::to_string(&meta).expect("numbers and strings are JSON");
    put(
        object,
        [(CERTIFICATE, certificate.as_str()), (PRIVATE_KEY, &key), (CA, &authority.certificate), (META, &meta)],
    );
    if ca_secret.is_none() {
        put(object, [(CA_PRIVATE_KEY, authority.key.as_str())]);
    }
    Ok(())
}

fn put<const N: usize>(object: &mut Object, data: [(&str, &str); N]) {
    for (key, text) in data {
        object.body["data"][key] = json!(ByteString(text.as_bytes().to_vec()));
    }
}

async fn secret(cx: &Context, key: &Key) -> Result<Option<BTreeMap<String, String>>, Error> {
    let found =
        read::get_as::<Secret>(cx.writer.client(), Some(&key.namespace), &key.name).await.map_err(Error::Api)?;
    let text = |(key, ByteString(bytes)): (String, ByteString)| Some((key, String::from_utf8(bytes).ok()?));
    Ok(found.map(|s| s.data.into_iter().flatten().filter_map(text).collect()))
}

/// A CA: its certificate and key, in PEM.
struct Authority {
    certificate: String,
    key: String,
}

impl Authority {
    fn of(data: &BTreeMap<String, String>, certificate: &str, key: &str) -> Option<Self> {
        Some(Self { certificate: data.get(certificate)?.clone(), key: data.get(key)?.clone() })
    }

    fn new(name: &str, now: i64) -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|e| e.to_string())?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("{name} CA"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = (at(now - SKEW)?, at(now + CA_LIFE)?);
        let certificate = params.self_signed(&key).map_err(|e| e.to_string())?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn sign(&self, meta: &CertificateMeta) -> Result<(String, String), String> {
        let ca_key = KeyPair::from_pem(&self.key).map_err(|e| format!("the CA's key cannot be read: {e}"))?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, ca_key)
            .map_err(|e| format!("the CA's certificate cannot be read: {e}"))?;
        let key = KeyPair::generate().map_err(|e| e.to_string())?;
        let names: Vec<String> = meta.names.iter().cloned().collect();
        let mut params = CertificateParams::new(names).map_err(|e| e.to_string())?;
        params.distinguished_name.push(DnType::CommonName, "dex");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        (params.not_before, params.not_after) = (at(meta.not_before)?, at(meta.not_after)?);
        let certificate = params.signed_by(&key, &issuer).map_err(|e| e.to_string())?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

fn at(second: i64) -> Result<time::OffsetDateTime, String> {
    time::OffsetDateTime::from_unix_timestamp(second).map_err(|e| e.to_string())
}
