//! The character classes of Go's `unicode` and `strconv` packages that std's differ from.

use std::sync::LazyLock;

use regex::Regex;

/// Graphic characters as `strconv.IsPrint` counts them: letters, marks, numbers, punctuation, symbols.
static PRINTABLE: LazyLock<Regex> = LazyLock::new(|| class(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$"));
/// What may stand in a name, after `unicode.IsLetter` and `unicode.IsDigit`.
static IN_NAMES: LazyLock<Regex> = LazyLock::new(|| class(r"^[\p{L}\p{Nd}]$"));
static LETTER: LazyLock<Regex> = LazyLock::new(|| class(r"^\p{L}$"));

fn class(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern of known classes")
}

fn matches(class: &Regex, c: char) -> bool {
    class.is_match(c.encode_utf8(&mut [0; 4]))
}

/// `strconv.IsPrint`.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() { matches!(c, ' '..='~') } else { matches(&PRINTABLE, c) }
}

/// A letter, a decimal digit or an underscore.
pub(crate) fn is_alphanumeric(c: char) -> bool {
    if c.is_ascii() { c == '_' || c.is_ascii_alphanumeric() } else { matches(&IN_NAMES, c) }
}

/// `unicode.IsLetter`.
pub(crate) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { matches(&LETTER, c) }
}

/// `unicode.ToUpper`: one character for one; those whose capital is several letters stay.
pub(crate) fn upper(c: char) -> char {
    single(c.to_uppercase()).unwrap_or(c)
}

/// `unicode.ToLower`: one character for one.
pub(crate) fn lower(c: char) -> char {
    // The only character whose full lower case has two letters; its simple one is plain i.
    if c == '\u{130}' { 'i' } else { single(c.to_lowercase()).unwrap_or(c) }
}

fn single(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next();
    if chars.next().is_none() { first } else { None }
}
