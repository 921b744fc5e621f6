//! Every golden case, made by real Go (see dev/golden/gotemplate): the same output to the byte, or an error on the same line.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use gotemplate::{Error, Limits, Template};

#[derive(serde::Deserialize)]
struct Golden {
    data: serde_json::Value,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    template: String,
    output: Option<String>,
    #[serde(default)]
    error: String,
}

fn render(text: &str, data: &serde_json::Value) -> Result<String, Error> {
    Template::parse("case", text)?.render(data, Limits::default())
}

/// The line in a message of Go: `template: case:3:12: ...`.
fn line(message: &str) -> Option<usize> {
    message.strip_prefix("template: case:")?.split(':').next()?.parse().ok()
}

#[test]
fn templates_render_as_in_go() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut differing = String::new();
    let mut cases = 0;
    for file in fs::read_dir(dir).expect("the golden files are checked in") {
        let path = file.expect("a readable directory").path();
        let text = fs::read_to_string(&path).expect("a readable file");
        let golden: Golden = serde_json::from_str(&text).expect("what the generator wrote");
        for case in golden.cases {
            cases += 1;
            let got = render(&case.template, &golden.data);
            let same = match (&got, &case.output) {
                (Ok(got), Some(want)) => got == want,
                (Err(error), None) => line(&case.error).is_none_or(|line| line == error.line),
                _ => false,
            };
            if !same {
                let file = path.file_stem().unwrap_or_default().display();
                let want = case.output.unwrap_or(case.error);
                write!(differing, "\n{file}: {}\n  Go:   {want:?}\n  here: {got:?}", case.name)
                    .expect("a String takes everything");
            }
        }
    }
    assert!(cases > 400, "only {cases} cases were found");
    assert!(differing.is_empty(), "{differing}");
}
