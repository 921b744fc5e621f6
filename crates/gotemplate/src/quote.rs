//! Quotes strings and characters as Go's `strconv` does.

use crate::classes::is_print;

/// `strconv.Quote`, or `QuoteToASCII`.
pub(crate) fn quote(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        escape(&mut out, c, '"', ascii);
    }
    out.push('"');
    out
}

/// `strconv.QuoteRune`, or `QuoteRuneToASCII`.
pub(crate) fn quote_char(c: char, ascii: bool) -> String {
    let mut out = String::from("'");
    escape(&mut out, c, '\'', ascii);
    out.push('\'');
    out
}

fn escape(out: &mut String, c: char, quote: char, ascii: bool) {
    let code = u32::from(c);
    match c {
        '\\' => out.push_str("\\\\"),
        c if c == quote => out.extend(['\\', c]),
        c if is_print(c) && (c.is_ascii() || !ascii) => out.push(c),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        _ if code < 0x20 || code == 0x7f => out.push_str(&format!("\\x{code:02x}")),
        _ if code < 0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
        _ => out.push_str(&format!("\\U{code:08x}")),
    }
}

/// `strconv.CanBackquote`: the text can stand between back quotes as it is.
pub(crate) fn can_backquote(text: &str) -> bool {
    text.chars().all(|c| !matches!(c, '\0'..='\x08' | '\x0a'..='\x1f' | '`' | '\x7f' | '\u{feff}'))
}
