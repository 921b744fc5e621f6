//! The last touch to generated schemas: texts that read well in `kubectl explain`, and nulls that mean "not given".

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The definition as it is applied.
pub(crate) fn finished(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            finish(schema);
        }
    }
    crd
}

/// The definition of a kind whose status, if it ever says anything, is a field like any other.
pub(crate) fn without_subresources(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        version.subresources = None;
    }
    crd
}

fn finish(schema: &mut JSONSchemaProps) {
    schema.description = schema.description.as_deref().map(unwrapped);
    schema.title = None;
    // What is not given stays absent: the types say what that means.
    schema.default = None;
    // Where null is no value, an API server drops it: `count: null` is then `count` not given, in every field alike.
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        finish(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        finish(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        finish(values);
    }
}

/// One line for each paragraph: whoever shows it breaks the lines.
fn unwrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
