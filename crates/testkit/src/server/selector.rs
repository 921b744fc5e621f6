//! Label and field selectors.

use serde_json::Value;

use super::Refused;

/// What a list or watch is narrowed to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<(Vec<String>, bool, String)>,
}

#[derive(Clone, Debug)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selection {
    pub fn parse(labels: Option<&str>, fields: Option<&str>) -> Result<Self, Refused> {
        let labels =
            split(labels.unwrap_or_default()).iter().map(|text| requirement(text)).collect::<Result<_, _>>()?;
        let fields = split(fields.unwrap_or_default())
            .iter()
            .map(|text| {
                let (path, equal, value) = if let Some((path, value)) = text.split_once("!=") {
                    (path, false, value)
                } else {
                    let (path, value) = text.split_once('=').ok_or_else(|| bad(text))?;
                    (path, true, value.trim_start_matches('='))
                };
                Ok((path.split('.').map(str::to_owned).collect(), equal, value.to_owned()))
            })
            .collect::<Result<_, Refused>>()?;
        Ok(Selection { labels, fields })
    }

    pub fn takes(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let by_label = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.iter().any(|v| v == value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| values.iter().all(|v| v != value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        });
        by_label
            && self.fields.iter().all(|(path, equal, value)| {
                let found = path.iter().fold(object, |at, step| &at[step.as_str()]).as_str().unwrap_or_default();
                (found == value) == *equal
            })
    }
}

fn bad(text: &str) -> Refused {
    Refused::bad_request(format!("unable to parse requirement: {text:?}"))
}

/// Splits at commas that are not inside parentheses.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let mut parts = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("it begins with one").push(letter);
    }
    parts.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

fn requirement(text: &str) -> Result<Requirement, Refused> {
    let set = |rest: &str| -> Result<Vec<String>, Refused> {
        let inner = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).ok_or_else(|| bad(text))?;
        Ok(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Requirement::Absent(key.trim().into()));
    }
    if let Some((key, rest)) = text.split_once(" notin ") {
        return Ok(Requirement::NotIn(key.trim().into(), set(rest)?));
    }
    if let Some((key, rest)) = text.split_once(" in ") {
        return Ok(Requirement::In(key.trim().into(), set(rest)?));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(key.trim().into(), vec![value.trim().into()]));
    }
    if let Some((key, value)) = text.split_once('=') {
        let value = value.trim_start_matches('=').trim();
        return Ok(Requirement::In(key.trim().into(), vec![value.into()]));
    }
    if text.contains(char::is_whitespace) { Err(bad(text)) } else { Ok(Requirement::Exists(text.into())) }
}
