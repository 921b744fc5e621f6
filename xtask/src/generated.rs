//! `xtask gen`: writes what is made from the types and from the manifests, or checks that it is current.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::{chart, context::Cx, step::Step};

/// Files made from the types, and the words of `slipway` that print them. The program is run, not linked, so that this one
/// builds without waiting for it.
const FILES: [(&str, &[&str]); 3] = [
    ("deploy/crds/sipclusters.airship.airshipit.org.yaml", &["crds"]),
    ("docs/reference/sipcluster.md", &["reference", "sipcluster"]),
    ("docs/reference/cli.md", &["reference", "cli"]),
];

/// Writes every file that is not current; with `check`, fails and says what differs.
pub fn generate(cx: &Cx, check: bool) -> Result<()> {
    cx.steps.run("generated files", |step| {
        let mut changed = Vec::new();
        for (path, words) in FILES {
            let mut print = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            print.args(["run", "--quiet", "--locked", "--package", "bin-cli", "--"]).args(words).current_dir(&cx.repo);
            let made = step.output(&mut print)?;
            keep(cx, step, check, path, &made, &mut changed)?;
        }
        // After the definitions, of which the chart has a copy.
        for (path, made) in chart::files(&cx.repo)? {
            keep(cx, step, check, &path, &made, &mut changed)?;
        }
        match (changed.as_slice(), check) {
            ([], _) => Ok("current".to_owned()),
            (changed, false) => Ok(format!("wrote {}", changed.join(", "))),
            (changed, true) => {
                bail!("not current: {}; run `cargo xtask gen` and commit what it writes", changed.join(", "))
            }
        }
    })
}

/// Writes a file that is not current, or says how it differs.
fn keep(cx: &Cx, step: &Step, check: bool, path: &str, made: &str, changed: &mut Vec<String>) -> Result<()> {
    let file = cx.repo.join(path);
    let there = fs::read_to_string(&file).unwrap_or_default();
    if there == made {
        return Ok(());
    }
    changed.push(path.to_owned());
    if check {
        let (line, old, new) = difference(&there, made);
        step.say(format!("{path}, line {line}:\n  - {old}\n  + {new}"));
        return Ok(());
    }
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&file, made).with_context(|| format!("cannot write {}", file.display()))
}

/// The first line in which two texts differ, and how.
fn difference<'a>(there: &'a str, made: &'a str) -> (usize, &'a str, &'a str) {
    let (mut old, mut new) = (there.lines(), made.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => return (number, "", ""),
            (one, other) if one == other => {}
            (one, other) => return (number, one.unwrap_or("(the end)"), other.unwrap_or("(the end)")),
        }
    }
    (0, "", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown() {
        assert_eq!(difference("a\nb\nc\n", "a\nx\nc\n"), (2, "b", "x"));
        assert_eq!(difference("a\n", "a\nb\n"), (2, "(the end)", "b"));
        assert_eq!(difference("", "a\n"), (1, "(the end)", "a"));
    }
}
