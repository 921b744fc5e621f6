//! CAs: the one that a Secret brings, or our own, which is followed by another long before it ends.
//!
//! ```text
//!  made ───────────── 8 years ─────────────► a second one is made and published beside it; the first goes on signing
//!                                            180 days later, or when the first could sign for 90 days no more
//!                                          ► the second signs; the first stays published until it has ended
//! ```
//!
//! Tenants' machines learn of a CA when people roll out what is published, so both are published together for years.
//! All this happens when a certificate is renewed, every 60 days, and costs no write of its own.

use std::collections::BTreeMap;

use plan_sip::services::auth::certificate::{CA, CA_PRIVATE_KEY, CertificateMeta, NEXT_CA_PRIVATE_KEY, certificates};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

const DAY: i64 = 24 * 3600;
/// Life of a certificate, in seconds: 90 days. It is renewed at two thirds.
pub(crate) const LIFE: i64 = 90 * DAY;
/// Life of a CA of our own, in seconds: ten years.
const CA_LIFE: i64 = 3650 * DAY;
/// A CA that has less than this to live gets a successor.
const ANNOUNCED: i64 = 730 * DAY;
/// How long a successor is published before it signs.
const PUBLISHED: i64 = 180 * DAY;
/// How far clocks may differ.
pub(crate) const SKEW: i64 = 300;

/// A CA: its certificate and key, in PEM.
#[derive(Clone)]
pub(crate) struct Authority {
    certificate: String,
    key: String,
}

/// Our own CA as it is kept in a provider's Secret.
pub(crate) struct Own {
    signs: Authority,
    next: Option<Authority>,
    /// Certificates of those before, until they have ended.
    before: Vec<String>,
}

impl Own {
    /// The CA of this Secret's data as it shall be at second `now`: a new one, the one that is there, or its successor.
    pub fn at(data: Option<&BTreeMap<String, String>>, name: &str, now: i64) -> Result<Self, String> {
        let Some(mut own) = data.and_then(Self::read) else {
            return Ok(Self { signs: Authority::new(name, now)?, next: None, before: Vec::new() });
        };
        let end = Validity::of(&own.signs.certificate)?.not_after;
        if end - now < ANNOUNCED && own.next.is_none() {
            own.next = Some(Authority::new(name, now)?);
        }
        if let Some(next) = own.next.take() {
            let published = now - Validity::of(&next.certificate)?.not_before;
            if published >= PUBLISHED || end - now < LIFE {
                own.before.push(std::mem::replace(&mut own.signs, next).certificate);
            } else {
                own.next = Some(next);
            }
        }
        own.before.retain(|pem| Validity::of(pem).is_ok_and(|validity| validity.not_after > now));
        Ok(own)
    }

    /// The first certificate of `ca.crt` is the one that signs, with key `ca.key`; the second belongs to `next-ca.key`,
    /// if that is there.
    fn read(data: &BTreeMap<String, String>) -> Option<Self> {
        let mut published = each(data.get(CA)?).into_iter();
        let signs = Authority { certificate: published.next()?, key: data.get(CA_PRIVATE_KEY)?.clone() };
        let next = match data.get(NEXT_CA_PRIVATE_KEY) {
            Some(key) => published.next().map(|certificate| Authority { certificate, key: key.clone() }),
            None => None,
        };
        Some(Self { signs, next, before: published.collect() })
    }

    /// The one that signs.
    pub fn signs(&self) -> &Authority {
        &self.signs
    }

    /// Adds what is kept of it to a Secret's data.
    pub fn keep(&self, data: &mut BTreeMap<&'static str, String>) {
        let Self { signs, next, before } = self;
        let published = [&signs.certificate].into_iter().chain(next.as_ref().map(|n| &n.certificate)).chain(before);
        data.insert(CA, published.map(String::as_str).collect());
        data.insert(CA_PRIVATE_KEY, signs.key.clone());
        if let Some(next) = next {
            data.insert(NEXT_CA_PRIVATE_KEY, next.key.clone());
        }
    }
}

impl Authority {
    /// The CA in these keys of a Secret; of several certificates the first signs.
    pub fn of(data: &BTreeMap<String, String>, certificate: &str, key: &str) -> Option<Self> {
        Some(Self { certificate: data.get(certificate)?.clone(), key: data.get(key)?.clone() })
    }

    /// Its certificate, as it was given.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    fn new(name: &str, now: i64) -> Result<Self, String> {
        let key = KeyPair::generate().map_err(|e| e.to_string())?;
        let mut params = CertificateParams::default();
        // Two of them live side by side; by their names alone nobody could tell them apart.
        let year = jiff::Timestamp::from_second(now).map_err(|e| e.to_string())?.strftime("%Y-%m-%d").to_string();
        params.distinguished_name.push(DnType::CommonName, format!("{name} CA {year}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = (at(now - SKEW)?, at(now + CA_LIFE)?);
        let certificate = params.self_signed(&key).map_err(|e| e.to_string())?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// A certificate, and its key.
    pub fn sign(&self, meta: &CertificateMeta) -> Result<(String, String), String> {
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

/// From when to when a certificate holds, in seconds since the epoch.
struct Validity {
    not_before: i64,
    not_after: i64,
}

impl Validity {
    fn of(pem: &str) -> Result<Self, String> {
        let bad = |why: String| format!("a CA's certificate cannot be read: {why}");
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|e| bad(e.to_string()))?;
        let certificate = pem.parse_x509().map_err(|e| bad(e.to_string()))?;
        let validity = certificate.validity();
        Ok(Self { not_before: validity.not_before.timestamp(), not_after: validity.not_after.timestamp() })
    }
}

/// The certificates of a PEM text, one by one.
fn each(pem: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----\n";
    certificates(pem.as_bytes()).split_inclusive(END).map(str::to_owned).collect()
}

fn at(second: i64) -> Result<time::OffsetDateTime, String> {
    time::OffsetDateTime::from_unix_timestamp(second).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio_rustls::rustls::{
        RootCertStore,
        client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
    };

    use super::*;

    /// Data of a provider's Secret after its certificate was made or renewed, and the certificate.
    fn renewed(data: Option<&BTreeMap<String, String>>, now: i64) -> (BTreeMap<String, String>, String) {
        let own = Own::at(data, "auth-a", now).expect("a CA");
        let names = ["login.example".to_owned()].into();
        let meta = CertificateMeta { not_before: now - SKEW, not_after: now + LIFE, names, ca_secret: None };
        let (certificate, _) = own.signs().sign(&meta).expect("a certificate");
        let mut kept = BTreeMap::new();
        own.keep(&mut kept);
        (kept.into_iter().map(|(key, text)| (key.to_owned(), text)).collect(), certificate)
    }

    /// Whether a client that trusts what was published takes the certificate at this time.
    fn trusted(published: &str, certificate: &str, now: i64) -> bool {
        let mut roots = RootCertStore::empty();
        for ca in CertificateDer::pem_slice_iter(published.as_bytes()) {
            roots.add(ca.expect("PEM")).expect("a CA");
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("roots");
        let leaf = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
        let name = ServerName::try_from("login.example").expect("a name");
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.unsigned_abs()));
        verifier.verify_server_cert(&leaf, &[], &name, &[], now).is_ok()
    }

    #[test]
    fn whoever_trusts_what_was_published_half_a_year_ago_trusts_every_certificate_for_thirty_years() {
        let (start, mut now) = (1_700_000_000, 1_700_000_000);
        let (mut data, mut certificate) = renewed(None, now);
        let mut published = vec![(now, data[CA].clone())];
        let mut signers = std::collections::BTreeSet::new();
        while now < start + 30 * 365 * DAY {
            now += 60 * DAY;
            assert!(trusted(&data[CA], &certificate, now), "the old certificate serves until it is renewed");
            (data, certificate) = renewed(Some(&data), now);
            signers.insert(data[CA_PRIVATE_KEY].clone());
            published.push((now, data[CA].clone()));
            let (_, known) = published.iter().rev().find(|(then, _)| *then <= now - 180 * DAY).unwrap_or(&published[0]);
            assert!(trusted(known, &certificate, now), "{} days after the start", (now - start) / DAY);
            assert!(each(&data[CA]).len() <= 3);
        }
        assert_eq!(signers.len(), 4, "a CA signs for some eight years");
    }

    #[test]
    fn a_ca_whose_end_was_slept_through_is_replaced_at_once() {
        let (data, _) = renewed(None, 1_700_000_000);
        let late = 1_700_000_000 + CA_LIFE + DAY;
        let (after, certificate) = renewed(Some(&data), late);
        assert!(trusted(&after[CA], &certificate, late));
        assert_eq!(each(&after[CA]).len(), 1, "one that has ended is nothing to publish");
    }
}
