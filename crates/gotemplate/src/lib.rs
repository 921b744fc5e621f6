//! Go text/template with the sprig functions that users of these operators have in their templates.
//!
//! HAProxy configurations and network data are users' own Go templates. This crate renders them to the byte as Go's
//! `text/template` with `Masterminds/sprig/v3` would (golden tests against both), and is total: whatever text and data
//! it is given, it ends within its [`Limits`] with a text or an [`Error`] that names line and column. It reads nothing
//! but its arguments: functions that would see the environment, the clock, chance or the network are refused at parse.
//!
//! ```
//! let template = gotemplate::Template::parse("servers", "{{range .Servers}}server {{.Name}} {{.IP}}\n{{end}}")?;
//! let data = serde_json::json!({"Servers": [{"Name": "node01", "IP": "192.0.2.1"}]});
//! assert_eq!(template.render(&data, gotemplate::Limits::default())?, "server node01 192.0.2.1\n");
//! # Ok::<(), gotemplate::Error>(())
//! ```
//!
//! # Where it differs from Go
//! - Data are JSON objects, maps to Go: a missing field prints `<no value>`, where a Go struct would be an error.
//!   Integers are `int`, other numbers `float64`.
//! - Text is UTF-8. Cutting a character in two (`trunc`, `substr`, `slice`), decoding base64 to anything else or writing
//!   such bytes in a literal is an error.
//! - `keys` and `values` come sorted by key; Go's order is random.
//! - `slice` takes strings too, as Go's own function does that sprig replaces.
//! - An expression that does not compile is an error in `regexMatch` too; `\B` is refused.
//! - Left out of sprig: dates, versions, decimals, paths, URLs, changes of case style, `sha1sum`, `wrap`, `abbrev`.
//!   `{{nosuch}}` and these are errors at parse, as an unknown function is in Go.
//! - Complex numbers, `%p` of lists and dicts, `%x` and `%b` of floats and flag `#` for floats are refused.
//! - Blocks and parentheses nest at most 100 deep, and there are [`Limits`].

// `write!` to a String brings an error to handle that cannot happen.
#![allow(clippy::format_push_string)]

mod ast;
mod call;
mod classes;
mod ctx;
mod error;
mod eval;
mod float;
mod funcs;
mod lex;
mod literal;
mod parse;
mod print;
mod printf;
mod quote;
mod value;

use std::collections::BTreeMap;

pub use ctx::Limits;
pub use error::{Error, Kind};

use ast::Body;
use ctx::Fault;

/// A parsed template, with all that it defines. Parse once, render often, from any thread.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    bodies: BTreeMap<String, Body>,
}

impl Template {
    /// Parses `text`; `name` is what messages, and `{{template}}` within the text, call it.
    pub fn parse(name: &str, text: &str) -> Result<Template, Error> {
        match parse::parse(name, text) {
            Ok(bodies) => Ok(Template { name: name.to_owned(), text: text.to_owned(), bodies }),
            Err((at, message)) => Err(Error::new(name, text, at, message, Kind::Parse)),
        }
    }

    /// The output over `data`, which is `.` and `$` at the beginning.
    pub fn render(&self, data: &serde_json::Value, limits: Limits) -> Result<String, Error> {
        eval::render(&self.bodies, &self.name, data, limits).map_err(|failure| {
            let (at, fault) = *failure;
            let (message, kind) = match fault {
                Fault::Message(message) => (message, Kind::Exec),
                Fault::Limit(message) => (message, Kind::Limit),
            };
            Error::new(&self.name, &self.text, at, message, kind)
        })
    }

    /// The name given to [`parse`](Template::parse).
    pub fn name(&self) -> &str {
        &self.name
    }
}
