//! Rewrites a regular expression of Go's syntax into that of the `regex` crate, where the two differ.
//!
//! In Go `\d`, `\s`, `\w` and `\b` know ASCII only, a `{` that begins no repetition and a `[` in a class are
//! themselves, and `\Q...\E` quotes. What cannot be carried over is refused rather than matched differently.

/// The same expression for the `regex` crate, or why there is none.
pub(super) fn translate(source: &str) -> Result<String, String> {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\\' => escape(&mut out, &rest[1..], false)?,
            '[' => class(&mut out, &rest[1..])?,
            '{' if !is_repetition(rest) => {
                out.push_str("\\{");
                &rest[1..]
            }
            // The other flags of the crate are unknown to Go.
            '(' if rest.starts_with("(?") => flags(&mut out, rest)?,
            '(' => {
                out.push('(');
                &rest[1..]
            }
            c => {
                out.push(c);
                &rest[c.len_utf8()..]
            }
        };
    }
    Ok(out)
}

/// `{2}`, `{2,}`, `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else { return false };
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// `(?i)`, `(?i:`, `(?P<name>`, `(?<name>`.
fn flags<'s>(out: &mut String, rest: &'s str) -> Result<&'s str, String> {
    let body = &rest[2..];
    if body.starts_with("P<") || body.starts_with('<') {
        out.push_str("(?");
        return Ok(body);
    }
    let end = body.find([')', ':']).ok_or("missing closing )")?;
    if let Some(flag) = body[..end].chars().find(|c| !"imsU-".contains(*c)) {
        return Err(format!("invalid or unsupported Perl syntax: flag {flag}"));
    }
    out.push_str(&rest[..2 + end]);
    Ok(&body[end..])
}

/// What follows a backslash.
fn escape<'s>(out: &mut String, rest: &'s str, in_class: bool) -> Result<&'s str, String> {
    let c = rest.chars().next().ok_or("trailing backslash at end of expression")?;
    let after = &rest[c.len_utf8()..];
    let class = |inner: &str| if in_class { inner.to_owned() } else { format!("[{inner}]") };
    match c {
        'd' => out.push_str(&class("0-9")),
        's' => out.push_str(&class(r"\t\n\x0C\r ")),
        'w' => out.push_str(&class("0-9A-Za-z_")),
        'D' => out.push_str("[^0-9]"),
        'S' => out.push_str(r"[^\t\n\x0C\r ]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'b' if !in_class => out.push_str(r"(?-u:\b)"),
        'A' | 'z' if !in_class => out.extend(['\\', c]),
        'a' | 'f' | 'n' | 'r' | 't' | 'v' => out.extend(['\\', c]),
        'p' | 'P' | 'x' => {
            out.extend(['\\', c]);
            // The name or number may stand in braces, which are none of a repetition.
            let braced = if after.starts_with('{') { after.find('}').map_or(0, |end| end + 1) } else { 0 };
            out.push_str(&after[..braced]);
            return Ok(&after[braced..]);
        }
        'Q' if !in_class => {
            let (quoted, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(quoted));
            return Ok(after);
        }
        '0'..='7' => {
            let digits: String = rest.chars().take(3).take_while(|c| ('0'..='7').contains(c)).collect();
            // A single digit other than 0 would refer back to a group.
            if digits.len() < 2 && c != '0' {
                return Err(format!("invalid escape sequence: \\{c}"));
            }
            let code = u32::from_str_radix(&digits, 8).map_err(|_| format!("invalid escape sequence: \\{digits}"))?;
            *out += &format!("\\x{{{code:X}}}");
            return Ok(&rest[digits.len()..]);
        }
        'B' => return Err(r"\B is not supported".into()),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => out.push_str(&regex::escape(&c.to_string())),
        c => return Err(format!("invalid escape sequence: \\{c}")),
    }
    Ok(after)
}

/// What follows the `[` of a class, its end included.
fn class<'s>(out: &mut String, mut rest: &'s str) -> Result<&'s str, String> {
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let c = rest.chars().next().ok_or("missing closing ]")?;
        rest = match c {
            ']' if !first => {
                out.push(']');
                return Ok(&rest[1..]);
            }
            '\\' => escape(out, &rest[1..], true)?,
            '[' if rest.starts_with("[:") => match rest.find(":]") {
                Some(end) => {
                    out.push_str(&rest[..end + 2]);
                    &rest[end + 2..]
                }
                None => return Err("missing closing :]".into()),
            },
            // Single, these mean nothing; doubled, the crate takes some of them for operators on classes.
            '[' | ']' | '&' | '~' => {
                out.extend(['\\', c]);
                &rest[1..]
            }
            '-' if first || rest.starts_with("-]") => {
                out.push_str("\\-");
                &rest[1..]
            }
            c => {
                out.push(c);
                &rest[c.len_utf8()..]
            }
        };
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn perl_classes_know_ascii_only() {
        assert_eq!(translate(r"\d+[\w-]").as_deref(), Ok(r"[0-9]+[0-9A-Za-z_\-]"));
    }

    #[test]
    fn a_brace_that_repeats_nothing_is_itself() {
        assert_eq!(translate("a{b}c{2}").as_deref(), Ok(r"a\{b}c{2}"));
    }

    #[test]
    fn what_cannot_be_carried_over_is_refused() {
        assert!(translate(r"\B").is_err());
        assert!(translate("(?x)a").is_err());
        assert!(translate(r"(a)\1").is_err());
    }
}
