//! sprig's functions of strings. Positions and lengths are in bytes, as in Go.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Func, Param, int, text};
use crate::classes::{is_letter, lower, upper};
use crate::ctx::{Ctx, Outcome};
use crate::print::{display, strval};
use crate::quote::quote;
use crate::value::{Elem, Value};

const STR: Param = Param::Str;
const INT: Param = Param::Int;

pub(super) const TABLE: &[Func] = &[
    Func::new("upper", &[STR], |_, v| Ok(text(&v[0]).chars().map(upper).collect::<String>().into())),
    Func::new("lower", &[STR], |_, v| Ok(text(&v[0]).chars().map(lower).collect::<String>().into())),
    Func::new("title", &[STR], |_, v| Ok(title(text(&v[0])).into())),
    Func::new("untitle", &[STR], |_, v| Ok(untitle(text(&v[0])).into())),
    Func::new("trim", &[STR], |_, v| Ok(text(&v[0]).trim().into())),
    Func::new("trimAll", &[STR, STR], trim_all),
    Func::new("trimall", &[STR, STR], trim_all),
    Func::new("trimPrefix", &[STR, STR], |_, v| {
        Ok(text(&v[1]).strip_prefix(text(&v[0])).unwrap_or(text(&v[1])).into())
    }),
    Func::new("trimSuffix", &[STR, STR], |_, v| {
        Ok(text(&v[1]).strip_suffix(text(&v[0])).unwrap_or(text(&v[1])).into())
    }),
    Func::new("nospace", &[STR], |_, v| {
        Ok(text(&v[0]).chars().filter(|c| !c.is_whitespace()).collect::<String>().into())
    }),
    Func::new("trunc", &[INT, STR], |_, v| trunc(int(&v[0]), text(&v[1]))),
    Func::new("substr", &[INT, INT, STR], |_, v| substr(int(&v[0]), int(&v[1]), text(&v[2]))),
    Func::new("contains", &[STR, STR], |_, v| Ok(Value::Bool(text(&v[1]).contains(text(&v[0]))))),
    Func::new("hasPrefix", &[STR, STR], |_, v| Ok(Value::Bool(text(&v[1]).starts_with(text(&v[0]))))),
    Func::new("hasSuffix", &[STR, STR], |_, v| Ok(Value::Bool(text(&v[1]).ends_with(text(&v[0]))))),
    Func::new("repeat", &[INT, STR], |ctx, v| repeat(ctx, int(&v[0]), text(&v[1]))),
    Func::new("replace", &[STR, STR, STR], replace),
    Func::new("plural", &[STR, STR, INT], |_, v| Ok(v[usize::from(int(&v[2]) != 1)].clone())),
    Func::new("indent", &[INT, STR], |ctx, v| indent(ctx, "", v)),
    Func::new("nindent", &[INT, STR], |ctx, v| indent(ctx, "\n", v)),
    Func::new("quote", &[], |ctx, v| quoted(ctx, v, |text| quote(text, false))).and_more(Param::Any),
    Func::new("squote", &[], |ctx, v| quoted(ctx, v, |text| format!("'{text}'"))).and_more(Param::Any),
    Func::new("cat", &[], cat).and_more(Param::Any),
    Func::new("toString", &[Param::Any], |ctx, v| Ok(strval(ctx, &v[0])?.into())),
    Func::new("split", &[STR, STR], |ctx, v| numbered(ctx, split(text(&v[1]), text(&v[0]), -1))),
    Func::new("splitn", &[STR, INT, STR], |ctx, v| numbered(ctx, split(text(&v[2]), text(&v[0]), int(&v[1])))),
    Func::new("splitList", &[STR, STR], |ctx, v| {
        let parts = split(text(&v[1]), text(&v[0]), -1);
        ctx.tick(parts.len())?;
        ctx.list(Elem::Str, parts.into_iter().map(Value::from).collect())
    }),
];

/// Bytes `start..end`. Go would cut a character in two; text here stays UTF-8.
pub(super) fn cut(text: &str, start: usize, end: usize) -> Outcome<&str> {
    if start > end || end > text.len() {
        return Err(format!("slice bounds out of range [{start}:{end}] with length {}", text.len()).into());
    }
    Ok(text.get(start..end).ok_or("the cut would divide a character: lengths are in bytes")?)
}

fn title(text: &str) -> String {
    let mut in_word = false;
    text.chars()
        .map(|c| {
            let first = !in_word;
            in_word = if c.is_ascii() {
                c == '_' || c.is_ascii_alphanumeric()
            } else {
                // What is neither part of a word nor white space does not end a word.
                is_letter(c) || c.is_numeric() || (in_word && !c.is_whitespace())
            };
            if first { upper(c) } else { c }
        })
        .collect()
}

fn untitle(text: &str) -> String {
    let mut in_word = false;
    text.chars()
        .map(|c| {
            let first = !in_word && !c.is_whitespace();
            in_word = !c.is_whitespace();
            if first { lower(c) } else { c }
        })
        .collect()
}

fn trim_all(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let set: BTreeSet<char> = text(&values[0]).chars().collect();
    ctx.tick(set.len())?;
    Ok(text(&values[1]).trim_matches(|c| set.contains(&c)).into())
}

fn trunc(len: i64, text: &str) -> Outcome<Value> {
    let wanted = usize::try_from(len.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(if wanted >= text.len() {
        // sprig leaves a text of exactly this length alone, but for a negative one.
        text.into()
    } else if len < 0 {
        cut(text, text.len() - wanted, text.len())?.into()
    } else {
        cut(text, 0, wanted)?.into()
    })
}

fn substr(start: i64, end: i64, text: &str) -> Outcome<Value> {
    let out_of_range = |_| "slice bounds out of range";
    let (start, end) = match (usize::try_from(start), usize::try_from(end)) {
        (Err(_), end) => (0, end.map_err(out_of_range)?),
        (Ok(start), Ok(end)) if end <= text.len() => (start, end),
        (Ok(start), _) => (start, text.len()),
    };
    Ok(cut(text, start, end)?.into())
}

fn repeat(ctx: &mut Ctx, count: i64, unit: &str) -> Outcome<Value> {
    let count = usize::try_from(count).map_err(|_| "negative Repeat count")?;
    let mut out = String::new();
    ctx.push_repeated(&mut out, unit, count)?;
    Ok(out.into())
}

fn replace(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let (old, new, from) = (text(&values[0]), text(&values[1]), text(&values[2]));
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in from.match_indices(old) {
        ctx.push(&mut out, &from[done..at])?;
        ctx.push(&mut out, new)?;
        done = at + old.len();
    }
    ctx.push(&mut out, &from[done..])?;
    Ok(out.into())
}

fn indent(ctx: &mut Ctx, before: &str, values: &[Value]) -> Outcome<Value> {
    let spaces = usize::try_from(int(&values[0])).map_err(|_| "negative Repeat count")?;
    let mut out = String::from(before);
    for (i, line) in text(&values[1]).split('\n').enumerate() {
        if i > 0 {
            ctx.push(&mut out, "\n")?;
        }
        ctx.push_repeated(&mut out, " ", spaces)?;
        ctx.push(&mut out, line)?;
    }
    Ok(out.into())
}

/// Each that is not null, quoted, a blank between.
fn quoted(ctx: &mut Ctx, values: &[Value], quote: fn(&str) -> String) -> Outcome<Value> {
    let mut out = String::new();
    for value in values.iter().filter(|value| !value.is_nothing()) {
        if !out.is_empty() {
            ctx.push(&mut out, " ")?;
        }
        let shown = strval(ctx, value)?;
        ctx.push(&mut out, &quote(&shown))?;
    }
    Ok(out.into())
}

fn cat(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut out = String::new();
    for (i, value) in values.iter().filter(|value| !value.is_nothing()).enumerate() {
        if i > 0 {
            ctx.push(&mut out, " ")?;
        }
        let shown = display(ctx, value)?;
        ctx.push(&mut out, &shown)?;
    }
    Ok(out.into())
}

/// `strings.SplitN`: at most `limit` parts unless it is negative; an empty separator gives characters.
fn split<'t>(text: &'t str, separator: &str, limit: i64) -> Vec<&'t str> {
    let limit = match usize::try_from(limit) {
        Ok(0) => return Vec::new(),
        Ok(limit) => limit,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return text.splitn(limit, separator).collect();
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (part, after) = rest.split_at(first.len_utf8());
        parts.push(part);
        rest = after;
    }
    parts
}

/// Parts under the keys `_0`, `_1` and so on.
fn numbered(ctx: &mut Ctx, parts: Vec<&str>) -> Outcome<Value> {
    ctx.tick(parts.len())?;
    let entries: BTreeMap<Rc<str>, Value> =
        parts.into_iter().enumerate().map(|(i, part)| (Rc::from(format!("_{i}")), part.into())).collect();
    Ok(Value::Dict(ctx.dict(Elem::Str, entries)?))
}
