//! Which hosts a role takes, how many, and how they are spread.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The hosts of one role.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NodeSet {
    /// Which BareMetalHosts are eligible. Empty or absent: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<Selector>,

    /// A BareMetalHost label: at most one host of this role for each of its values, for instance
    /// `vino.airshipit.org/rack`. A host without the label is not placed. Empty or absent: no such rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 317),
        regex(pattern = r"^(([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
    )]
    pub topology_key: Option<String>,

    /// More placement rules beside `topologyKey`, such as at most two hosts per rack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub spread: Vec<Spread>,

    /// How many hosts. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<NodeCount>,
}

/// One placement rule: at most so many hosts of the role for each value of a label.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The BareMetalHost label whose values are the domains. A host without it is not placed.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub topology_key: String,
    /// Most hosts of this role in one domain.
    #[schemars(range(min = 1, max = 10000))]
    pub max_per_domain: i32,
}

/// How many hosts a role has. Both are claimed, labelled and served alike.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NodeCount {
    /// Hosts the tenant cluster uses. Absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub active: Option<i32>,
    /// Hosts beside those, for instance for an upgrade that adds before it removes. Absent: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub standby: Option<i32>,
}

/// A label selector, with the meaning it has everywhere in Kubernetes: all requirements hold.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"}))]
    #[x_kube(validation = Rule::new("self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))").message("every key must be a label key, such as vino.airshipit.org/flavor"))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<Expression>,
}

/// One requirement on a label.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.operator in ['In', 'NotIn'] ? (has(self.values) && size(self.values) > 0) : (!has(self.values) || size(self.values) == 0)")
        .message("In and NotIn need values, Exists and DoesNotExist take none")
)]
pub struct Expression {
    /// The label.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
    )]
    pub key: String,
    /// How the label relates to `values`.
    pub operator: Operator,
    /// For `In` and `NotIn`: at least one value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        inner(length(max = 63), regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"))
    )]
    pub values: Vec<String>,
}

/// How a label relates to the values of an expression.
#[derive(schemars::JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is there with one of the values.
    In,
    /// The label is absent or has another value.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}
