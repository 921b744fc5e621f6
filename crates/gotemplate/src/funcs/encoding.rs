//! sprig's encodings: JSON, base64, checksums.

use std::fmt::Write as _;

use sha2::{Digest, Sha256, Sha512};

use super::{Func, Param, base64, text};
use crate::ctx::{Ctx, Fault, Outcome};
use crate::float;
use crate::value::Value;

const ANY: Param = Param::Any;
const STR: Param = Param::Str;

pub(super) const TABLE: &[Func] = &[
    Func::new("b64enc", &[STR], |ctx, v| {
        let mut out = String::new();
        ctx.push(&mut out, &base64::encode(text(&v[0]).as_bytes()))?;
        Ok(out.into())
    }),
    Func::new("b64dec", &[STR], |_, v| match base64::decode(text(&v[0])) {
        Ok(bytes) => Ok(String::from_utf8(bytes).map_err(|_| "the decoded data is no UTF-8 text")?.into()),
        // sprig hands the error over as the result.
        Err(message) => Ok(message.into()),
    }),
    Func::new("sha256sum", &[STR], |_, v| Ok(hex(&Sha256::digest(text(&v[0]))).into())),
    Func::new("sha512sum", &[STR], |_, v| Ok(hex(&Sha512::digest(text(&v[0]))).into())),
    Func::new("toJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: true, pretty: false })),
    Func::new("mustToJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: true, pretty: false })),
    Func::new("toRawJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: false, pretty: false })),
    Func::new("mustToRawJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: false, pretty: false })),
    Func::new("toPrettyJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: true, pretty: true })),
    Func::new("mustToPrettyJson", &[ANY], |ctx, v| json(ctx, &v[0], Style { html: true, pretty: true })),
    Func::new("fromJson", &[STR], |ctx, v| match serde_json::from_str(text(&v[0])) {
        Ok(json) => decoded(ctx, &json),
        Err(_) => Ok(Value::Nil),
    }),
    Func::new("mustFromJson", &[STR], |ctx, v| match serde_json::from_str(text(&v[0])) {
        Ok(json) => decoded(ctx, &json),
        Err(error) => Err(error.to_string().into()),
    }),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a String takes everything");
        out
    })
}

/// Decoded JSON has floats only, as in Go.
fn decoded(ctx: &mut Ctx, json: &serde_json::Value) -> Outcome<Value> {
    let value = ctx.data(json)?;
    floats(ctx, value)
}

#[allow(clippy::cast_precision_loss)] // what Go's decoder does
fn floats(ctx: &mut Ctx, value: Value) -> Outcome<Value> {
    Ok(match value {
        Value::Int(int, _) => Value::Float(int as f64),
        Value::List(list) => {
            let items = list.items().iter().map(|item| floats(ctx, item.clone())).collect::<Outcome<_>>()?;
            ctx.any_list(items)?
        }
        Value::Dict(dict) => {
            for (key, item) in dict.snapshot(ctx)? {
                let item = floats(ctx, item)?;
                dict.insert(key, item);
            }
            Value::Dict(dict)
        }
        other => other,
    })
}

#[derive(Clone, Copy)]
struct Style {
    /// Escape what HTML would read.
    html: bool,
    /// On many lines, indented by two blanks.
    pretty: bool,
}

fn json(ctx: &mut Ctx, value: &Value, style: Style) -> Outcome<Value> {
    let mut out = String::new();
    // A value that JSON cannot hold gives no text, as sprig ignores the error.
    match write_json(ctx, &mut out, value, style, 0) {
        Err(Fault::Message(_)) => Ok("".into()),
        Err(limit) => Err(limit),
        Ok(()) => Ok(out.into()),
    }
}

fn write_json(ctx: &mut Ctx, out: &mut String, value: &Value, style: Style, level: usize) -> Outcome<()> {
    ctx.tick(1)?;
    match value {
        Value::Invalid | Value::Nil => ctx.push(out, "null"),
        Value::Bool(flag) => ctx.push(out, if *flag { "true" } else { "false" }),
        Value::Int(int, _) => ctx.push(out, &int.to_string()),
        Value::Float(float) => ctx.push(out, &json_float(*float)?),
        Value::Str(text) => json_string(ctx, out, text, style),
        Value::List(list) if list.is_nil() => ctx.push(out, "null"),
        Value::List(list) => {
            ctx.enter()?;
            ctx.push(out, "[")?;
            for (i, item) in list.items().iter().enumerate() {
                separate(ctx, out, i, style, level + 1)?;
                write_json(ctx, out, item, style, level + 1)?;
            }
            close(ctx, out, list.items().len(), style, level, "]")
        }
        Value::Dict(dict) => {
            ctx.enter()?;
            ctx.push(out, "{")?;
            let entries = dict.snapshot(ctx)?;
            for (i, (key, item)) in entries.iter().enumerate() {
                separate(ctx, out, i, style, level + 1)?;
                json_string(ctx, out, key, style)?;
                ctx.push(out, if style.pretty { ": " } else { ":" })?;
                write_json(ctx, out, item, style, level + 1)?;
            }
            close(ctx, out, entries.len(), style, level, "}")
        }
    }
}

fn separate(ctx: &mut Ctx, out: &mut String, i: usize, style: Style, level: usize) -> Outcome<()> {
    if i > 0 {
        ctx.push(out, ",")?;
    }
    if style.pretty { new_line(ctx, out, level) } else { Ok(()) }
}

fn close(ctx: &mut Ctx, out: &mut String, len: usize, style: Style, level: usize, bracket: &str) -> Outcome<()> {
    ctx.leave();
    if style.pretty && len > 0 {
        new_line(ctx, out, level)?;
    }
    ctx.push(out, bracket)
}

fn new_line(ctx: &mut Ctx, out: &mut String, level: usize) -> Outcome<()> {
    ctx.push(out, "\n")?;
    ctx.push_repeated(out, "  ", level)
}

/// The shortest text, with an exponent only for the very small and the very large.
fn json_float(value: f64) -> Outcome<String> {
    if !value.is_finite() {
        return Err(format!("unsupported value: {value}").into());
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        return Ok(float::format(value, 'e', None).replace("e-0", "e-").replace("e+0", "e+"));
    }
    Ok(float::format(value, 'f', None))
}

fn json_string(ctx: &mut Ctx, out: &mut String, text: &str, style: Style) -> Outcome<()> {
    ctx.push(out, "\"")?;
    for c in text.chars() {
        match c {
            '"' => ctx.push(out, "\\\"")?,
            '\\' => ctx.push(out, "\\\\")?,
            '\x08' => ctx.push(out, "\\b")?,
            '\x0c' => ctx.push(out, "\\f")?,
            '\n' => ctx.push(out, "\\n")?,
            '\r' => ctx.push(out, "\\r")?,
            '\t' => ctx.push(out, "\\t")?,
            '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => ctx.push(out, &format!("\\u{:04x}", u32::from(c)))?,
            '<' | '>' | '&' if style.html => ctx.push(out, &format!("\\u{:04x}", u32::from(c)))?,
            c => ctx.push_char(out, c)?,
        }
    }
    ctx.push(out, "\"")
}
