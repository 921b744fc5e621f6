//! Walks the tree of a template over its data and writes the output.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ast::{Body, Branches, Node, Pipe, Pos, Term, TermKind};
use crate::ctx::{Ctx, Fault, Limits, Outcome};
use crate::print;
use crate::value::Value;

/// A fault and where in the text it arose. Boxed: it travels through every level of the walk.
pub(crate) type Failure = Box<(Pos, Fault)>;
pub(crate) type Eval<T> = Result<T, Failure>;

/// Says where a function's fault arose.
pub(crate) trait At<T> {
    fn at(self, at: Pos) -> Eval<T>;
}

impl<T> At<T> for Outcome<T> {
    fn at(self, at: Pos) -> Eval<T> {
        self.map_err(|fault| Box::new((at, fault)))
    }
}

pub(crate) fn fail<T>(at: Pos, message: impl Into<String>) -> Eval<T> {
    Err(Box::new((at, Fault::Message(message.into()))))
}

/// Renders the body `name`.
pub(crate) fn render(
    bodies: &BTreeMap<String, Body>,
    name: &str,
    data: &serde_json::Value,
    limits: Limits,
) -> Eval<String> {
    let mut ctx = Ctx::new(limits);
    let data = ctx.data(data).at(0)?.out_of_interface();
    let mut walk = Walk { bodies, ctx, out: String::new(), vars: vec![("$", data.clone())] };
    if let Some(body) = bodies.get(name) {
        walk.nodes(&data, &body.nodes)?;
    }
    Ok(walk.out)
}

pub(crate) struct Walk<'t> {
    bodies: &'t BTreeMap<String, Body>,
    // Before `ctx`, which empties the dicts that the variables may hold.
    vars: Vec<(&'t str, Value)>,
    pub ctx: Ctx,
    out: String,
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    Through,
    Break,
    Continue,
}

impl<'t> Walk<'t> {
    fn nodes(&mut self, dot: &Value, nodes: &'t [Node]) -> Eval<Flow> {
        for node in nodes {
            let flow = match node {
                Node::Text { at, text } => {
                    self.ctx.push(&mut self.out, text).at(*at)?;
                    Flow::Through
                }
                Node::Action(pipe) => {
                    self.action(dot, pipe)?;
                    Flow::Through
                }
                Node::If(branches) => self.branches(dot, branches, false)?,
                Node::With(branches) => self.branches(dot, branches, true)?,
                Node::Range { pipe, body, otherwise } => {
                    self.ctx.enter().at(pipe.at)?;
                    let scope = self.vars.len();
                    let flow = self.range(dot, pipe, body, otherwise)?;
                    self.vars.truncate(scope);
                    self.ctx.leave();
                    flow
                }
                Node::Template { at, name, pipe } => {
                    self.template(dot, *at, name, pipe.as_ref())?;
                    Flow::Through
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Through {
                return Ok(flow);
            }
        }
        Ok(Flow::Through)
    }

    fn action(&mut self, dot: &Value, pipe: &'t Pipe) -> Eval<()> {
        let value = self.pipe(dot, pipe)?;
        if pipe.targets.is_empty() {
            let text = match value {
                Value::Invalid => "<no value>".into(),
                Value::Str(text) => text,
                other => Rc::from(print::display(&mut self.ctx, &other).at(pipe.at)?),
            };
            self.ctx.push(&mut self.out, &text).at(pipe.at)?;
        }
        Ok(())
    }

    fn branches(&mut self, dot: &Value, branches: &'t Branches, with: bool) -> Eval<Flow> {
        let scope = self.vars.len();
        for (pipe, body) in &branches.arms {
            let value = self.pipe(dot, pipe)?;
            if value.truth() {
                self.ctx.enter().at(pipe.at)?;
                let flow = self.nodes(if with { &value } else { dot }, body)?;
                self.ctx.leave();
                self.vars.truncate(scope);
                return Ok(flow);
            }
        }
        let at = branches.arms.first().map_or(0, |(pipe, _)| pipe.at);
        self.ctx.enter().at(at)?;
        let flow = self.nodes(dot, &branches.otherwise)?;
        self.ctx.leave();
        self.vars.truncate(scope);
        Ok(flow)
    }

    fn range(&mut self, dot: &Value, pipe: &'t Pipe, body: &'t [Node], otherwise: &'t [Node]) -> Eval<Flow> {
        let value = self.pipe(dot, pipe)?;
        let scope = self.vars.len();
        let mut ran = false;
        match value {
            Value::Invalid | Value::Nil => {}
            Value::Int(count, of) => {
                if pipe.targets.len() > 1 {
                    return fail(pipe.at, format!("can't use {count} to iterate over more than one variable"));
                }
                for i in 0..count {
                    ran = true;
                    if self.iteration(pipe, body, Value::Invalid, &Value::Int(i, of), scope)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (index, item) in (0_i64..).zip(list.items()) {
                    ran = true;
                    if self.iteration(pipe, body, Value::int(index), item, scope)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Dict(dict) => {
                for (key, item) in dict.snapshot(&mut self.ctx).at(pipe.at)? {
                    ran = true;
                    if self.iteration(pipe, body, Value::Str(key), &item, scope)? == Flow::Break {
                        break;
                    }
                }
            }
            other => {
                let shown = print::display(&mut self.ctx, &other).at(pipe.at)?;
                return fail(pipe.at, format!("range can't iterate over {shown}"));
            }
        }
        if ran { Ok(Flow::Through) } else { self.nodes(dot, otherwise) }
    }

    fn iteration(&mut self, pipe: &'t Pipe, body: &'t [Node], index: Value, item: &Value, scope: usize) -> Eval<Flow> {
        self.ctx.tick(1).at(pipe.at)?;
        match pipe.targets.as_slice() {
            [] => {}
            [name] if pipe.assigns => self.assign(pipe.at, name, item.clone())?,
            [first, second, ..] if pipe.assigns => {
                self.assign(pipe.at, first, index)?;
                self.assign(pipe.at, second, item.clone())?;
            }
            [_] => self.vars[scope - 1].1 = item.clone(),
            [_, _, ..] => {
                self.vars[scope - 1].1 = item.clone();
                self.vars[scope - 2].1 = index;
            }
        }
        let flow = self.nodes(item, body)?;
        self.vars.truncate(scope);
        Ok(flow)
    }

    fn template(&mut self, dot: &Value, at: Pos, name: &str, pipe: Option<&'t Pipe>) -> Eval<()> {
        let bodies = self.bodies;
        let Some(body) = bodies.get(name) else {
            return fail(at, format!("template {name:?} not defined"));
        };
        self.ctx.enter().at(at)?;
        let dot = match pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Value::Invalid,
        };
        let vars = std::mem::replace(&mut self.vars, vec![("$", dot.clone())]);
        self.nodes(&dot, &body.nodes)?;
        self.vars = vars;
        self.ctx.leave();
        Ok(())
    }

    /// The value of a pipeline; its variables are declared or assigned.
    pub fn pipe(&mut self, dot: &Value, pipe: &'t Pipe) -> Eval<Value> {
        self.ctx.enter().at(pipe.at)?;
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, &command.first, &command.args, value)?.out_of_interface());
        }
        self.ctx.leave();
        let value = value.unwrap_or(Value::Invalid);
        for name in &pipe.targets {
            if pipe.assigns {
                self.assign(pipe.at, name, value.clone())?;
            } else {
                self.vars.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    /// Sets the innermost variable of that name.
    fn assign(&mut self, at: Pos, name: &str, value: Value) -> Eval<()> {
        match self.vars.iter_mut().rev().find(|(of, _)| *of == name) {
            Some(var) => {
                var.1 = value;
                Ok(())
            }
            None => fail(at, format!("undefined variable: {name}")),
        }
    }

    /// A command with the value of the stage before it, if there is one.
    fn command(&mut self, dot: &Value, first: &'t Term, args: &'t [Term], last: Option<Value>) -> Eval<Value> {
        if let TermKind::Function(func) = &first.kind {
            return self.call(dot, first.at, func, args, last);
        }
        if !args.is_empty() || last.is_some() {
            return fail(first.at, format!("can't give argument to non-function {}", first.kind.describe()));
        }
        if matches!(first.kind, TermKind::Nil) {
            return fail(first.at, "nil is not a command");
        }
        self.term(dot, first)
    }

    /// The value of a term where any type will do.
    pub fn term(&mut self, dot: &Value, term: &'t Term) -> Eval<Value> {
        self.ctx.tick(1).at(term.at)?;
        match &term.kind {
            TermKind::Dot => Ok(dot.clone()),
            TermKind::Nil => Ok(Value::Nil),
            TermKind::Bool(value) => Ok(Value::Bool(*value)),
            TermKind::Str(text) => Ok(Value::from(text.as_str())),
            TermKind::Number(number) => match (number.int, number.float) {
                (_, Some(float)) if number.is_float => Ok(Value::Float(float)),
                (Some(int), _) => Ok(Value::int(int)),
                _ => fail(term.at, format!("{} overflows int", number.text)),
            },
            TermKind::Field(path) => self.fields(dot.clone(), path, term.at),
            TermKind::Variable(name, path) => {
                let value = self.vars.iter().rev().find(|(of, _)| of == name).map(|(_, value)| value.clone());
                match value {
                    Some(value) => self.fields(value, path, term.at),
                    None => fail(term.at, format!("undefined variable: {name}")),
                }
            }
            TermKind::Function(func) => self.call(dot, term.at, func, &[], None),
            TermKind::Paren(pipe) => self.pipe(dot, pipe),
            TermKind::Chain(inner, path) => {
                let value = self.term(dot, inner)?;
                self.fields(value, path, term.at)
            }
        }
    }

    fn fields(&mut self, mut value: Value, path: &[String], at: Pos) -> Eval<Value> {
        for field in path {
            self.ctx.tick(1).at(at)?;
            value = match value {
                Value::Invalid => Value::Invalid,
                Value::Nil => return fail(at, format!("nil pointer evaluating interface {{}}.{field}")),
                Value::Dict(dict) => dict.get(field).unwrap_or(Value::Invalid),
                other => return fail(at, format!("can't evaluate field {field} in type {}", other.type_name())),
            };
        }
        Ok(value)
    }
}
