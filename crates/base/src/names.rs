//! What Kubernetes accepts as names and label values.
//!
//! Source: Kubernetes "Object Names and IDs" and "Labels and Selectors".

/// Longest DNS label (RFC 1123), so the longest Service name and label value.
pub const LABEL_MAX: usize = 63;

/// Whether `text` may be the value of a label: empty, or at most 63 of `[A-Za-z0-9._-]` with an alphanumeric at both ends.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Whether `text` may be a label or annotation key: an optional DNS subdomain of at most 253, a slash, and a name of at most 63.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// Whether `text` is an RFC 1123 label.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_MAX
        && ends_well(text)
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

fn is_name_part(text: &str) -> bool {
    text.len() <= LABEL_MAX && ends_well(text) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn ends_well(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    edge(text.bytes().next()) && edge(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", true)]
    #[case("r1", true)]
    #[case("A_b.c-9", true)]
    #[case("-a", false)]
    #[case("a-", false)]
    #[case("gr\u{fc}n", false)]
    #[case("a b", false)]
    fn label_values(#[case] text: &str, #[case] good: bool) {
        assert_eq!(is_label_value(text), good);
        assert!(!is_label_value(&"a".repeat(64)));
    }

    #[rstest]
    #[case("vino.airshipit.org/rack", true)]
    #[case("rack", true)]
    #[case("", false)]
    #[case("/rack", false)]
    #[case("A.b/rack", false)]
    #[case("a/b/c", false)]
    fn label_keys(#[case] text: &str, #[case] good: bool) {
        assert_eq!(is_label_key(text), good);
    }
}
