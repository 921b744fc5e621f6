//! The schema of a definition as tables, one for each object.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The page of a definition.
pub(super) fn page(crd: &CustomResourceDefinition) -> String {
    let spec = &crd.spec;
    let mut text = format!(
        "<!-- Generated from the definition by `cargo xtask gen`. -->\n# {}\n\n`{}/{}`, {}; `kubectl get {}`",
        spec.names.kind,
        spec.group,
        spec.versions.iter().map(|version| version.name.as_str()).collect::<Vec<_>>().join(", "),
        spec.scope.to_lowercase(),
        spec.names.short_names.as_deref().and_then(|names| names.first()).unwrap_or(&spec.names.plural),
    );
    text.push_str(".\n\nThere are no defaults in the schema: what is not given stays absent, and the description says what that means.\n");
    for schema in spec.versions.iter().filter_map(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref()) {
        let mut page = Page { text: String::new() };
        page.object("", schema);
        text.push_str(&page.text);
    }
    text
}

struct Page {
    text: String,
}

impl Page {
    /// The table of an object and, after it, those of the objects in it.
    fn object(&mut self, path: &str, schema: &JSONSchemaProps) {
        let Some(properties) = &schema.properties else { return };
        if !path.is_empty() {
            let _ = write!(self.text, "\n## `{path}`\n");
        }
        if let Some(description) = &schema.description {
            let _ = write!(self.text, "\n{description}\n");
        }
        self.text.push_str("\n| field | type | required | limits | |\n|---|---|---|---|---|\n");
        let required = schema.required.as_deref().unwrap_or_default();
        let own = |name: &str| !matches!((path, name), ("", "apiVersion" | "kind" | "metadata"));
        for (name, property) in properties.iter().filter(|(name, _)| own(name)) {
            let _ = writeln!(
                self.text,
                "| `{name}` | {} | {} | {} | {} |",
                kind(property),
                if required.contains(name) { "yes" } else { "" },
                cell(&limits(property)),
                cell(property.description.as_deref().unwrap_or_default()),
            );
        }
        self.rules(schema, properties.iter().map(|(name, property)| (name.as_str(), property)));
        for (name, property) in properties {
            let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let (here, inner) = innermost(here, property);
            self.object(&here, inner);
        }
    }

    /// The rules of an object, and those of its fields that are no objects with a table of their own.
    fn rules<'a>(&mut self, schema: &JSONSchemaProps, fields: impl Iterator<Item = (&'a str, &'a JSONSchemaProps)>) {
        let said = |schema: &JSONSchemaProps| -> Vec<(String, String)> {
            let rules = schema.x_kubernetes_validations.iter().flatten();
            rules.map(|rule| (rule.rule.clone(), rule.message.clone().unwrap_or_default())).collect()
        };
        let mut rows: Vec<(String, String, String)> = Vec::new();
        rows.extend(said(schema).into_iter().map(|(rule, message)| (String::new(), rule, message)));
        for (name, field) in fields.filter(|(_, field)| field.properties.is_none()) {
            rows.extend(said(field).into_iter().map(|(rule, message)| (format!("`{name}`"), rule, message)));
        }
        if rows.is_empty() {
            return;
        }
        self.text.push_str("\nRefused at admission:\n\n| field | what is said | unless (CEL) |\n|---|---|---|\n");
        for (field, rule, message) in rows {
            let _ = writeln!(self.text, "| {field} | {} | {} |", cell(&message), code(&rule));
        }
    }
}

/// What a list or map holds in the end, and its path.
fn innermost(path: String, schema: &JSONSchemaProps) -> (String, &JSONSchemaProps) {
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        return innermost(format!("{path}[]"), items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        return innermost(format!("{path}[*]"), values);
    }
    (path, schema)
}

/// The type in words.
fn kind(schema: &JSONSchemaProps) -> String {
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        return format!("list of {}", kind(items));
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        return format!("map of {}", kind(values));
    }
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> =
            values.iter().map(|value| format!("`{}`", value.0.as_str().unwrap_or_default())).collect();
        return values.join(", ");
    }
    match schema.format.as_deref() {
        Some("date-time") => "time".to_owned(),
        _ => schema.type_.clone().unwrap_or_else(|| "any".to_owned()),
    }
}

fn limits(schema: &JSONSchemaProps) -> String {
    let mut said = Vec::new();
    match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) => said.push(format!("{least} to {most}")),
        (Some(least), None) => said.push(format!("at least {least}")),
        (None, Some(most)) => said.push(format!("at most {most}")),
        (None, None) => {}
    }
    match (schema.min_length, schema.max_length) {
        (Some(least), Some(most)) => said.push(format!("{least} to {most} characters")),
        (Some(least), None) => said.push(format!("at least {least} characters")),
        (None, Some(most)) => said.push(format!("at most {most} characters")),
        (None, None) => {}
    }
    said.extend(schema.max_items.or(schema.max_properties).map(|most| format!("at most {most} entries")));
    said.extend(schema.pattern.as_ref().map(|pattern| format!("`{pattern}`")));
    said.join(", ")
}

/// A text that does not end its cell, and in which nothing outside of code is taken for HTML.
fn cell(text: &str) -> String {
    let shown = |(index, part): (usize, &str)| if index % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() };
    let text = text.split('`').enumerate().map(shown).collect::<Vec<_>>().join("`");
    text.replace('|', "\\|").replace('\n', " ")
}

/// CEL in a cell.
fn code(rule: &str) -> String {
    format!("`{}`", rule.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_rules_stay_in_their_cells() {
        assert_eq!(cell("<name> | `<ns>/<name>`\nmore"), "&lt;name> \\| `<ns>/<name>` more");
        assert_eq!(code("a || b < c"), "`a \\|\\| b < c`");
    }

    #[test]
    fn every_object_of_the_definition_has_its_table() {
        let page = page(&api::crds().swap_remove(0));
        for object in
            ["spec", "spec.nodes[*].spread[]", "spec.services.auth[].connectors[].configSecret", "status.hosts[]"]
        {
            assert!(page.contains(&format!("\n## `{object}`\n")), "{object}");
        }
        assert!(
            page.contains("| `maxPerDomain` | integer | yes | 1 to 10000 | Most hosts of this role in one domain. |")
        );
        assert!(page.contains("|  | start is above end | `self.start <= self.end` |"));
    }
}
