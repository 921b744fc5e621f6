//! sprig's functions of lists. None changes its argument.

use super::{Func, Param, copied, int, list, text};
use crate::ctx::{Ctx, Outcome};
use crate::funcs::math::to_int;
use crate::print::{strslice, strval};
use crate::value::{Elem, List, Value};

const ANY: Param = Param::Any;

pub(super) const TABLE: &[Func] = &[
    Func::new("list", &[], |ctx, v| ctx.any_list(v.to_vec())).and_more(ANY),
    Func::new("tuple", &[], |ctx, v| ctx.any_list(v.to_vec())).and_more(ANY),
    Func::new("first", &[ANY], |_, v| Ok(list(&v[0], "find first")?.items().first().cloned().unwrap_or(Value::Nil))),
    Func::new("mustFirst", &[ANY], |_, v| {
        Ok(list(&v[0], "find first")?.items().first().cloned().unwrap_or(Value::Nil))
    }),
    Func::new("last", &[ANY], |_, v| Ok(list(&v[0], "find last")?.items().last().cloned().unwrap_or(Value::Nil))),
    Func::new("mustLast", &[ANY], |_, v| Ok(list(&v[0], "find last")?.items().last().cloned().unwrap_or(Value::Nil))),
    Func::new("rest", &[ANY], rest),
    Func::new("mustRest", &[ANY], rest),
    Func::new("initial", &[ANY], initial),
    Func::new("mustInitial", &[ANY], initial),
    Func::new("append", &[ANY, ANY], append),
    Func::new("mustAppend", &[ANY, ANY], append),
    Func::new("push", &[ANY, ANY], append),
    Func::new("mustPush", &[ANY, ANY], append),
    Func::new("prepend", &[ANY, ANY], prepend),
    Func::new("mustPrepend", &[ANY, ANY], prepend),
    Func::new("concat", &[], concat).and_more(ANY),
    Func::new("reverse", &[ANY], reverse),
    Func::new("mustReverse", &[ANY], reverse),
    Func::new("compact", &[ANY], compact),
    Func::new("mustCompact", &[ANY], compact),
    Func::new("uniq", &[ANY], uniq),
    Func::new("mustUniq", &[ANY], uniq),
    Func::new("without", &[ANY], without).and_more(ANY),
    Func::new("mustWithout", &[ANY], without).and_more(ANY),
    Func::new("has", &[ANY, ANY], has),
    Func::new("mustHas", &[ANY, ANY], has),
    Func::new("slice", &[ANY], slice).and_more(ANY),
    Func::new("mustSlice", &[ANY], slice).and_more(ANY),
    Func::new("chunk", &[Param::Int, ANY], chunk),
    Func::new("mustChunk", &[Param::Int, ANY], chunk),
    Func::new("sortAlpha", &[ANY], sort_alpha),
    Func::new("join", &[Param::Str, ANY], join),
    Func::new("toStrings", &[ANY], |ctx, v| {
        let texts = strslice(ctx, &v[0])?;
        ctx.str_list(texts)
    }),
];

fn rest(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    part(ctx, list(&values[0], "find rest")?, |items| &items[1..])
}

fn initial(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    part(ctx, list(&values[0], "find initial")?, |items| &items[..items.len() - 1])
}

/// Part of a list that has elements; nil for one that has none.
fn part(ctx: &mut Ctx, list: &List, part: fn(&[Value]) -> &[Value]) -> Outcome<Value> {
    if list.items().is_empty() {
        return Ok(Value::nil_list(Elem::Any));
    }
    ctx.any_list(part(list.items()).to_vec())
}

fn append(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut items = copied(ctx, list(&values[0], "push")?)?;
    items.push(values[1].clone());
    ctx.any_list(items)
}

fn prepend(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut items = vec![values[1].clone()];
    items.extend(copied(ctx, list(&values[0], "prepend")?)?);
    ctx.any_list(items)
}

fn concat(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut items = Vec::new();
    for value in values {
        items.extend(copied(ctx, list(value, "concat")?)?);
    }
    if items.is_empty() { Ok(Value::nil_list(Elem::Any)) } else { ctx.any_list(items) }
}

fn reverse(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut items = copied(ctx, list(&values[0], "find reverse")?)?;
    items.reverse();
    ctx.any_list(items)
}

fn compact(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut items = copied(ctx, list(&values[0], "compact")?)?;
    items.retain(Value::truth);
    ctx.any_list(items)
}

fn uniq(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for item in list(&values[0], "find uniq")?.items() {
        if !contains(ctx, &kept, item)? {
            kept.push(item.clone());
        }
    }
    ctx.any_list(kept)
}

fn without(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut kept = Vec::new();
    for item in list(&values[0], "find without")?.items() {
        if !contains(ctx, &values[1..], item)? {
            kept.push(item.clone());
        }
    }
    ctx.any_list(kept)
}

fn has(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    if values[1].is_nothing() {
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(contains(ctx, list(&values[1], "find has")?.items(), &values[0])?))
}

fn contains(ctx: &mut Ctx, items: &[Value], wanted: &Value) -> Outcome<bool> {
    for item in items {
        if wanted.deep_equal(item, ctx)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// sprig's slice of lists; strings, which sprig refuses, are cut as Go's own function does.
fn slice(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let len = match &values[0] {
        Value::List(list) => list.items().len(),
        Value::Str(text) => text.len(),
        other => {
            return Err(format!("list should be type of slice or array but {}", other.kind_name()).into());
        }
    };
    let bound = |value: Option<&Value>, missing: usize| match value {
        None => Ok(missing),
        Some(value) => match usize::try_from(to_int(value)) {
            Ok(bound) if bound <= len => Ok(bound),
            _ => Err(format!("slice bounds out of range with length {len}")),
        },
    };
    if matches!(values[0], Value::List(_)) && len == 0 {
        return Ok(Value::Nil);
    }
    let (start, end) = (bound(values.get(1), 0)?, bound(values.get(2), len)?);
    if start > end {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    match &values[0] {
        Value::List(list) => ctx.list(list.elem(), list.items()[start..end].to_vec()),
        other => super::strings::cut(text(other), start, end).map(Value::from),
    }
}

fn chunk(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let list = list(&values[1], "chunk")?;
    let Some(size) = usize::try_from(int(&values[0])).ok().filter(|size| *size > 0) else {
        return Err("chunk size must be positive".into());
    };
    let chunks: Vec<&[Value]> = list.items().chunks(size).collect();
    let chunks = chunks.into_iter().map(|chunk| ctx.any_list(chunk.to_vec())).collect::<Outcome<Vec<_>>>()?;
    ctx.list(Elem::Lists, chunks)
}

fn sort_alpha(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut texts = match &values[0] {
        list @ Value::List(_) => strslice(ctx, list)?,
        other => vec![strval(ctx, other)?],
    };
    texts.sort_unstable();
    ctx.str_list(texts)
}

fn join(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut out = String::new();
    for (i, part) in strslice(ctx, &values[1])?.iter().enumerate() {
        if i > 0 {
            ctx.push(&mut out, text(&values[0]))?;
        }
        ctx.push(&mut out, part)?;
    }
    Ok(out.into())
}
