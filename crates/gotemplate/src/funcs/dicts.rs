//! sprig's functions of dicts. `set` and `unset` change the dict they are given, as in Go.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Func, Param, dict, text};
use crate::ctx::{Ctx, Outcome};
use crate::print::strval;
use crate::value::{Dict, Elem, List, Value};

const DICT: Param = Param::Dict;
const STR: Param = Param::Str;

pub(super) const TABLE: &[Func] = &[
    Func::new("dict", &[], make).and_more(Param::Any),
    Func::new("get", &[DICT, STR], |_, v| {
        Ok(dict(&v[0]).and_then(|dict| dict.get(text(&v[1]))).unwrap_or_else(|| "".into()))
    }),
    Func::new("set", &[DICT, STR, Param::Any], set),
    Func::new("unset", &[DICT, STR], unset),
    Func::new("hasKey", &[DICT, STR], |_, v| {
        Ok(Value::Bool(dict(&v[0]).is_some_and(|dict| dict.contains(text(&v[1])))))
    }),
    Func::new("pluck", &[STR], pluck).and_more(DICT),
    Func::new("keys", &[], keys).and_more(DICT),
    Func::new("values", &[DICT], values),
    Func::new("pick", &[DICT], |ctx, v| select(ctx, v, true)).and_more(STR),
    Func::new("omit", &[DICT], |ctx, v| select(ctx, v, false)).and_more(STR),
    Func::new("dig", &[], dig).and_more(Param::Any),
    Func::new("deepCopy", &[Param::Any], |ctx, v| deep_copy(ctx, &v[0])),
    Func::new("mustDeepCopy", &[Param::Any], |ctx, v| deep_copy(ctx, &v[0])),
];

fn make(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut entries = BTreeMap::new();
    for pair in values.chunks(2) {
        let key = strval(ctx, &pair[0])?;
        entries.insert(Rc::from(key), pair.get(1).cloned().unwrap_or_else(|| "".into()));
    }
    Ok(Value::Dict(ctx.dict(Elem::Any, entries)?))
}

fn set(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    ctx.tick(1)?;
    let dict = dict(&values[0]).ok_or("assignment to entry in nil map")?;
    dict.insert(text(&values[1]).into(), values[2].clone());
    Ok(values[0].clone())
}

fn unset(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let Some(dict) = dict(&values[0]) else { return empty(ctx) };
    dict.remove(text(&values[1]));
    Ok(values[0].clone())
}

fn empty(ctx: &mut Ctx) -> Outcome<Value> {
    Ok(Value::Dict(ctx.dict(Elem::Any, BTreeMap::new())?))
}

fn pluck(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let found = values[1..].iter().filter_map(dict).filter_map(|dict| dict.get(text(&values[0]))).collect();
    ctx.any_list(found)
}

/// Sorted within each dict, where Go's order is random.
fn keys(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let mut keys = Vec::new();
    for dict in values.iter().filter_map(dict) {
        keys.extend(dict.snapshot(ctx)?.into_iter().map(|(key, _)| Value::Str(key)));
    }
    ctx.list(Elem::Str, keys)
}

/// In the order of the keys, where Go's order is random.
fn values(ctx: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let items = match dict(&values[0]) {
        Some(dict) => dict.snapshot(ctx)?.into_iter().map(|(_, value)| value).collect(),
        None => Vec::new(),
    };
    ctx.any_list(items)
}

fn select(ctx: &mut Ctx, values: &[Value], named: bool) -> Outcome<Value> {
    let Some(dict) = dict(&values[0]) else { return empty(ctx) };
    let mut kept = BTreeMap::new();
    for (key, value) in dict.snapshot(ctx)? {
        ctx.tick(values.len())?;
        if values[1..].iter().any(|name| text(name) == &*key) == named {
            kept.insert(key, value);
        }
    }
    Ok(Value::Dict(ctx.dict(Elem::Any, kept)?))
}

fn dig(_: &mut Ctx, values: &[Value]) -> Outcome<Value> {
    let [path @ .., default, Value::Dict(dict)] = values else {
        return Err("dig needs at least three arguments, the last a dict".into());
    };
    let Some((last, path)) = path.split_last() else {
        return Err("dig needs at least three arguments".into());
    };
    let mut dict: Dict = any_dict(&Value::Dict(dict.clone()))?;
    for key in path {
        match dict.get(key_of(key)?) {
            None => return Ok(default.clone()),
            Some(step) => dict = any_dict(&step)?,
        }
    }
    Ok(dict.get(key_of(last)?).unwrap_or_else(|| default.clone()))
}

fn key_of(value: &Value) -> Outcome<&str> {
    match value {
        Value::Str(key) => Ok(key),
        other => Err(format!("dig key is {}, not string", other.type_name()).into()),
    }
}

fn any_dict(value: &Value) -> Outcome<Dict> {
    match value {
        Value::Dict(dict) if dict.elem() == Elem::Any => Ok(dict.clone()),
        other => Err(format!("dig meets {}, not map[string]interface {{}}", other.type_name()).into()),
    }
}

fn deep_copy(ctx: &mut Ctx, value: &Value) -> Outcome<Value> {
    ctx.tick(1)?;
    match value {
        Value::List(list) if !list.is_nil() => {
            ctx.enter()?;
            let copy = copy_items(ctx, list)?;
            ctx.leave();
            ctx.list(list.elem(), copy)
        }
        Value::Dict(dict) => {
            ctx.enter()?;
            let mut copy = BTreeMap::new();
            for (key, value) in dict.snapshot(ctx)? {
                copy.insert(key, deep_copy(ctx, &value)?);
            }
            ctx.leave();
            Ok(Value::Dict(ctx.dict(dict.elem(), copy)?))
        }
        other => Ok(other.clone()),
    }
}

fn copy_items(ctx: &mut Ctx, list: &List) -> Outcome<Vec<Value>> {
    list.items().iter().map(|item| deep_copy(ctx, item)).collect()
}
