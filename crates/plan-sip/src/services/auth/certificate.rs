//! When the provider's certificate is made anew, from what is written beside it: nothing here reads X.509.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Key of [`CertificateMeta`] in the Secret.
pub const META: &str = "meta";
/// Key of the certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// Key of its private key.
pub const PRIVATE_KEY: &str = "tls.key";
/// Key of the certificate of the CA that signed it: a copy, byte for byte, of `tls.crt` in `caSecret`, or our own, and
/// after it those that will sign, or have signed, and have not ended.
pub const CA: &str = "ca.crt";
/// Key of the private key of our own CA; absent where `caSecret` is given. It is mounted nowhere.
pub const CA_PRIVATE_KEY: &str = "ca.key";
/// Key of the private key of the CA that will follow ours, while both are published. It is mounted nowhere.
pub const NEXT_CA_PRIVATE_KEY: &str = "next-ca.key";

/// What the maker of a certificate writes beside it, as JSON, so that a plan can tell when it is due.
///
/// The maker copies `names` and `ca_secret` from [`Step::MakeCertificate`](super::super::Step::MakeCertificate). A CA of
/// our own lives for ten years and stays when the certificate is renewed. Two years before its end the maker publishes
/// its successor beside it, which signs half a year later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateMeta {
    /// Seconds since the epoch from which it holds.
    pub not_before: i64,
    /// Seconds since the epoch until which it holds.
    pub not_after: i64,
    /// DNS names and addresses it holds for.
    pub names: BTreeSet<String>,
    /// The Secret with the CA that signed it; absent: our own CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<String>,
}

/// How a certificate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It serves for so many seconds more.
    Serves(u64),
    /// It still serves, and its time has come: two thirds of its life are over.
    Due,
    /// It is for other names, of another CA, or cannot be read.
    Wrong,
}

impl CertificateMeta {
    /// How the certificate stands at `now`, for these names and this CA.
    pub(super) fn verdict(&self, names: &BTreeSet<String>, ca_secret: Option<&str>, now: i64) -> Verdict {
        let Self { not_before, not_after, names: has, ca_secret: by } = self;
        if has != names || by.as_deref() != ca_secret || not_after <= not_before {
            return Verdict::Wrong;
        }
        let renewal = not_before.saturating_add(not_after.saturating_sub(*not_before) / 3 * 2);
        match u64::try_from(renewal.saturating_sub(now)) {
            Ok(left) if left > 0 => Verdict::Serves(left),
            _ => Verdict::Due,
        }
    }
}

/// The names under which a provider is reached: the published host, and those of its Service.
pub(super) fn names(host: &str, service: &str, namespace: &str) -> BTreeSet<String> {
    [
        host.to_owned(),
        service.to_owned(),
        format!("{service}.{namespace}"),
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
    ]
    .into()
}

/// The certificates in a PEM text, and nothing else of it: no private key that lies beside them, no other line.
pub fn certificates(text: &[u8]) -> String {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = String::from_utf8_lossy(text);
    let mut found = String::new();
    let mut block: Option<String> = None;
    for line in text.lines().map(str::trim) {
        match &mut block {
            _ if line == BEGIN => block = Some(format!("{BEGIN}\n")),
            Some(body) if line == END => {
                found.extend([body.as_str(), END, "\n"]);
                block = None;
            }
            Some(body) if line.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)) => {
                body.extend([line, "\n"]);
            }
            Some(_) | None => block = None,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta() -> CertificateMeta {
        CertificateMeta { not_before: 1000, not_after: 1900, names: names("10.9.0.1", "auth-a", "ns"), ca_secret: None }
    }

    #[test]
    fn it_is_renewed_when_two_thirds_of_its_life_are_over() {
        let names = meta().names;
        assert_eq!(meta().verdict(&names, None, 1000), Verdict::Serves(600));
        assert_eq!(meta().verdict(&names, None, 1599), Verdict::Serves(1));
        assert_eq!(meta().verdict(&names, None, 1600), Verdict::Due);
        assert_eq!(meta().verdict(&names, None, 9999), Verdict::Due);
    }

    #[test]
    fn other_names_or_another_ca_make_it_wrong() {
        assert_eq!(meta().verdict(&names("10.9.0.2", "auth-a", "ns"), None, 1000), Verdict::Wrong);
        assert_eq!(meta().verdict(&meta().names, Some("ca"), 1000), Verdict::Wrong);
        let endless = CertificateMeta { not_after: i64::MAX, not_before: i64::MIN, ..meta() };
        assert_eq!(endless.verdict(&endless.names, None, i64::MAX), Verdict::Due, "no time overflows");
    }

    #[test]
    fn only_certificates_are_taken_from_a_pem() {
        let key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
        let one = "-----BEGIN CERTIFICATE-----\nMIIC+/==\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(format!("{key}subject=x\r\n{one}{key}{one}").as_bytes()), format!("{one}{one}"));
        assert_eq!(certificates(key.as_bytes()), "");
        assert_eq!(certificates(b"-----BEGIN CERTIFICATE-----\nMII C\n-----END CERTIFICATE-----"), "");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_reads_the_same_again(text in "(-----BEGIN CERTIFICATE-----\n|-----END CERTIFICATE-----\n|[A-Z+/=\n: ]{0,9}){0,9}") {
            let taken = certificates(text.as_bytes());
            prop_assert_eq!(certificates(taken.as_bytes()), taken);
        }
    }
}
