//! Keys and certificates: the only randomness of the SIP capability. Key material is written to Secrets and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use io_kube::read;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use plan_sip::services::{
    Object,
    auth::certificate::{CA, CERTIFICATE, CertificateMeta, META, PRIVATE_KEY},
};
use serde_json::json;

use crate::{
    Context, Error,
    authority::{Authority, LIFE, Own, SKEW},
};

/// Puts new ssh host keys (ed25519) into a Secret.
pub fn host_keys(object: &mut Object) -> Result<(), Error> {
    let failed = |why: ssh_key::Error| Error::Keys { name: object.name.clone(), why: why.to_string() };
    let key = ssh_key::PrivateKey::random(&mut rand_core::OsRng, ssh_key::Algorithm::Ed25519).map_err(failed)?;
    let private = key.to_openssh(ssh_key::LineEnding::LF).map_err(failed)?;
    let public = key.public_key().to_openssh().map_err(failed)?;
    put(object, [("ssh_host_ed25519_key", private.as_str()), ("ssh_host_ed25519_key.pub", &format!("{public}\n"))]);
    Ok(())
}

/// Puts a certificate for `names` into a Secret: signed by the CA in `ca_secret` (`tls.crt`, `tls.key`), else by one of
/// its own, kept in the same Secret, which is made at first and has a successor in time ([`Own`]).
pub async fn certificate(
    object: &mut Object,
    names: &BTreeSet<String>,
    ca_secret: Option<&str>,
    namespace: &str,
    cx: &Context,
) -> Result<(), Error> {
    let now = (cx.now)().as_second();
    let failed = |why: String| Error::Keys { name: object.name.clone(), why };
    let meta = CertificateMeta {
        not_before: now - SKEW,
        not_after: now + LIFE,
        names: names.clone(),
        ca_secret: ca_secret.map(str::to_owned),
    };
    let mut data = BTreeMap::new();
    let (certificate, key) = if let Some(name) = ca_secret {
        let given = secret(cx, &Key::new(namespace, name)).await?.unwrap_or_default();
        let missing = || Error::Keys { name: name.to_owned(), why: "it lacks tls.crt or tls.key".to_owned() };
        let authority = Authority::of(&given, CERTIFICATE, PRIVATE_KEY).ok_or_else(missing)?;
        data.insert(CA, authority.certificate().to_owned());
        authority.sign(&meta).map_err(failed)?
    } else {
        let kept = secret(cx, &Key::new(namespace, &object.name)).await?;
        let own = Own::at(kept.as_ref(), &object.name, now).map_err(failed)?;
        own.keep(&mut data);
        own.signs().sign(&meta).map_err(failed)?
    };
    let meta = serde_json::to_string(&meta).expect("numbers and strings are JSON");
    data.extend([(CERTIFICATE, certificate), (PRIVATE_KEY, key), (META, meta)]);
    put(object, data.iter().map(|(key, text)| (*key, text.as_str())));
    Ok(())
}

fn put<'a>(object: &mut Object, data: impl IntoIterator<Item = (&'a str, &'a str)>) {
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
