//! What holds for every text and every data: no panic, no output past its limit, the same result each time.

use gotemplate::{Kind, Limits, Template};
use proptest::prelude::*;
use serde_json::{Value, json};

const LIMITS: Limits = Limits { output_bytes: 4096, steps: 20_000, depth: 60 };

/// Pieces that templates are made of; put together they parse about as often as not.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    " ",
    "\n",
    "text",
    "{{if .a}}",
    "{{else}}",
    "{{else if .b}}",
    "{{end}}",
    "{{range .l}}",
    "{{range $i, $x := .m}}",
    "{{range $x := 5}}",
    "{{break}}",
    "{{continue}}",
    "{{with .m}}",
    "{{define \"t\"}}",
    "{{template \"t\" .}}",
    "{{block \"b\" .l}}",
    "{{$x := .a}}",
    "{{$x}}",
    "{{$x = 3}}",
    "{{.}}",
    "{{.a}}",
    "{{.m.k}}",
    "{{$.l}}",
    "{{/* c */}}",
    "{{`raw`}}",
    "{{\"q\\n\"}}",
    "{{'c'}}",
    "{{0x1F}}",
    "{{1e9}}",
    "{{nil}}",
    "(",
    ")",
    "|",
    "$x",
    ".l",
    ".m",
    ".a",
    "$",
    "1",
    "-3",
    "2.5",
    "\"s\"",
    "\"a,b\"",
    "print",
    "printf",
    "\"%d %s %v\"",
    "\"%[2]*.[1]*f\"",
    "\"%-+# 08.3x\"",
    "len",
    "index",
    "and",
    "or",
    "not",
    "eq",
    "lt",
    "list",
    "dict",
    "set",
    "get",
    "append",
    "concat",
    "slice",
    "first",
    "rest",
    "uniq",
    "has",
    "until",
    "repeat",
    "replace",
    "trunc",
    "substr",
    "split",
    "join",
    "quote",
    "indent",
    "add",
    "div",
    "mod",
    "round",
    "toJson",
    "fromJson",
    "b64dec",
    "regexReplaceAll",
    "regexSplit",
    "merge",
    "dig",
    "deepCopy",
    "ternary",
    "true",
    "chunk",
    ",",
    ":=",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

/// Well-formed expressions: functions of anything, nested.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        ".",
        ".a",
        ".l",
        ".m",
        ".m.k",
        ".none",
        "$",
        "0",
        "-1",
        "7",
        "9223372036854775807",
        "2.5",
        "1e300",
        "true",
        "nil",
        "\"\"",
        "\"héllo\"",
        "\"%d|%5.2f|%q|%v\"",
        "\"a,b,c\"",
        "'x'",
    ])
    .prop_map(str::to_owned);
    let functions = prop::sample::select(FUNCTIONS.to_vec());
    leaf.prop_recursive(4, 24, 4, move |inner| {
        (functions.clone(), prop::collection::vec(inner, 0..4))
            .prop_map(|(function, args)| format!("({function} {})", args.join(" ")))
    })
}

const FUNCTIONS: &[&str] = &[
    "and",
    "or",
    "not",
    "len",
    "index",
    "print",
    "println",
    "printf",
    "html",
    "js",
    "urlquery",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "default",
    "empty",
    "coalesce",
    "all",
    "any",
    "ternary",
    "kindOf",
    "typeOf",
    "deepEqual",
    "list",
    "first",
    "last",
    "rest",
    "initial",
    "append",
    "prepend",
    "concat",
    "reverse",
    "compact",
    "uniq",
    "without",
    "has",
    "slice",
    "chunk",
    "sortAlpha",
    "join",
    "toStrings",
    "dict",
    "get",
    "set",
    "unset",
    "hasKey",
    "pluck",
    "keys",
    "values",
    "pick",
    "omit",
    "dig",
    "deepCopy",
    "merge",
    "mergeOverwrite",
    "int",
    "int64",
    "float64",
    "atoi",
    "toDecimal",
    "add",
    "add1",
    "sub",
    "mul",
    "div",
    "mod",
    "max",
    "min",
    "maxf",
    "minf",
    "floor",
    "ceil",
    "round",
    "until",
    "untilStep",
    "seq",
    "upper",
    "lower",
    "title",
    "untitle",
    "trim",
    "trimAll",
    "trimPrefix",
    "trimSuffix",
    "nospace",
    "trunc",
    "substr",
    "contains",
    "hasPrefix",
    "hasSuffix",
    "repeat",
    "replace",
    "plural",
    "indent",
    "nindent",
    "quote",
    "squote",
    "cat",
    "toString",
    "split",
    "splitn",
    "splitList",
    "b64enc",
    "b64dec",
    "sha256sum",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "fromJson",
    "regexMatch",
    "regexFind",
    "regexFindAll",
    "regexReplaceAll",
    "regexSplit",
    "regexQuoteMeta",
];

fn data() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let any = leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-m]", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    });
    (any.clone(), any.clone(), any).prop_map(|(a, l, k)| json!({"a": a, "b": 0, "l": [l, 1, "x"], "m": {"k": k}}))
}

/// Renders twice; the results are equal, within their limit, and errors lie within the text.
fn check(text: &str, data: &Value) -> Result<(), TestCaseError> {
    let template = match Template::parse("law", text) {
        Ok(template) => template,
        Err(error) => {
            prop_assert_eq!(error.kind, Kind::Parse);
            prop_assert!(error.line <= text.matches('\n').count() + 1);
            return Ok(());
        }
    };
    let first = template.render(data, LIMITS);
    prop_assert_eq!(&first, &template.render(data, LIMITS));
    match first {
        Ok(output) => prop_assert!(output.len() <= LIMITS.output_bytes),
        Err(error) => prop_assert_ne!(error.kind, Kind::Parse),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_ends_well(text in "(\\PC|\n|\\{\\{|\\}\\}){0,60}", data in data()) {
        check(&text, &data)?;
        check(&format!("{{{{{text}}}}}"), &data)?;
    }

    #[test]
    fn any_pieces_of_templates_end_well(text in pieces(), data in data()) {
        check(&text, &data)?;
    }

    #[test]
    fn any_expression_ends_well(text in expression(), data in data()) {
        check(&format!("{{{{{text}}}}}"), &data)?;
        check(&format!("{{{{range $i, $x := {text}}}}}{{{{$i}}}}{{{{$x}}}}{{{{else}}}}-{{{{end}}}}"), &data)?;
    }

    #[test]
    fn text_without_actions_is_its_own_output(text in "[^{]{0,200}") {
        let template = Template::parse("plain", &text).expect("plain text");
        prop_assert_eq!(template.render(&json!({}), Limits::default()), Ok(text));
    }

    #[test]
    fn what_is_quoted_for_json_reads_back(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
        let template = Template::parse("json", "{{toJson .t}}").expect("a template");
        let output = template.render(&json!({"t": text}), Limits::default()).expect("a string is JSON");
        prop_assert_eq!(serde_json::from_str::<Value>(&output).ok(), Some(Value::from(text)));
    }

    #[test]
    fn base64_reads_back(text in "\\PC{0,40}") {
        let template = Template::parse("b64", "{{b64enc .t | b64dec}}").expect("a template");
        prop_assert_eq!(template.render(&json!({"t": text.clone()}), Limits::default()), Ok(text));
    }
}
