//! sprig's defaults and reflection: default, empty, coalesce, ternary, kindOf and their kin.

use super::{Func, Param, text};
use crate::value::Value;

const ANY: Param = Param::Any;

pub(super) const TABLE: &[Func] = &[
    Func::new("default", &[ANY], |_, v| Ok(default(v))).and_more(ANY),
    Func::new("empty", &[ANY], |_, v| Ok(Value::Bool(!v[0].truth()))),
    Func::new("coalesce", &[], |_, v| Ok(v.iter().find(|v| v.truth()).cloned().unwrap_or(Value::Nil))).and_more(ANY),
    Func::new("all", &[], |_, v| Ok(Value::Bool(v.iter().all(Value::truth)))).and_more(ANY),
    Func::new("any", &[], |_, v| Ok(Value::Bool(v.iter().any(Value::truth)))).and_more(ANY),
    Func::new("ternary", &[ANY, ANY, Param::Bool], |_, v| Ok(v[usize::from(!v[2].truth())].clone())),
    Func::new("fail", &[Param::Str], |_, v| Err(text(&v[0]).into())),
    Func::new("kindOf", &[ANY], |_, v| Ok(v[0].kind_name().into())),
    Func::new("kindIs", &[Param::Str, ANY], |_, v| Ok(Value::Bool(text(&v[0]) == v[1].kind_name()))),
    Func::new("typeOf", &[ANY], |_, v| Ok(v[0].type_name().into())),
    Func::new("typeIs", &[Param::Str, ANY], |_, v| Ok(Value::Bool(is_of_type(v)))),
    // What differs is pointers, and templates have none.
    Func::new("typeIsLike", &[Param::Str, ANY], |_, v| Ok(Value::Bool(is_of_type(v)))),
    Func::new("deepEqual", &[ANY, ANY], |ctx, v| Ok(Value::Bool(v[0].deep_equal(&v[1], ctx)?))),
];

fn default(values: &[Value]) -> Value {
    let given = values.get(1).filter(|given| given.truth());
    given.unwrap_or(&values[0]).clone()
}

fn is_of_type(values: &[Value]) -> bool {
    text(&values[0]) == values[1].type_name()
}
