//! Where this engine does not do what Go does, on purpose; the crate's head lists the same.

use gotemplate::{Kind, Limits, Template};
use serde_json::json;

fn render(text: &str) -> Result<String, (Kind, String)> {
    let data = json!({"m": {"b": 1, "a": 2}, "s": "é", "l": [1.5]});
    let template = Template::parse("t", text).map_err(|e| (e.kind, e.message))?;
    template.render(&data, Limits::default()).map_err(|e| (e.kind, e.message))
}

#[track_caller]
fn refused(text: &str, kind: Kind, why: &str) {
    let (got, message) = render(text).expect_err("refused");
    assert_eq!(got, kind, "{message}");
    assert!(message.contains(why), "{message}");
}

#[test]
fn keys_and_values_are_in_order() {
    assert_eq!(render("{{keys .m}} {{values .m}}"), Ok("[a b] [2 1]".into()));
}

#[test]
fn strings_can_be_sliced_though_sprig_only_slices_lists() {
    assert_eq!(render(r#"{{slice "abcdef" 1 3}}"#), Ok("bc".into()));
}

#[test]
fn nothing_outside_of_the_arguments_can_be_reached() {
    refused(r#"{{env "HOME"}}"#, Kind::Parse, "environment");
    refused(r#"{{if false}}{{expandenv "$HOME"}}{{end}}"#, Kind::Parse, "environment");
    refused(r#"{{getHostByName "example.org"}}"#, Kind::Parse, "network");
    refused("{{now}}", Kind::Parse, "clock");
    refused("{{randAlphaNum 5}}", Kind::Parse, "random");
    refused(r#"{{genPrivateKey "rsa"}}"#, Kind::Parse, "keys");
    refused("{{call .s}}", Kind::Parse, "no functions");
}

#[test]
fn text_stays_utf8() {
    refused("{{trunc 1 .s}}", Kind::Exec, "divide a character");
    refused(r#"{{b64dec "/w=="}}"#, Kind::Exec, "UTF-8");
    refused(r#"{{"\xff"}}"#, Kind::Parse, "UTF-8");
}

#[test]
fn what_has_no_use_in_a_template_is_refused_with_a_reason() {
    refused("{{1i}}", Kind::Parse, "complex");
    refused("{{1+2i}}", Kind::Parse, "complex");
    refused(r#"{{printf "%p" .l}}"#, Kind::Exec, "address");
    refused(r#"{{printf "%x" .l}}"#, Kind::Exec, "float");
    refused(r#"{{printf "%#g" 1.5}}"#, Kind::Exec, "float");
    refused(r#"{{regexMatch "(" "a"}}"#, Kind::Exec, "regexp");
    refused(r#"{{regexMatch "\\B" "a"}}"#, Kind::Exec, "regexp");
}

#[test]
fn errors_say_where() {
    let error = Template::parse("haproxy.cfg", "a\n  é {{ nosuch }}").expect_err("no such function");
    assert_eq!(error.to_string(), r#"template "haproxy.cfg" line 2 column 8: function "nosuch" not defined"#);
    let template = Template::parse("n", "{{ .l }}\n{{ index .l 3 }}").expect("a template");
    let error = template.render(&json!({"l": []}), Limits::default()).expect_err("out of range");
    assert_eq!(error.to_string(), r#"template "n" line 2 column 4: error calling index: index out of range: 3"#);
}
