//! The commands as people run them: arguments and standard input in, text and exit status out.

mod explain;
mod lint;
mod plan;
mod sample;

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

/// What a command said.
#[derive(Debug)]
struct Said {
    status: i32,
    out: String,
    err: String,
}

/// Runs `slipway` with this on its standard input.
fn slipway(args: &[&str], input: &str) -> Said {
    run(Path::new(env!("CARGO_BIN_EXE_slipway")), args, input)
}

fn run(program: &Path, args: &[&str], input: &str) -> Said {
    let mut child = Command::new(program)
        .args(args)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may have ended already, without reading.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Said { status: output.status.code().expect("no signal"), out: text(output.stdout), err: text(output.stderr) }
}

#[test]
fn as_a_plugin_of_kubectl_it_calls_itself_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let plugin = dir.path().join("kubectl-slipway");
    std::fs::copy(env!("CARGO_BIN_EXE_slipway"), &plugin).expect("copied");
    let said = run(&plugin, &["plan", "--help"], "");
    assert_eq!(said.status, 0);
    assert!(said.out.contains("Usage: kubectl slipway plan [OPTIONS]"), "{}", said.out);
}

#[test]
fn wrong_arguments_are_bad_input() {
    let said = slipway(&["plan", "--nonsense"], "");
    assert_eq!(said.status, 2);
    assert!(said.err.contains("unexpected argument '--nonsense'"), "{}", said.err);
}

#[test]
fn completion_knows_the_commands() {
    let said = slipway(&["completion", "bash"], "");
    assert_eq!(said.status, 0);
    assert!(said.out.contains("explain") && !said.err.contains("panicked"), "{said:?}");
}

#[test]
fn the_definitions_are_yaml_that_kubectl_takes() {
    let said = slipway(&["crds"], "");
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let crd: serde_json::Value =
        serde_saphyr::from_str(said.out.strip_prefix("---\n").expect("a document")).expect("YAML");
    assert_eq!(crd["metadata"]["name"], "sipclusters.airship.airshipit.org");
    assert_eq!(crd, serde_json::to_value(&api::crds()[0]).expect("JSON"), "nothing changes on the way through YAML");
}
