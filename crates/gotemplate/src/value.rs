//! The values a template computes with: what Go's reflection would show of them.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::ctx::{Ctx, Outcome};

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing at all, as a missing key gives; prints `<no value>`. A zero `reflect.Value` in Go.
    Invalid,
    /// A null that stands somewhere: an `interface{}` without a value.
    Nil,
    Bool(bool),
    Int(i64, IntType),
    Float(f64),
    Str(Rc<str>),
    List(List),
    Dict(Dict),
}

/// Go's types of integers differ where values are compared or handed to functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntType {
    /// `int`: data and literals.
    Int,
    /// `int64`: what sprig's arithmetic returns.
    Int64,
    /// `uint8`: an element of a string.
    Byte,
}

/// Type of the elements of a list or dict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elem {
    Any,
    Str,
    Int,
    Lists,
}

impl Elem {
    fn name(self) -> &'static str {
        match self {
            Elem::Any => "interface {}",
            Elem::Str => "string",
            Elem::Int => "int",
            Elem::Lists => "[]interface {}",
        }
    }

    /// The value of a key that is missing in a dict of this type.
    pub fn zero(self) -> Value {
        match self {
            Elem::Any => Value::Nil,
            Elem::Str => Value::from(""),
            Elem::Int => Value::int(0),
            Elem::Lists => Value::nil_list(Elem::Any),
        }
    }
}

/// A list; never changed once made, as no function changes one in place.
#[derive(Debug, Clone)]
pub(crate) struct List {
    items: Rc<[Value]>,
    elem: Elem,
    nil: bool,
    /// Levels of lists in it, itself included.
    height: u16,
}

impl List {
    pub fn new(elem: Elem, items: Vec<Value>) -> Self {
        let height = items.iter().map(|item| if let Value::List(list) = item { list.height } else { 0 }).max();
        List { items: items.into(), elem, nil: false, height: height.unwrap_or(0).saturating_add(1) }
    }

    pub fn items(&self) -> &[Value] {
        &self.items
    }

    pub fn elem(&self) -> Elem {
        self.elem
    }

    /// A nil slice: empty like any other, but `null` in JSON.
    pub fn is_nil(&self) -> bool {
        self.nil
    }

    pub fn height(&self) -> usize {
        usize::from(self.height)
    }
}

/// A dict; clones are the same dict, as maps are in Go.
#[derive(Debug, Clone)]
pub(crate) struct Dict(Rc<(Elem, RefCell<Entries>)>);

/// What a dict holds, in the order in which Go prints and iterates it.
pub(crate) type Entries = BTreeMap<Rc<str>, Value>;

impl Dict {
    pub fn new(elem: Elem, entries: Entries) -> Self {
        Dict(Rc::new((elem, RefCell::new(entries))))
    }

    pub fn elem(&self) -> Elem {
        self.0.0
    }

    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.1.borrow().get(key).cloned()
    }

    pub fn contains(&self, key: &str) -> bool {
        self.0.1.borrow().contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.0.1.borrow().len()
    }

    pub fn insert(&self, key: Rc<str>, value: Value) {
        self.0.1.borrow_mut().insert(key, value);
    }

    pub fn remove(&self, key: &str) {
        self.0.1.borrow_mut().remove(key);
    }

    pub fn clear(&self) {
        self.0.1.borrow_mut().clear();
    }

    /// The entries as they are now, by key: what is iterated may be changed meanwhile.
    pub fn snapshot(&self, ctx: &mut Ctx) -> Outcome<Vec<(Rc<str>, Value)>> {
        ctx.tick(self.len())?;
        let entries: Ref<'_, _> = self.0.1.borrow();
        Ok(entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    pub fn same_as(&self, other: &Dict) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Str(text.into())
    }
}

impl Value {
    pub fn int(value: i64) -> Value {
        Value::Int(value, IntType::Int)
    }

    pub fn int64(value: i64) -> Value {
        Value::Int(value, IntType::Int64)
    }

    pub fn nil_list(elem: Elem) -> Value {
        Value::List(List { nil: true, ..List::new(elem, Vec::new()) })
    }

    /// `%T`.
    pub fn type_name(&self) -> String {
        match self {
            Value::Invalid | Value::Nil => "<nil>".into(),
            Value::List(list) => format!("[]{}", list.elem.name()),
            Value::Dict(dict) => format!("map[string]{}", dict.elem().name()),
            _ => self.kind_name().into(),
        }
    }

    /// `reflect.Kind`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Value::Invalid | Value::Nil => "invalid",
            Value::Bool(_) => "bool",
            Value::Int(_, IntType::Int) => "int",
            Value::Int(_, IntType::Int64) => "int64",
            Value::Int(_, IntType::Byte) => "uint8",
            Value::Float(_) => "float64",
            Value::Str(_) => "string",
            Value::List(_) => "slice",
            Value::Dict(_) => "map",
        }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Value::Invalid | Value::Nil)
    }

    /// What `if` takes for true; the opposite of sprig's `empty`.
    pub fn truth(&self) -> bool {
        match self {
            Value::Invalid | Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(value, _) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Dict(dict) => dict.len() > 0,
        }
    }

    /// A value that came out of a function or pipeline: Go takes it out of its interface there.
    pub fn out_of_interface(self) -> Value {
        if matches!(self, Value::Nil) { Value::Invalid } else { self }
    }

    /// A value handed to a parameter of type `interface{}`.
    pub fn into_interface(self) -> Value {
        if matches!(self, Value::Invalid) { Value::Nil } else { self }
    }

    /// `reflect.DeepEqual`: the types must be equal too.
    pub fn deep_equal(&self, other: &Value, ctx: &mut Ctx) -> Outcome<bool> {
        ctx.tick(1)?;
        Ok(match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a, of_a), Value::Int(b, of_b)) => a == b && of_a == of_b,
            #[allow(clippy::float_cmp)] // Go compares exactly
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => {
                ctx.tick_bytes(a.len().min(b.len()))?;
                a == b
            }
            (Value::List(a), Value::List(b)) => {
                if a.elem != b.elem || a.nil != b.nil || a.items.len() != b.items.len() {
                    return Ok(false);
                }
                ctx.enter()?;
                for (a, b) in a.items.iter().zip(b.items.iter()) {
                    if !a.deep_equal(b, ctx)? {
                        ctx.leave();
                        return Ok(false);
                    }
                }
                ctx.leave();
                true
            }
            (Value::Dict(a), Value::Dict(b)) => {
                if a.elem() != b.elem() || a.len() != b.len() {
                    return Ok(false);
                }
                if a.same_as(b) {
                    return Ok(true);
                }
                ctx.enter()?;
                for (key, value) in a.snapshot(ctx)? {
                    let equal = match b.get(&key) {
                        Some(other) => value.deep_equal(&other, ctx)?,
                        None => false,
                    };
                    if !equal {
                        ctx.leave();
                        return Ok(false);
                    }
                }
                ctx.leave();
                true
            }
            (a, b) => a.is_nothing() && b.is_nothing(),
        })
    }
}
