//! Files, directories and standard input as documents, each with the place it came from.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Bad, Origin};

/// What stands for standard input, on the command line.
const STDIN: &str = "-";
/// Names of files that are read from a directory.
const SUFFIXES: [&str; 3] = ["yaml", "yml", "json"];

/// All documents of these files in the order given, and what cannot be read.
pub fn read(paths: &[PathBuf], recursive: bool) -> (Vec<(Origin, Value)>, Vec<Bad>) {
    let (mut documents, mut bad) = (Vec::new(), Vec::new());
    for path in paths {
        if path.as_os_str() == STDIN {
            let mut text = String::new();
            match std::io::stdin().read_to_string(&mut text) {
                Ok(_) => parse("standard input", &text, &mut documents, &mut bad),
                Err(error) => bad.push(Bad::whole("standard input", error.to_string())),
            }
            continue;
        }
        let mut files = Vec::new();
        if let Err(error) = find(path, true, recursive, &mut files) {
            bad.push(Bad::whole(path.display(), error.to_string()));
        }
        for file in files {
            match fs::read_to_string(&file) {
                Ok(text) => parse(&file.display().to_string(), &text, &mut documents, &mut bad),
                Err(error) => bad.push(Bad::whole(file.display(), error.to_string())),
            }
        }
    }
    (documents, bad)
}

/// The files that a path stands for: itself, or those of a directory, sorted by name.
fn find(path: &Path, named: bool, recursive: bool, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        let known = path.extension().is_some_and(|suffix| SUFFIXES.iter().any(|known| suffix == *known));
        if named || known {
            files.push(path.to_owned());
        }
        return Ok(());
    }
    if !named && !recursive {
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| entry.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| find(entry, false, recursive, files))
}

fn parse(file: &str, text: &str, documents: &mut Vec<(Origin, Value)>, bad: &mut Vec<Bad>) {
    let at = |document| Origin::File { file: file.to_owned(), document, item: None };
    if let Some(values) = json(text) {
        let numbered = values.into_iter().enumerate().map(|(index, value)| (at(index + 1), value));
        documents.extend(numbered);
        return;
    }
    let mut number = 0;
    for (line, document) in split(text) {
        let mut lines = document.lines().map(|line| line.strip_prefix("---").unwrap_or(line).trim());
        if lines.all(|line| line.is_empty() || line.starts_with('#')) {
            continue;
        }
        number += 1;
        // The text is in memory already, and people may have tens of thousands of hosts: no budget beside that.
        let options = serde_saphyr::options! { budget: None, with_snippet: false };
        match serde_saphyr::from_str_with_options::<Value>(document, options) {
            Ok(value) => documents.push((at(number), value)),
            Err(error) => bad.push(Bad::whole(at(number), said(&error, line))),
        }
    }
}

/// What the parser says, with the line in the file instead of the document. Never the text itself: it may be a Secret's.
fn said(error: &serde_saphyr::Error, first_line: u64) -> String {
    let place = error.location().map(|at| format!(" (line {}, column {})", first_line + at.line(), at.column()));
    let text = error.without_snippet().to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = [" at line ", ", set DuplicateKeyPolicy"]
        .into_iter()
        .fold(text, |text, end| text.split(end).next().unwrap_or(text));
    format!("is neither YAML nor JSON{}: {text}", place.unwrap_or_default())
}

/// JSON objects one after another; none if the text is anything else.
fn json(text: &str) -> Option<Vec<Value>> {
    text.trim_start().starts_with('{').then_some(())?;
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()
}

/// The documents of a YAML text, each with the number of lines before it.
fn split(text: &str) -> Vec<(u64, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut first_line, mut offset) = (0, 0, 0);
    for (line, number) in text.split_inclusive('\n').zip(0..) {
        let is_end =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if is_end && offset > start {
            documents.push((first_line, &text[start..offset]));
            (start, first_line) = (offset, number);
        }
        offset += line.len();
    }
    documents.push((first_line, &text[start..]));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<(Origin, Value)>, Vec<String>) {
        let (mut documents, mut bad) = (Vec::new(), Vec::new());
        parse("x.yaml", text, &mut documents, &mut bad);
        (documents, bad.iter().map(ToString::to_string).collect())
    }

    fn places(text: &str) -> Vec<String> {
        parsed(text).0.iter().map(|(origin, value)| format!("{origin}: {value}")).collect()
    }

    #[test]
    fn documents_are_counted_as_people_count_them() {
        let text = "# a header\n---\na: 1\n--- # second\nb: |\n  ---\n  text\n---\n---\nc: 3\n";
        assert_eq!(
            places(text),
            [
                r#"x.yaml, document 1: {"a":1}"#,
                r#"x.yaml, document 2: {"b":"---\ntext\n"}"#,
                r#"x.yaml, document 3: {"c":3}"#
            ]
        );
    }

    #[test]
    fn json_objects_may_follow_each_other() {
        assert_eq!(places("{\"a\":1}\n{\"b\":2}"), ["x.yaml, document 1: {\"a\":1}", "x.yaml, document 2: {\"b\":2}"]);
        assert_eq!(places("{a: 1, b: 'x'}"), [r#"x.yaml, document 1: {"a":1,"b":"x"}"#], "that is YAML");
    }

    #[test]
    fn a_document_that_cannot_be_read_is_named_with_its_line_and_stops_no_other() {
        let (documents, bad) = parsed("a: 1\n---\nb: [1, 2\npassword: hidden\n---\nc: 3\n");
        assert_eq!(documents.len(), 2);
        assert_eq!(bad.len(), 1);
        assert!(bad[0].starts_with("x.yaml, document 2: is neither YAML nor JSON (line "), "{bad:?}");
        assert!(!bad[0].contains("hidden"), "{bad:?}");
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        assert_eq!(parsed("a: 1\na: 2\n").1.len(), 1);
    }
}
