//! Reads Go's literals: numbers of every base, quoted and raw strings, characters.

/// A number as a template writes it, with every reading that Go allows for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number {
    /// As written, for messages.
    pub text: String,
    /// Its value where an integer is wanted.
    pub int: Option<i64>,
    /// Its value where a float is wanted.
    pub float: Option<f64>,
    /// It is a float where nothing says otherwise.
    pub is_float: bool,
}

/// Reads an integer or float literal.
#[allow(clippy::cast_precision_loss)] // promotion of integers to floats is Go's rule
pub(crate) fn number(text: &str) -> Result<Number, String> {
    if text.ends_with('i') {
        return Err(format!("complex number {text} is not supported"));
    }
    if let Some(int) = parse_int(text, 0) {
        return Ok(Number { text: text.into(), int: Some(int), float: Some(int as f64), is_float: false });
    }
    if let Some(uint) = parse_uint(text, 0) {
        return Ok(Number { text: text.into(), int: None, float: Some(uint as f64), is_float: false });
    }
    let float = parse_float(text).ok_or_else(|| format!("illegal number syntax: {text:?}"))?;
    if !text.contains(['.', 'e', 'E', 'p', 'P']) {
        return Err(format!("integer overflow: {text:?}"));
    }
    Ok(Number { text: text.into(), int: exact_int(float), float: Some(float), is_float: true })
}

/// Reads `'x'`, whose value is its code point.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn character(text: &str) -> Result<Number, String> {
    let malformed = || format!("malformed character constant: {text}");
    let body = text.strip_prefix('\'').ok_or_else(malformed)?;
    let (unit, rest) = unquote_char(body, '\'').ok_or_else(malformed)?;
    if rest != "'" {
        return Err(malformed());
    }
    let code = match unit {
        Unit::Char(c) => u32::from(c),
        Unit::Byte(b) => u32::from(b),
    };
    Ok(Number { text: text.into(), int: Some(i64::from(code)), float: Some(f64::from(code)), is_float: false })
}

/// `float` as an integer if nothing is lost.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn exact_int(float: f64) -> Option<i64> {
    let int = float as i64;
    (int as f64 == float && float < 9.2e18).then_some(int)
}

/// `strconv.ParseInt`; base 0 reads prefixes and underscores.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = i128::from(parse_uint(digits, base)?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// `strconv.ParseUint`; base 0 reads prefixes and underscores.
pub(crate) fn parse_uint(text: &str, base: u32) -> Option<u64> {
    if base != 0 {
        return digits_of(text, base);
    }
    if !underscores_ok(text) {
        return None;
    }
    let (base, digits) = split_base(text);
    digits_of(&digits.replace('_', ""), base)
}

fn digits_of(digits: &str, base: u32) -> Option<u64> {
    // from_str_radix accepts a sign, which is not wanted here.
    if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, base).ok() }
}

fn split_base(text: &str) -> (u32, &str) {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.get(1)) {
        (Some(b'0'), Some(b'x' | b'X')) => (16, &text[2..]),
        (Some(b'0'), Some(b'o' | b'O')) => (8, &text[2..]),
        (Some(b'0'), Some(b'b' | b'B')) => (2, &text[2..]),
        (Some(b'0'), Some(_)) => (8, &text[1..]),
        _ => (10, text),
    }
}

/// Underscores stand between digits, or between a base prefix and a digit.
fn underscores_ok(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixed = matches!(text.as_bytes(), [b'0', b'b' | b'B' | b'o' | b'O' | b'x' | b'X', ..]);
    let hex = matches!(text.as_bytes(), [b'0', b'x' | b'X', ..]);
    let is_digit = |c: char| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    // The prefix counts as a digit.
    let mut before = if prefixed { '0' } else { ' ' };
    for c in text[if prefixed { 2 } else { 0 }..].chars() {
        if (c == '_' && !is_digit(before)) || (before == '_' && !is_digit(c)) {
            return false;
        }
        before = c;
    }
    before != '_'
}

/// `strconv.ParseFloat`, but for infinities that Go spells in ways of its own.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        return underscores_ok(body).then(|| hex_float(&hex.replace('_', ""))).flatten().map(|f| sign * f);
    }
    if body.starts_with(['+', '-']) || !underscores_ok(body) {
        return None;
    }
    let float: f64 = body.replace('_', "").parse().ok()?;
    // Out of range is an error in Go unless infinity is what the text says.
    (float.is_finite() || body.starts_with(['i', 'I', 'n', 'N'])).then_some(sign * float)
}

#[allow(clippy::cast_precision_loss)]
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let shift = exponent.checked_sub(4 * i32::try_from(fraction.len()).ok()?)?;
    let float = digits as f64 * f64::from(shift).exp2();
    float.is_finite().then_some(float)
}

/// Reads a quoted (`"`) or raw (`` ` ``) string, quotes included.
pub(crate) fn string(text: &str) -> Result<String, String> {
    if let Some(raw) = text.strip_prefix('`') {
        return Ok(raw.strip_suffix('`').unwrap_or(raw).replace('\r', ""));
    }
    let invalid = || format!("invalid string {text}");
    let mut rest = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or_else(invalid)?;
    let mut bytes = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        let (unit, after) = unquote_char(rest, '"').ok_or_else(invalid)?;
        match unit {
            Unit::Char(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(b) => bytes.push(b),
        }
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| format!("string {text} is not UTF-8"))
}

/// What one element of a literal stands for: a character, or (`\x`, octal) a byte.
enum Unit {
    Char(char),
    Byte(u8),
}

fn unquote_char(text: &str, quote: char) -> Option<(Unit, &str)> {
    let mut chars = text.chars();
    let first = chars.next()?;
    if first == quote || first == '\n' {
        return None;
    }
    if first != '\\' {
        return Some((Unit::Char(first), chars.as_str()));
    }
    let escape = chars.next()?;
    let rest = chars.as_str();
    let plain = |c| Some((Unit::Char(c), rest));
    match escape {
        'a' => plain('\x07'),
        'b' => plain('\x08'),
        'f' => plain('\x0c'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0b'),
        '\\' => plain('\\'),
        '\'' | '"' if escape == quote => plain(escape),
        'x' => code(rest, 2, 16).and_then(|(code, rest)| Some((Unit::Byte(u8::try_from(code).ok()?), rest))),
        'u' => code(rest, 4, 16).and_then(|(code, rest)| Some((Unit::Char(char::from_u32(code)?), rest))),
        'U' => code(rest, 8, 16).and_then(|(code, rest)| Some((Unit::Char(char::from_u32(code)?), rest))),
        '0'..='7' => code(&text[1..], 3, 8).and_then(|(code, rest)| Some((Unit::Byte(u8::try_from(code).ok()?), rest))),
        _ => None,
    }
}

fn code(text: &str, digits: usize, base: u32) -> Option<(u32, &str)> {
    let number = text.get(..digits)?;
    if number.starts_with(['+', '-']) {
        return None;
    }
    Some((u32::from_str_radix(number, base).ok()?, &text[digits..]))
}
