//! The functions that templates may call: Go's own and the pure ones of sprig, each with the types it takes.

mod base64;
mod builtin;
mod compare;
mod defaults;
mod dicts;
mod encoding;
mod lists;
mod math;
mod merge;
mod pattern;
mod regexes;
mod strings;

use crate::ctx::{Ctx, Fault, Outcome};
use crate::value::{Dict, List, Value};

/// A function as the parser finds it.
#[derive(Debug)]
pub(crate) struct Func {
    pub name: &'static str,
    /// Types of the parameters that must be given.
    pub params: &'static [Param],
    /// Type of any number of further ones.
    pub rest: Option<Param>,
    pub run: Run,
}

/// Type of a parameter, as the Go function declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    /// `interface{}`
    Any,
    /// `reflect.Value`, which only Go's own functions take.
    Reflect,
    Str,
    Int,
    Float,
    Bool,
    /// `map[string]interface{}`; a missing value is a nil map.
    Dict,
}

/// How a function runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// Stops at the first false argument.
    And,
    /// Stops at the first true argument.
    Or,
    Plain(fn(&mut Ctx, &[Value]) -> Outcome<Value>),
}

impl Func {
    /// A function of exactly these parameters.
    const fn new(name: &'static str, params: &'static [Param], run: fn(&mut Ctx, &[Value]) -> Outcome<Value>) -> Func {
        Func { name, params, rest: None, run: Run::Plain(run) }
    }

    /// The same, with any number of further arguments.
    const fn and_more(self, rest: Param) -> Func {
        Func { rest: Some(rest), ..self }
    }

    /// The type of argument `i`.
    pub fn param(&self, i: usize) -> Param {
        self.params.get(i).copied().or(self.rest).unwrap_or(Param::Any)
    }
}

impl Param {
    pub fn go_name(self) -> &'static str {
        match self {
            Param::Any => "interface {}",
            Param::Reflect => "reflect.Value",
            Param::Str => "string",
            Param::Int => "int",
            Param::Float => "float64",
            Param::Bool => "bool",
            Param::Dict => "map[string]interface {}",
        }
    }

    /// How messages call a literal of that type.
    pub fn wanted(self) -> &'static str {
        match self {
            Param::Int => "integer",
            Param::Float => "float",
            other => other.go_name(),
        }
    }
}

impl Fault {
    /// The same, said of a function.
    pub fn calling(self, name: &str) -> Fault {
        match self {
            Fault::Message(message) => Fault::Message(format!("error calling {name}: {message}")),
            limit @ Fault::Limit(_) => limit,
        }
    }
}

const TABLES: [&[Func]; 10] = [
    builtin::TABLE,
    compare::TABLE,
    defaults::TABLE,
    dicts::TABLE,
    encoding::TABLE,
    lists::TABLE,
    math::TABLE,
    merge::TABLE,
    regexes::TABLE,
    strings::TABLE,
];

/// Functions that Go or sprig has and templates here may not call, by the reason why.
const REFUSED: [(&str, &[&str]); 6] = [
    (
        "it reads the environment or the network of the operator, which templates must not see",
        &["env", "expandenv", "getHostByName"],
    ),
    (
        "its result is random, so that every rendering would differ and restart what uses it",
        &[
            "randAlphaNum",
            "randAlpha",
            "randAscii",
            "randNumeric",
            "randInt",
            "randBytes",
            "shuffle",
            "uuidv4",
            "bcrypt",
            "htpasswd",
            "encryptAES",
        ],
    ),
    (
        "it makes keys or certificates, which belong in Secrets made once",
        &[
            "genPrivateKey",
            "derivePassword",
            "buildCustomCert",
            "genCA",
            "genCAWithKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "decryptAES",
        ],
    ),
    (
        "it depends on the clock or the time zone, so that the same input would render differently",
        &[
            "now",
            "ago",
            "date",
            "date_in_zone",
            "dateInZone",
            "date_modify",
            "dateModify",
            "must_date_modify",
            "mustDateModify",
            "duration",
            "durationRound",
            "htmlDate",
            "htmlDateInZone",
            "toDate",
            "mustToDate",
            "unixEpoch",
        ],
    ),
    ("template data holds no functions to call", &["call"]),
    (
        "sprig has it, but this engine does not",
        &[
            "abbrev",
            "abbrevboth",
            "add1f",
            "addf",
            "adler32sum",
            "b32dec",
            "b32enc",
            "base",
            "camelcase",
            "clean",
            "dir",
            "divf",
            "ext",
            "hello",
            "initials",
            "isAbs",
            "kebabcase",
            "mulf",
            "osBase",
            "osClean",
            "osDir",
            "osExt",
            "osIsAbs",
            "semver",
            "semverCompare",
            "sha1sum",
            "snakecase",
            "subf",
            "swapcase",
            "urlJoin",
            "urlParse",
            "wrap",
            "wrapWith",
        ],
    ),
];

/// The function of that name, or why there is none.
pub(crate) fn find(name: &str) -> Result<&'static Func, String> {
    if let Some(func) = TABLES.iter().flat_map(|table| table.iter()).find(|func| func.name == name) {
        return Ok(func);
    }
    match REFUSED.iter().find(|(_, names)| names.contains(&name)) {
        Some((why, _)) => Err(format!("function {name:?} is refused: {why}")),
        None => Err(format!("function {name:?} not defined")),
    }
}

// Arguments have been checked against the parameters, so that these never meet another type.

fn text(value: &Value) -> &str {
    if let Value::Str(text) = value { text } else { "" }
}

fn int(value: &Value) -> i64 {
    if let Value::Int(int, _) = value { *int } else { 0 }
}

fn float(value: &Value) -> f64 {
    if let Value::Float(float) = value { *float } else { 0.0 }
}

/// None is a nil map, which reads as empty and cannot be written.
fn dict(value: &Value) -> Option<&Dict> {
    if let Value::Dict(dict) = value { Some(dict) } else { None }
}

/// The list that sprig's reflecting functions ask for.
fn list<'v>(value: &'v Value, what: &str) -> Outcome<&'v List> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(format!("cannot {what} on type {}", other.kind_name()).into()),
    }
}

/// Counts the copying of a list and gives its elements.
fn copied(ctx: &mut Ctx, list: &List) -> Outcome<Vec<Value>> {
    ctx.tick(list.items().len())?;
    Ok(list.items().to_vec())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_offered_once_and_not_refused_as_well() {
        let mut names = BTreeSet::new();
        for func in TABLES.iter().flat_map(|table| table.iter()) {
            assert!(names.insert(func.name), "{} is there twice", func.name);
        }
        for name in REFUSED.iter().flat_map(|(_, names)| names.iter()) {
            assert!(names.insert(name), "{name} is both offered and refused");
        }
    }

    #[test]
    fn a_refusal_says_why() {
        assert!(find("env").is_err_and(|why| why.contains("environment")));
        assert!(find("uuidv4").is_err_and(|why| why.contains("random")));
        assert!(find("wrap").is_err_and(|why| why.contains("sprig has it")));
        assert!(find("nonesuch").is_err_and(|why| why.contains("not defined")));
    }
}
