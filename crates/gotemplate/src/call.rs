//! Hands arguments to functions under Go's rules for the types of parameters.

use crate::ast::{Pos, Term, TermKind};
use crate::ctx::Outcome;
use crate::eval::{At, Eval, Walk, fail};
use crate::funcs::{Func, Param, Run};
use crate::value::{Elem, IntType, Value};

impl<'t> Walk<'t> {
    /// Calls `func`; `last` is the value of the pipeline stage before, its final argument.
    pub fn call(
        &mut self,
        dot: &Value,
        at: Pos,
        func: &'static Func,
        args: &'t [Term],
        last: Option<Value>,
    ) -> Eval<Value> {
        let got = args.len() + usize::from(last.is_some());
        let fixed = func.params.len();
        if got < fixed || (got > fixed && func.rest.is_none()) {
            let want = if func.rest.is_some() { "at least " } else { "" };
            return fail(at, format!("wrong number of args for {}: want {want}{fixed} got {got}", func.name));
        }
        let stop = match func.run {
            Run::And => false,
            Run::Or => true,
            Run::Plain(run) => {
                let mut values = Vec::with_capacity(got);
                for (i, arg) in args.iter().enumerate() {
                    values.push(self.arg(dot, func.param(i), arg)?);
                }
                if let Some(last) = last {
                    values.push(fit(last, func.param(got - 1)).at(at)?);
                }
                return self.run(at, func, run, &values);
            }
        };
        // and, or: evaluation ends with the argument that decides.
        let mut value = Value::Invalid;
        for arg in args {
            value = self.arg(dot, Param::Reflect, arg)?;
            if value.truth() == stop {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn run(
        &mut self,
        at: Pos,
        func: &Func,
        run: fn(&mut crate::ctx::Ctx, &[Value]) -> Outcome<Value>,
        values: &[Value],
    ) -> Eval<Value> {
        self.ctx.tick(1).at(at)?;
        for value in values {
            if let Value::Str(text) = value {
                self.ctx.tick_bytes(text.len()).at(at)?;
            }
        }
        run(&mut self.ctx, values).map_err(|fault| fault.calling(func.name)).at(at)
    }

    fn arg(&mut self, dot: &Value, param: Param, term: &'t Term) -> Eval<Value> {
        let at = term.at;
        let mismatch = || fail(at, format!("expected {}; found {}", param.wanted(), term.kind.describe()));
        match (&term.kind, param) {
            (TermKind::Nil, Param::Reflect | Param::Dict) => Ok(Value::Invalid),
            (TermKind::Nil, Param::Any) => Ok(Value::Nil),
            (TermKind::Nil, _) => fail(at, format!("cannot assign nil to {}", param.go_name())),
            (TermKind::Number(number), Param::Int) => match number.int {
                Some(int) => Ok(Value::int(int)),
                None => mismatch(),
            },
            (TermKind::Number(number), Param::Float) => match number.float {
                Some(float) => Ok(Value::Float(float)),
                None => mismatch(),
            },
            (TermKind::Bool(_), Param::Bool)
            | (TermKind::Str(_), Param::Str)
            | (TermKind::Bool(_) | TermKind::Number(_) | TermKind::Str(_), Param::Any | Param::Reflect) => {
                self.term(dot, term)
            }
            (TermKind::Bool(_) | TermKind::Number(_) | TermKind::Str(_), Param::Dict) => {
                fail(at, format!("can't handle {} for arg of type {}", term.kind.describe(), param.go_name()))
            }
            (TermKind::Bool(_) | TermKind::Number(_) | TermKind::Str(_), _) => mismatch(),
            _ => {
                let value = self.term(dot, term)?;
                fit(value, param).at(at)
            }
        }
    }
}

/// A computed value as an argument, if the types agree: Go converts nothing here.
fn fit(value: Value, param: Param) -> Outcome<Value> {
    let fits = match (param, &value) {
        (Param::Any, _) => return Ok(value.into_interface()),
        (_, Value::Invalid) if !matches!(param, Param::Reflect | Param::Dict) => {
            return Err(format!("invalid value; expected {}", param.go_name()).into());
        }
        (Param::Dict, Value::Dict(dict)) => dict.elem() == Elem::Any,
        (Param::Reflect, _)
        | (Param::Dict, Value::Invalid)
        | (Param::Str, Value::Str(_))
        | (Param::Int, Value::Int(_, IntType::Int))
        | (Param::Float, Value::Float(_))
        | (Param::Bool, Value::Bool(_)) => true,
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    let got = if matches!(value, Value::Nil) { "interface {}".to_owned() } else { value.type_name() };
    Err(format!("wrong type for value; expected {}; got {got}", param.go_name()).into())
}
