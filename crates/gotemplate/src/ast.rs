//! The parsed template: what the parser builds and the evaluator walks.

use crate::funcs::Func;
use crate::literal::Number;

/// Byte offset into the template text, for messages.
pub(crate) type Pos = usize;

/// A named template: the whole text, or a `define` or `block` in it.
#[derive(Debug)]
pub(crate) struct Body {
    pub name: String,
    pub nodes: Vec<Node>,
}

impl Body {
    /// Nothing but blanks and comments: such a body never replaces one that has content.
    pub fn is_empty(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node, Node::Text { text, .. } if text.trim().is_empty()))
    }
}

#[derive(Debug)]
pub(crate) enum Node {
    Text {
        at: Pos,
        text: String,
    },
    /// A pipeline whose value is printed, unless it declares or assigns.
    Action(Pipe),
    If(Branches),
    With(Branches),
    Range {
        pipe: Pipe,
        body: Vec<Node>,
        otherwise: Vec<Node>,
    },
    Template {
        at: Pos,
        name: String,
        pipe: Option<Pipe>,
    },
    Break,
    Continue,
}

/// `if`/`with` and their `else if`/`else with`, flat: a long chain is no deep tree.
#[derive(Debug)]
pub(crate) struct Branches {
    pub arms: Vec<(Pipe, Vec<Node>)>,
    pub otherwise: Vec<Node>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub at: Pos,
    /// Variables that get the value, with their `$`.
    pub targets: Vec<String>,
    /// `=` rather than `:=`.
    pub assigns: bool,
    pub commands: Vec<Command>,
}

/// A first word and its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    pub first: Term,
    pub args: Vec<Term>,
}

#[derive(Debug)]
pub(crate) struct Term {
    pub at: Pos,
    pub kind: TermKind,
}

#[derive(Debug)]
pub(crate) enum TermKind {
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str(String),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`; the name keeps its `$`.
    Variable(String, Vec<String>),
    Function(&'static Func),
    Paren(Box<Pipe>),
    /// `(...).a.b`
    Chain(Box<Term>, Vec<String>),
}

impl TermKind {
    /// How the term is called in messages.
    pub fn describe(&self) -> String {
        match self {
            TermKind::Dot => ".".into(),
            TermKind::Nil => "nil".into(),
            TermKind::Bool(value) => value.to_string(),
            TermKind::Number(number) => number.text.clone(),
            TermKind::Str(text) => format!("{text:?}"),
            TermKind::Field(path) => format!(".{}", path.join(".")),
            TermKind::Variable(name, path) if path.is_empty() => name.clone(),
            TermKind::Variable(name, path) => format!("{name}.{}", path.join(".")),
            TermKind::Function(func) => func.name.into(),
            TermKind::Paren(_) => "(...)".into(),
            TermKind::Chain(inner, path) => format!("{}.{}", inner.kind.describe(), path.join(".")),
        }
    }
}
