//! Templates and data that mean harm: each ends with an error that says which limit stopped it, and nothing crashes.

use std::time::{Duration, Instant};

use gotemplate::{Error, Kind, Limits, Template};
use serde_json::{Value, json};

fn render(text: &str) -> Result<String, Error> {
    Template::parse("hostile", text)?.render(&json!({}), Limits::default())
}

/// The template ends soon with an error of kind Limit.
fn is_stopped(text: &str) {
    let begun = Instant::now();
    let error = render(text).expect_err("more than any limit allows");
    assert_eq!(error.kind, Kind::Limit, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
}

#[test]
fn an_endless_recursion_is_stopped() {
    is_stopped(r#"{{define "a"}}{{template "a"}}{{end}}{{template "a"}}"#);
    is_stopped(
        r#"{{define "a"}}{{if true}}{{with 1}}{{template "a" (list (list .))}}{{end}}{{end}}{{end}}{{template "a"}}"#,
    );
    is_stopped(r#"{{define "a"}}{{range 2}}{{template "a" (print (print (print 1)))}}{{end}}{{end}}{{template "a"}}"#);
}

#[test]
fn an_endless_loop_is_stopped() {
    is_stopped("{{range 9223372036854775807}}{{end}}");
    is_stopped("{{range 100000}}{{range 100000}}{{end}}{{end}}");
    is_stopped("{{range until 1000000000}}{{end}}");
    is_stopped("{{untilStep 0 9223372036854775807 1}}");
    is_stopped("{{seq 9223372036854775806}}");
}

#[test]
fn text_that_multiplies_is_stopped() {
    is_stopped(r#"{{repeat 9223372036854775807 "abc"}}"#);
    is_stopped(r#"{{$s := "ab"}}{{range 100}}{{$s = print $s $s}}{{end}}"#);
    is_stopped(r#"{{$s := repeat 100000 "a"}}{{replace "a" $s $s}}"#);
    is_stopped(r#"{{$s := repeat 100000 "a"}}{{replace "" $s $s}}"#);
    is_stopped(r#"{{$s := repeat 100000 "a"}}{{regexReplaceAll "a" $s $s}}"#);
    is_stopped(r#"{{$s := repeat 100000 "\n"}}{{indent 1000000 $s}}"#);
    is_stopped(r#"{{range 1000000}}{{repeat 1000 "x"}}{{end}}"#);
    is_stopped(r#"{{printf "%999999d%999999d" 1 1}}"#);
    is_stopped(r#"{{printf "%.999999f%.999999f" 1.0 1.0}}"#);
    is_stopped(r#"{{$s := repeat 1000000 "a"}}{{range 1000000}}{{$s = upper $s}}{{end}}"#);
    is_stopped(r#"{{$s := repeat 1000 "a"}}{{$l := list}}{{range 1000}}{{$l = append $l $s}}{{end}}{{join $s $l}}"#);
}

#[test]
fn lists_that_multiply_are_stopped() {
    let doubling = r#"{{$l := list "a"}}{{range 60}}{{$l = list $l $l}}{{end}}"#;
    for use_of_it in ["{{$l}}", "{{toJson $l}}", "{{deepCopy $l}}", "{{has 1 (list $l)}}{{deepEqual $l (deepCopy $l)}}"]
    {
        is_stopped(&format!("{doubling}{use_of_it}"));
    }
    is_stopped("{{$l := list 1}}{{range 60}}{{$l = concat $l $l}}{{end}}");
    is_stopped("{{$l := list 1}}{{range 1000}}{{$l = list $l}}{{end}}");
    is_stopped("{{$l := until 2000}}{{uniq $l}}");
}

#[test]
fn a_dict_that_contains_itself_is_stopped_where_it_is_walked() {
    let cycle = r#"{{$d := dict}}{{$_ := set $d "d" $d}}"#;
    for use_of_it in ["{{$d}}", "{{toJson $d}}", "{{deepCopy $d}}", "{{merge $d (deepCopy $d)}}", "{{quote $d}}"] {
        is_stopped(&format!("{cycle}{use_of_it}"));
    }
    assert_eq!(render(&format!("{cycle}{{{{len $d.d.d.d}}}}")), Ok("1".into()));
    is_stopped(r#"{{$a := dict}}{{$_ := set $a "x" $a}}{{$b := dict}}{{$_ = set $b "x" $b}}{{deepEqual $a $b}}"#);
    is_stopped(r#"{{$a := dict}}{{$_ := set $a "x" $a}}{{$b := dict}}{{$_ = set $b "x" $b}}{{merge $a $b}}"#);
}

#[test]
fn a_long_chain_of_dicts_is_freed_without_recursion() {
    let chain = r#"{{$d := dict}}{{range 60000}}{{$d = dict "d" $d}}{{end}}{{len $d}}"#;
    assert_eq!(render(chain), Ok("1".into()));
}

#[test]
fn deep_nesting_of_the_text_is_refused() {
    for (open, close) in [("(", ")"), ("(print ", ")"), ("(1 | print ", ")")] {
        let text = format!("{{{{print {}1{}}}}}", open.repeat(50_000), close.repeat(50_000));
        let error = Template::parse("deep", &text).expect_err("too deep");
        assert_eq!(error.kind, Kind::Parse, "{error}");
        assert!(error.message.contains("nest deeper"), "{error}");
    }
    for open in ["{{if 1}}", "{{with 1}}", "{{range .}}", "{{block \"a\" .}}", "{{if 1}}{{else}}{{with 1}}"] {
        let text = format!("{}{}", open.repeat(20_000), "{{end}}".repeat(40_000));
        let error = Template::parse("deep", &text).expect_err("too deep");
        assert_eq!(error.kind, Kind::Parse, "{error}");
    }
}

#[test]
fn a_long_chain_of_else_if_is_no_deep_nesting() {
    let chain = format!("{{{{if false}}}}{}{{{{else}}}}end{{{{end}}}}", "{{else if false}}x".repeat(10_000));
    assert_eq!(render(&chain), Ok("end".into()));
    let fields = format!("{{{{.a{}}}}}", ".a".repeat(100_000));
    assert_eq!(render(&fields), Ok("<no value>".into()));
}

#[test]
fn as_much_nesting_as_the_limits_allow_fits_half_the_stack_of_a_thread() {
    let deepest = std::thread::Builder::new().stack_size(1 << 20).spawn(|| {
        let parens = format!("{{{{print {}1{}}}}}", "(print ".repeat(98), ")".repeat(98));
        assert_eq!(render(&parens), Ok("1".into()));
        let blocks = format!("{}x{}", "{{if true}}{{with 1}}".repeat(49), "{{end}}".repeat(98));
        assert_eq!(render(&blocks), Ok("x".into()));
        // Every level of these recursions is nested as deep as possible when the limit ends it.
        let inner = format!("{}1{}", "(print ".repeat(60), ")".repeat(60));
        is_stopped(&format!(r#"{{{{define "a"}}}}{{{{template "a" {inner}}}}}{{{{end}}}}{{{{template "a"}}}}"#));
        let inner = format!("{}.{}", "(list ".repeat(95), ")".repeat(95));
        is_stopped(
            &format!("{{{{$x := 1}}}}{{{{range 9}}}}{{{{$x = {inner}}}}}{{{{end}}}}{{{{$x}}}}").replace('.', "$x"),
        );
        is_stopped(
            r#"{{define "a"}}{{range 1}}{{with 1}}{{template "a" (list .)}}{{end}}{{end}}{{end}}{{template "a"}}"#,
        );
        let cycle = r#"{{$d := dict}}{{$_ := set $d "d" (list $d)}}"#;
        for walk in ["{{$d}}", "{{toPrettyJson $d}}", "{{deepCopy $d}}", "{{merge $d (deepCopy $d)}}", "{{quote $d}}"] {
            is_stopped(&format!("{cycle}{walk}"));
        }
    });
    deepest.expect("a thread").join().expect("no overflow");
}

#[test]
fn deep_data_is_refused() {
    let mut data = Value::Null;
    for _ in 0..1000 {
        data = json!([data]);
    }
    let error = Template::parse("deep", "{{.}}").and_then(|t| t.render(&data, Limits::default()));
    assert_eq!(error.map_err(|e| e.kind), Err(Kind::Limit));
    let error = render(&format!("{{{{fromJson \"{}{}\"}}}}", "[".repeat(100_000), "]".repeat(100_000)));
    assert_eq!(error, Ok("<no value>".into()), "serde_json refuses it, which sprig ignores");
}

#[test]
fn a_regular_expression_cannot_explode() {
    let error = render(r#"{{regexMatch "((a{1000}){1000}){1000}" "a"}}"#).expect_err("too large");
    assert_eq!(error.kind, Kind::Exec, "{error}");
    let nested = format!(r#"{{{{regexMatch "{}a{}" "a"}}}}"#, "(".repeat(50_000), ")".repeat(50_000));
    assert_eq!(render(&nested).map_err(|e| e.kind), Err(Kind::Exec));
    is_stopped(r#"{{range $i := 1000000}}{{regexMatch (print "a" $i) "a"}}{{end}}"#);
    // Many states over much text is what takes a matcher longest.
    is_stopped(r#"{{$s := repeat 1000000 "ab"}}{{range 1000}}{{regexFind "([ab]*a[ab]{300}){1,3}c" $s}}{{end}}"#);
    let slow = r#"{{regexMatch "(a+)+$" (print (repeat 100000 "a") "b")}}"#;
    assert_eq!(render(slow), Ok("false".into()));
}

#[test]
fn limits_are_those_that_the_caller_sets() {
    let template = Template::parse("small", "{{range 10}}0123456789{{end}}").expect("a template");
    let with = |limits| template.render(&json!({}), limits);
    let few_bytes = Limits { output_bytes: 99, ..Limits::default() };
    assert_eq!(with(few_bytes).map_err(|e| e.kind), Err(Kind::Limit));
    assert_eq!(with(Limits { output_bytes: 100, ..few_bytes }).map(|out| out.len()), Ok(100));
    assert_eq!(with(Limits { steps: 5, ..Limits::default() }).map_err(|e| e.kind), Err(Kind::Limit));
    assert_eq!(with(Limits { depth: 1, ..Limits::default() }).map_err(|e| e.kind), Err(Kind::Limit));
}
