//! `slipway lint`: what admission would refuse, and what it would accept and people would regret.

mod clusters;
mod hosts;
mod templates;

use std::{collections::BTreeSet, fmt, path::PathBuf};

use crate::{
    input::{self, Bad, Objects},
    source, words,
};

/// Arguments of `slipway lint`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Files with SIPClusters, BareMetalHosts, Secrets and the ConfigMaps of templates (YAML or JSON, any number of
    /// documents), directories, or `-` for standard input
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1.., required = true)]
    files: Vec<PathBuf>,
    /// Read directories in directories too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Warnings fail too (exit status 1)
    #[arg(long)]
    strict: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    /// What no API server would accept, or nobody can read.
    pub errors: Vec<Bad>,
    /// What would be accepted, and is hardly meant.
    pub warnings: Vec<Bad>,
    /// What was in the files and is not looked at.
    pub notes: Vec<String>,
    /// How many objects were looked at.
    pub objects: usize,
    /// Whether warnings fail too.
    pub strict: bool,
}

/// Looks at files.
pub fn run(args: &Args) -> Findings {
    let (objects, errors) = input::load(&args.files, args.recursive);
    let count = |objects: &Objects| {
        objects.clusters.len() + objects.hosts.len() + objects.secrets.len() + objects.config_maps.len()
    };
    // What cannot be accepted was looked at as well.
    let refused: BTreeSet<(&String, &String)> =
        errors.iter().filter(|bad| !bad.object.is_empty()).map(|bad| (&bad.place, &bad.object)).collect();
    let count = count(&objects) + refused.len();
    let mut warnings = clusters::warnings(&objects);
    warnings.extend(hosts::warnings(&objects));
    warnings.extend(templates::warnings(&objects));
    Findings { errors, warnings, notes: source::ignored(&objects), objects: count, strict: args.strict }
}

impl Findings {
    /// The exit status: 2 for errors, 1 for warnings that count, else 0.
    pub fn status(&self) -> u8 {
        match (self.errors.is_empty(), self.warnings.is_empty(), self.strict) {
            (false, ..) => 2,
            (true, false, true) => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errors, warnings, notes: _, objects, strict: _ } = self;
        for bad in errors {
            writeln!(f, "error: {bad}")?;
        }
        for bad in warnings {
            writeln!(f, "warning: {bad}")?;
        }
        let what = if *objects == 0 { "no object".to_owned() } else { words::count(*objects, "object") };
        match (errors.len(), warnings.len()) {
            (0, 0) => writeln!(f, "{what}, nothing to complain about"),
            (errors, warnings) => {
                writeln!(f, "{what}: {}, {}", words::count(errors, "error"), words::count(warnings, "warning"))
            }
        }
    }
}

/// A warning about a field of an object.
fn warning<K>(kind: &str, found: &input::Found<K>, field: &str, message: impl Into<String>) -> Bad {
    let object = format!("{kind} {}", found.key);
    Bad { place: found.at.to_string(), object, field: field.to_owned(), message: message.into() }
}
