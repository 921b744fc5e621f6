//! Public keys that may log in: each line of the spec is checked, and what is written can never be more than one line.

use ssh_key::{Algorithm, PublicKey};

/// Why a line of `sshAuthorizedKeys` is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadKey {
    #[error("is empty")]
    Empty,
    #[error("is a comment, not a key")]
    Comment,
    #[error("holds more than one line, or a control character")]
    Control,
    #[error("has a quote that is not closed in its options")]
    OpenQuote,
    #[error("has no key: expected '[options] type base64 [comment]'")]
    NoKey,
    #[error("has a key of type {kind:?} that cannot be read: {why}")]
    Unreadable { kind: String, why: String },
}

/// One line of `authorized_keys`, as sshd(8) describes the format: options, type, key, comment.
///
/// Options and comment are kept, white space around and between the fields is not.
pub(super) fn line(text: &str) -> Result<String, BadKey> {
    let text = text.trim();
    if text.is_empty() {
        return Err(BadKey::Empty);
    }
    if text.starts_with('#') {
        return Err(BadKey::Comment);
    }
    if text.chars().any(|c| (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err(BadKey::Control);
    }
    let (first, rest) = field(text)?;
    match key(first, rest) {
        Ok(line) => Ok(line),
        Err(plain) => {
            let (kind, after) = field(rest).map_err(|_| plain.clone())?;
            // A line whose first word is a key type has no options: then its own error is the one to tell.
            if is_type(first) {
                return Err(plain);
            }
            if !is_type(kind) {
                return Err(BadKey::NoKey);
            }
            Ok(format!("{first} {}", key(kind, after)?))
        }
    }
}

/// Whether a word is one of the key types that OpenSSH has.
fn is_type(word: &str) -> bool {
    word.parse().is_ok_and(|algorithm| !matches!(algorithm, Algorithm::Other(_)))
}

/// `type base64 [comment]`.
fn key(kind: &str, rest: &str) -> Result<String, BadKey> {
    let mut parts = rest.splitn(2, [' ', '\t']);
    let (Some(data), comment) = (parts.next().filter(|d| !d.is_empty()), parts.next().unwrap_or_default().trim())
    else {
        return Err(BadKey::NoKey);
    };
    let bare = format!("{kind} {data}");
    PublicKey::from_openssh(&bare)
        .map_err(|why| BadKey::Unreadable { kind: kind.chars().take(32).collect(), why: why.to_string() })?;
    Ok(if comment.is_empty() { bare } else { format!("{bare} {comment}") })
}

/// The first word, in which quoted blanks do not count, and what follows it.
fn field(text: &str) -> Result<(&str, &str), BadKey> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => quoted = !quoted,
            ' ' | '\t' if !quoted => return Ok((&text[..at], text[at..].trim_start())),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    if quoted { Err(BadKey::OpenQuote) } else { Ok((text, "")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const ED: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const EC: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHwf2HMM5TRXvo2SQJjsNkiDD5KqiiNjrGVv3UUh+mMT5RHxiRtOnlqvjhQtBq0VpmpCV/PwUdhOig4vkbqAcEc=";

    #[rstest]
    #[case::plain(ED.to_owned(), ED.to_owned())]
    #[case::ecdsa(EC.to_owned(), EC.to_owned())]
    #[case::comment_with_blanks(format!("{ED}   ann at the desk "), format!("{ED} ann at the desk"))]
    #[case::block_scalar(format!("{ED} ann\n"), format!("{ED} ann"))]
    #[case::tabs(ED.replace(' ', "\t"), ED.to_owned())]
    #[case::options(format!("restrict,pty {ED} ann"), format!("restrict,pty {ED} ann"))]
    #[case::quoted_blank(format!(r#"command="host list" {ED}"#), format!(r#"command="host list" {ED}"#))]
    #[case::escaped_quote(format!(r#"command="say \"a b\"" {ED}"#), format!(r#"command="say \"a b\"" {ED}"#))]
    fn a_good_line_is_kept(#[case] text: String, #[case] kept: String) {
        assert_eq!(line(&text), Ok(kept));
    }

    #[rstest]
    #[case::nothing("", "is empty")]
    #[case::comment("# ssh-ed25519 AAAA", "is a comment, not a key")]
    #[case::word("garbage", "has no key: expected '[options] type base64 [comment]'")]
    #[case::no_type("rsa AAAA ann", "has no key: expected '[options] type base64 [comment]'")]
    #[case::open_quote(r#"command="ls ssh-ed25519 AAAA"#, "has a quote that is not closed in its options")]
    #[case::no_data("ssh-ed25519", "has no key: expected '[options] type base64 [comment]'")]
    fn a_bad_line_says_why(#[case] text: &str, #[case] why: &str) {
        assert_eq!(line(text).unwrap_err().to_string(), why);
    }

    #[test]
    fn a_key_that_is_cut_or_of_another_type_than_it_says_names_the_type() {
        for text in ["ssh-ed25519 AAAAC3Nza ann", &ED.replace("ssh-ed25519", "ssh-rsa")] {
            let BadKey::Unreadable { kind, .. } = line(text).unwrap_err() else { panic!("{text}") };
            assert_eq!(Some(kind.as_str()), text.split(' ').next());
        }
    }

    #[test]
    fn a_second_line_is_never_smuggled_in() {
        assert_eq!(line(&format!("{ED} ann\n{EC} eve")), Err(BadKey::Control));
        assert_eq!(line(&format!("{ED} ann\r{EC} eve")), Err(BadKey::Control));
    }

    proptest! {
        #[test]
        fn whatever_is_kept_is_one_line_and_reads_the_same_again(before in "[ -~\t\n\r]{0,12}", after in "\\PC{0,12}|[ -~\n\r\t]{0,12}") {
            if let Ok(kept) = line(&format!("{before} {ED} {after}")) {
                prop_assert!(!kept.contains(['\n', '\r', '\0']));
                prop_assert_eq!(line(&kept), Ok(kept.clone()));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,80}") {
            let _ = line(&text);
        }
    }
}
