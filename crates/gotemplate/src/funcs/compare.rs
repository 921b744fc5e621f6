//! Go's comparisons: eq, ne, lt, le, gt, ge.

use std::cmp::Ordering;

use super::{Func, Param};
use crate::ctx::{Ctx, Outcome};
use crate::value::{IntType, Value};

const REFLECT: Param = Param::Reflect;

pub(super) const TABLE: &[Func] = &[
    Func::new("eq", &[REFLECT], |_, v| Ok(Value::Bool(eq(&v[0], &v[1..])?))).and_more(REFLECT),
    Func::new("ne", &[REFLECT, REFLECT], |_, v| Ok(Value::Bool(!eq(&v[0], &v[1..])?))),
    Func::new("lt", &[REFLECT, REFLECT], |_, v| Ok(Value::Bool(lt(&v[0], &v[1])?))),
    Func::new("le", &[REFLECT, REFLECT], |_, v| Ok(Value::Bool(le(&v[0], &v[1])?))),
    Func::new("gt", &[REFLECT, REFLECT], |_, v| Ok(Value::Bool(!le(&v[0], &v[1])?))),
    Func::new("ge", &[REFLECT, REFLECT], |_: &mut Ctx, v| Ok(Value::Bool(!lt(&v[0], &v[1])?))),
];

/// Values of different kinds do not compare; signed and unsigned integers are one kind but for this table's purpose.
#[derive(PartialEq)]
enum Kind {
    Bool,
    Int,
    Float,
    Str,
    Other,
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Bool,
        Value::Int(..) => Kind::Int,
        Value::Float(_) => Kind::Float,
        Value::Str(_) => Kind::Str,
        Value::Invalid | Value::Nil | Value::List(_) | Value::Dict(_) => Kind::Other,
    }
}

/// Whether the first equals any of the others.
fn eq(first: &Value, others: &[Value]) -> Outcome<bool> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn equal(a: &Value, b: &Value) -> Outcome<bool> {
    if kind(a) != kind(b) {
        if a.is_nothing() || b.is_nothing() {
            return Ok(false);
        }
        return Err(incompatible(a, b));
    }
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a, _), Value::Int(b, _)) => Ok(a == b),
        #[allow(clippy::float_cmp)] // Go compares exactly
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::Str(a), Value::Str(b)) => Ok(a == b),
        _ if a.is_nothing() || b.is_nothing() => Ok(is_nil(a) && is_nil(b)),
        _ if a.kind_name() != b.kind_name() => {
            Err(format!("non-comparable types {}, {}", a.type_name(), b.type_name()).into())
        }
        _ if is_nil(a) || is_nil(b) => Ok(is_nil(a) == is_nil(b)),
        _ => Err(format!("non-comparable type {}", b.type_name()).into()),
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::List(list) => list.is_nil(),
        other => other.is_nothing(),
    }
}

fn lt(a: &Value, b: &Value) -> Outcome<bool> {
    for value in [a, b] {
        if kind(value) == Kind::Other {
            return Err("invalid type for comparison".into());
        }
    }
    match (a, b) {
        (Value::Int(a, _), Value::Int(b, _)) => Ok(a < b),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b) == Some(Ordering::Less)),
        (Value::Str(a), Value::Str(b)) => Ok(a < b),
        (Value::Bool(_), Value::Bool(_)) => Err("invalid type for comparison".into()),
        _ => Err(incompatible(a, b)),
    }
}

fn le(a: &Value, b: &Value) -> Outcome<bool> {
    Ok(lt(a, b)? || equal(a, b)?)
}

fn incompatible(a: &Value, b: &Value) -> crate::ctx::Fault {
    let name = |value: &Value| match value {
        Value::Int(_, IntType::Byte) => "uint8".to_owned(),
        other => other.type_name(),
    };
    format!("incompatible types for comparison: {} and {}", name(a), name(b)).into()
}
