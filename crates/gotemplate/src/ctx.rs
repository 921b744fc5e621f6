//! What one rendering may still use, and the dicts it has made: every function gets it.

use std::collections::BTreeMap;
use std::rc::Rc;

use regex::Regex;

use crate::value::{Dict, Elem, Entries, List, Value};

/// What a rendering may use at most. A template that loops, recurses or multiplies text ends with an
/// [`Error`](crate::Error) of kind [`Limit`](crate::Kind::Limit) instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the output, and of any one string made on the way. Default 1 MiB, what a Secret can hold.
    pub output_bytes: usize,
    /// Units of work: one per value evaluated, list element visited or 64 bytes of text made. Default 1 000 000:
    /// about a second at worst, an ordinary template takes some thousand. Memory is bounded by it too.
    pub steps: u64,
    /// How deep blocks, template calls, parentheses and values may nest in each other. Default and maximum 200:
    /// as much as fits a thread's usual stack of 2 MiB.
    pub depth: usize,
}

impl Limits {
    /// More nesting than this is never allowed.
    pub const MAX_DEPTH: usize = 200;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { output_bytes: 1 << 20, steps: 1_000_000, depth: Limits::MAX_DEPTH }
    }
}

/// Why a function gives no value.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Its arguments do not allow one.
    Message(String),
    /// Making it would exceed a limit.
    Limit(String),
}

impl<T: Into<String>> From<T> for Fault {
    fn from(message: T) -> Self {
        Fault::Message(message.into())
    }
}

pub(crate) type Outcome<T> = Result<T, Fault>;

/// How many compiled expressions are kept; a template has few.
const REGEX_CACHE: usize = 16;

pub(crate) struct Ctx {
    limits: Limits,
    steps: u64,
    depth: usize,
    /// Text made since the last whole step was counted.
    bytes: usize,
    /// Every dict made here. They may contain each other, so none is freed by counting references.
    dicts: Vec<Dict>,
    /// Compiled expressions and what each weighs, by pattern.
    pub regexes: BTreeMap<String, (Regex, usize)>,
}

impl Ctx {
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { depth: limits.depth.min(Limits::MAX_DEPTH), ..limits };
        Ctx { limits, steps: 0, depth: 0, bytes: 0, dicts: Vec::new(), regexes: BTreeMap::new() }
    }

    /// Counts `steps` units of work before they are done.
    pub fn tick(&mut self, steps: usize) -> Outcome<()> {
        self.steps = self.steps.saturating_add(steps as u64);
        if self.steps > self.limits.steps {
            return Err(Fault::Limit(format!("rendering takes more than {} steps", self.limits.steps)));
        }
        Ok(())
    }

    /// Counts text that is read or made.
    pub fn tick_bytes(&mut self, bytes: usize) -> Outcome<()> {
        self.bytes += bytes;
        let steps = self.bytes / 64;
        self.bytes %= 64;
        self.tick(steps)
    }

    /// Goes one level deeper; every successful call is paired with one of `leave`.
    pub fn enter(&mut self) -> Outcome<()> {
        if self.depth >= self.limits.depth {
            return Err(Fault::Limit(format!("nesting is deeper than {} levels", self.limits.depth)));
        }
        self.depth += 1;
        self.tick(1)
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Appends to a string under construction; none grows past what the output may.
    pub fn push(&mut self, out: &mut String, text: &str) -> Outcome<()> {
        self.room(out.len(), text.len())?;
        self.tick_bytes(text.len())?;
        out.push_str(text);
        Ok(())
    }

    pub fn push_char(&mut self, out: &mut String, c: char) -> Outcome<()> {
        self.push(out, c.encode_utf8(&mut [0; 4]))
    }

    /// Appends `unit` `count` times.
    pub fn push_repeated(&mut self, out: &mut String, unit: &str, count: usize) -> Outcome<()> {
        let more = unit.len().saturating_mul(count);
        self.room(out.len(), more)?;
        self.tick_bytes(more)?;
        out.push_str(&unit.repeat(count));
        Ok(())
    }

    fn room(&self, len: usize, more: usize) -> Outcome<()> {
        if len.saturating_add(more) > self.limits.output_bytes {
            return Err(Fault::Limit(format!("text grows past {} bytes", self.limits.output_bytes)));
        }
        Ok(())
    }

    /// A list of `items`, counted; lists in lists in lists have an end.
    pub fn list(&mut self, elem: Elem, items: Vec<Value>) -> Outcome<Value> {
        self.tick(items.len())?;
        let list = List::new(elem, items);
        if list.height() > self.limits.depth {
            return Err(Fault::Limit(format!("lists nest deeper than {} levels", self.limits.depth)));
        }
        Ok(Value::List(list))
    }

    pub fn any_list(&mut self, items: Vec<Value>) -> Outcome<Value> {
        self.list(Elem::Any, items)
    }

    pub fn str_list(&mut self, items: Vec<String>) -> Outcome<Value> {
        self.list(Elem::Str, items.into_iter().map(Value::from).collect())
    }

    pub fn dict(&mut self, elem: Elem, entries: Entries) -> Outcome<Dict> {
        self.tick(entries.len() + 1)?;
        let dict = Dict::new(elem, entries);
        self.dicts.push(dict.clone());
        Ok(dict)
    }

    /// Keeps a compiled expression, as long as there are few.
    pub fn remember(&mut self, pattern: &str, regex: &Regex, weight: usize) {
        if self.regexes.len() < REGEX_CACHE {
            self.regexes.insert(pattern.to_owned(), (regex.clone(), weight));
        }
    }

    /// Template data as Go's decoder would hand it over: integers stay integers.
    pub fn data(&mut self, json: &serde_json::Value) -> Outcome<Value> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::int(int),
                None => Value::Float(number.as_f64().ok_or("number is out of range")?),
            },
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => {
                self.enter()?;
                let items = items.iter().map(|item| self.data(item)).collect::<Outcome<_>>()?;
                self.leave();
                self.any_list(items)?
            }
            Json::Object(entries) => {
                self.enter()?;
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((Rc::from(key.as_str()), self.data(value)?)))
                    .collect::<Outcome<_>>()?;
                self.leave();
                Value::Dict(self.dict(Elem::Any, entries)?)
            }
        })
    }
}

impl Drop for Ctx {
    /// Empties every dict while all are still held: nothing leaks in a cycle, and no chain of dicts is freed by recursion.
    fn drop(&mut self) {
        for dict in &self.dicts {
            dict.clear();
        }
    }
}
