//! Go's own functions of text/template, but for the comparisons.

use super::{Func, Param, Run, text};
use crate::classes::is_print;
use crate::ctx::{Ctx, Outcome};
use crate::print;
use crate::printf;
use crate::value::{IntType, Value};

const REFLECT: Param = Param::Reflect;

pub(super) const TABLE: &[Func] = &[
    Func { name: "and", params: &[REFLECT], rest: Some(REFLECT), run: Run::And },
    Func { name: "or", params: &[REFLECT], rest: Some(REFLECT), run: Run::Or },
    Func::new("not", &[REFLECT], |_, v| Ok(Value::Bool(!v[0].truth()))),
    Func::new("len", &[REFLECT], |_, v| len(&v[0])),
    Func::new("index", &[REFLECT], index).and_more(REFLECT),
    Func::new("print", &[], |ctx, v| Ok(print::sprint(ctx, v)?.into())).and_more(Param::Any),
    Func::new("println", &[], |ctx, v| Ok(print::sprintln(ctx, v)?.into())).and_more(Param::Any),
    Func::new("printf", &[Param::Str], |ctx, v| Ok(printf::sprintf(ctx, text(&v[0]), &v[1..])?.into()))
        .and_more(Param::Any),
    Func::new("html", &[], |ctx, v| escaped(ctx, v, html)).and_more(Param::Any),
    Func::new("js", &[], |ctx, v| escaped(ctx, v, js)).and_more(Param::Any),
    Func::new("urlquery", &[], |ctx, v| escaped(ctx, v, urlquery)).and_more(Param::Any),
];

#[allow(clippy::cast_possible_wrap)] // no value here has 2^63 elements
fn len(value: &Value) -> Outcome<Value> {
    let len = match value {
        Value::Str(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Dict(dict) => dict.len(),
        Value::Invalid | Value::Nil => return Err("len of nil pointer".into()),
        other => return Err(format!("len of type {}", other.type_name()).into()),
    };
    Ok(Value::int(len as i64))
}

fn index(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut item = values[0].clone();
    if item.is_nothing() {
        return Err("index of untyped nil".into());
    }
    for key in &values[1..] {
        ctx.tick(1)?;
        item = match &item {
            Value::Invalid | Value::Nil => return Err("index of nil pointer".into()),
            Value::List(list) => list.items()[position(key, list.items().len())?].clone(),
            Value::Str(text) => Value::Int(i64::from(text.as_bytes()[position(key, text.len())?]), IntType::Byte),
            Value::Dict(dict) => match key {
                Value::Str(key) => dict.get(key).unwrap_or_else(|| dict.elem().zero()),
                Value::Invalid | Value::Nil => return Err("value is nil; should be of type string".into()),
                other => return Err(format!("value has type {}; should be string", other.type_name()).into()),
            },
            other => return Err(format!("can't index item of type {}", other.type_name()).into()),
        };
    }
    Ok(item)
}

fn position(key: &Value, len: usize) -> Outcome<usize> {
    match key {
        Value::Int(int, _) => match usize::try_from(*int) {
            Ok(position) if position < len => Ok(position),
            _ => Err(format!("index out of range: {int}").into()),
        },
        Value::Invalid | Value::Nil => Err("cannot index slice/array with nil".into()),
        other => Err(format!("cannot index slice/array with type {}", other.type_name()).into()),
    }
}

/// The arguments as Print writes them, a missing one as in an action, every character escaped.
fn escaped(ctx: &mut Ctx, values: &[Value], escape: fn(char, &mut String)) -> Outcome<Value> {
    let plain = if let [Value::Str(text)] = values {
        text.to_string()
    } else {
        let shown: Vec<Value> =
            values.iter().map(|v| if v.is_nothing() { "<no value>".into() } else { v.clone() }).collect();
        print::sprint(ctx, &shown)?
    };
    let mut out = String::new();
    let mut unit = String::new();
    for c in plain.chars() {
        unit.clear();
        escape(c, &mut unit);
        ctx.push(&mut out, &unit)?;
    }
    Ok(out.into())
}

fn html(c: char, out: &mut String) {
    match c {
        '\0' => out.push('\u{fffd}'),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

fn js(c: char, out: &mut String) {
    match c {
        '\\' | '\'' | '"' => out.extend(['\\', c]),
        '<' | '>' | '&' | '=' | '\0'..='\x1f' => *out += &format!("\\u{:04X}", u32::from(c)),
        c if c.is_ascii() || is_print(c) => out.push(c),
        c => *out += &format!("\\u{:04X}", u32::from(c)),
    }
}

fn urlquery(c: char, out: &mut String) {
    match c {
        ' ' => out.push('+'),
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => out.push(c),
        c => {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                *out += &format!("%{byte:02X}");
            }
        }
    }
}
