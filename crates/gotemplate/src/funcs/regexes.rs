//! sprig's functions of regular expressions.

use regex::{Regex, RegexBuilder};

use super::{Func, Param, int, pattern, text};
use crate::ctx::{Ctx, Fault, Outcome};
use crate::value::{Elem, Value};

const STR: Param = Param::Str;
const INT: Param = Param::Int;

/// Bytes that a compiled expression may take, smallest first. Matching takes time in proportion to it, so that the
/// first that suffices is what an expression weighs.
const SIZES: [usize; 3] = [1 << 14, 1 << 16, 1 << 18];
/// Steps that compiling an expression of the smallest size counts for.
const COMPILE: usize = 1000;

pub(super) const TABLE: &[Func] = &[
    Func::new("regexMatch", &[STR, STR], matches),
    Func::new("mustRegexMatch", &[STR, STR], matches),
    Func::new("regexFind", &[STR, STR], find),
    Func::new("mustRegexFind", &[STR, STR], find),
    Func::new("regexFindAll", &[STR, STR, INT], find_all),
    Func::new("mustRegexFindAll", &[STR, STR, INT], find_all),
    Func::new("regexReplaceAll", &[STR, STR, STR], |ctx, v| replace(ctx, v, false)),
    Func::new("mustRegexReplaceAll", &[STR, STR, STR], |ctx, v| replace(ctx, v, false)),
    Func::new("regexReplaceAllLiteral", &[STR, STR, STR], |ctx, v| replace(ctx, v, true)),
    Func::new("mustRegexReplaceAllLiteral", &[STR, STR, STR], |ctx, v| replace(ctx, v, true)),
    Func::new("regexSplit", &[STR, STR, INT], split),
    Func::new("mustRegexSplit", &[STR, STR, INT], split),
    Func::new("regexQuoteMeta", &[STR], quote_meta),
];

/// The compiled expression, with the matching of `subject` counted.
fn compile(ctx: &mut Ctx, source: &str, subject: &str) -> Outcome<Regex> {
    let known = ctx.regexes.get(source).cloned();
    let (regex, weight) = match known {
        Some(known) => known,
        None => build(ctx, source)?,
    };
    ctx.tick((subject.len() / 4).saturating_mul(weight))?;
    Ok(regex)
}

fn build(ctx: &mut Ctx, source: &str) -> Outcome<(Regex, usize)> {
    let translated = pattern::translate(source).map_err(|why| format!("regexp {source:?}: {why}"))?;
    let mut failure = None;
    for size in SIZES {
        let weight = size / SIZES[0];
        ctx.tick(source.len() + COMPILE * weight)?;
        match RegexBuilder::new(&translated).size_limit(size).dfa_size_limit(size).nest_limit(100).build() {
            Ok(regex) => {
                ctx.remember(source, &regex, weight);
                return Ok((regex, weight));
            }
            Err(error) => failure = Some(error),
        }
    }
    // The last line says what; those before draw where.
    let why = failure.map(|error| error.to_string()).unwrap_or_default();
    let why = why.lines().last().unwrap_or_default();
    Err(Fault::Message(format!("regexp {source:?}: {why}")))
}

fn matches(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let subject = text(&values[1]);
    Ok(Value::Bool(compile(ctx, text(&values[0]), subject)?.is_match(subject)))
}

fn find(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let subject = text(&values[1]);
    let regex = compile(ctx, text(&values[0]), subject)?;
    Ok(regex.find(subject).map_or("", |found| found.as_str()).into())
}

/// Matches, at most as many as asked for; all for a negative number.
fn spans(ctx: &mut Ctx, regex: &Regex, subject: &str, limit: i64) -> Outcome<Vec<(usize, usize)>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut spans = Vec::new();
    for found in regex.find_iter(subject).take(limit) {
        ctx.tick(1)?;
        spans.push((found.start(), found.end()));
    }
    Ok(spans)
}

fn find_all(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let subject = text(&values[1]);
    let regex = compile(ctx, text(&values[0]), subject)?;
    let found = spans(ctx, &regex, subject, int(&values[2]))?;
    if found.is_empty() {
        return Ok(Value::nil_list(Elem::Str));
    }
    ctx.list(Elem::Str, found.into_iter().map(|(start, end)| subject[start..end].into()).collect())
}

fn replace(ctx: &mut Ctx, values: &[Value], literal: bool) -> Outcome<Value> {
    let (subject, replacement) = (text(&values[1]), text(&values[2]));
    let regex = compile(ctx, text(&values[0]), subject)?;
    let mut out = String::new();
    let mut unit = String::new();
    let mut done = 0;
    for captures in regex.captures_iter(subject) {
        ctx.tick(1)?;
        let whole = captures.get(0).ok_or("a match has no extent")?;
        ctx.push(&mut out, &subject[done..whole.start()])?;
        if literal {
            ctx.push(&mut out, replacement)?;
        } else {
            // At worst every byte of the replacement stands for the whole match: counted before it is made.
            ctx.tick_bytes(replacement.len().saturating_mul(whole.len().max(1)))?;
            unit.clear();
            captures.expand(replacement, &mut unit);
            ctx.push(&mut out, &unit)?;
        }
        done = whole.end();
    }
    ctx.push(&mut out, &subject[done..])?;
    Ok(out.into())
}

fn split(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let (subject, limit) = (text(&values[1]), int(&values[2]));
    let regex = compile(ctx, text(&values[0]), subject)?;
    if limit == 0 {
        return Ok(Value::nil_list(Elem::Str));
    }
    if !text(&values[0]).is_empty() && subject.is_empty() {
        return ctx.list(Elem::Str, vec!["".into()]);
    }
    let mut parts: Vec<Value> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (from, to) in spans(ctx, &regex, subject, limit)? {
        if limit > 0 && i64::try_from(parts.len()).is_ok_and(|have| have == limit - 1) {
            break;
        }
        end = from;
        if to != 0 {
            parts.push(subject[start..end].into());
        }
        start = to;
    }
    if end != subject.len() {
        parts.push(subject[start..].into());
    }
    ctx.list(Elem::Str, parts)
}

fn quote_meta(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut out = String::new();
    for c in text(&values[0]).chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            ctx.push(&mut out, "\\")?;
        }
        ctx.push_char(&mut out, c)?;
    }
    Ok(out.into())
}
