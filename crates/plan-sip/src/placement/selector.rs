//! Label selectors with the semantics of Kubernetes, parsed once, comparable, so that equal ones share their work.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use base::names::{is_label_key, is_label_value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Which hosts a role may take, by their labels. All requirements must hold; without any, every host matches.
///
/// Source: Kubernetes "Labels and Selectors". `NotIn` and `DoesNotExist` hold where the key is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    requirements: BTreeSet<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
}

/// A selector that Kubernetes would refuse, with the field at fault (relative to the selector).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Not a label key.
    #[error("{field}: {key:?} is not a label key")]
    Key {
        /// `matchLabels` or `matchExpressions[i].key`.
        field: String,
        /// The text given.
        key: String,
    },
    /// Not a label value.
    #[error("{field}: {value:?} is not a label value")]
    Value {
        /// `matchLabels[key]` or `matchExpressions[i].values`.
        field: String,
        /// The text given.
        value: String,
    },
    /// An operator other than In, NotIn, Exists and DoesNotExist.
    #[error("matchExpressions[{index}].operator: {operator:?} is none of In, NotIn, Exists, DoesNotExist")]
    Operator {
        /// Position in `matchExpressions`.
        index: usize,
        /// The text given.
        operator: String,
    },
    /// `In` and `NotIn` need values; `Exists` and `DoesNotExist` take none.
    #[error("matchExpressions[{index}].values: {}", if *.wanted { "In and NotIn need at least one" } else { "Exists and DoesNotExist take none" })]
    Values {
        /// Position in `matchExpressions`.
        index: usize,
        /// Whether the operator needs values.
        wanted: bool,
    },
}

impl Selector {
    /// The selector that every host matches.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector of hosts that carry all these labels.
    pub fn labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let requirements = labels
            .into_iter()
            .map(|(key, value)| Requirement { key: key.into(), rule: Rule::In(BTreeSet::from([value.into()])) })
            .collect();
        Self { requirements }
    }

    /// Reads a selector as the API carries it. An empty one matches every host.
    pub fn parse(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut requirements = BTreeSet::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            if !is_label_key(key) {
                return Err(SelectorError::Key { field: "matchLabels".to_owned(), key: key.clone() });
            }
            if !is_label_value(value) {
                return Err(SelectorError::Value { field: format!("matchLabels[{key}]"), value: value.clone() });
            }
            requirements.insert(Requirement { key: key.clone(), rule: Rule::In(BTreeSet::from([value.clone()])) });
        }
        for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
            if !is_label_key(&expression.key) {
                let field = format!("matchExpressions[{index}].key");
                return Err(SelectorError::Key { field, key: expression.key.clone() });
            }
            let values: BTreeSet<String> = expression.values.iter().flatten().cloned().collect();
            if let Some(value) = values.iter().find(|value| !is_label_value(value)) {
                let field = format!("matchExpressions[{index}].values");
                return Err(SelectorError::Value { field, value: value.clone() });
            }
            let (wanted, rule) = match expression.operator.as_str() {
                "In" => (true, Rule::In(values.clone())),
                "NotIn" => (true, Rule::NotIn(values.clone())),
                "Exists" => (false, Rule::Exists),
                "DoesNotExist" => (false, Rule::Absent),
                other => return Err(SelectorError::Operator { index, operator: other.to_owned() }),
            };
            if wanted == values.is_empty() {
                return Err(SelectorError::Values { index, wanted });
            }
            requirements.insert(Requirement { key: expression.key.clone(), rule });
        }
        Ok(Self { requirements })
    }

    /// Whether a host with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.holds(|key| labels.get(key).map(String::as_str))
    }

    /// Whether a host is selected whose label of a key is what `value` says.
    pub(super) fn holds<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = value(&requirement.key);
            match &requirement.rule {
                Rule::In(values) => value.is_some_and(|value| values.contains(value)),
                Rule::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Rule::Exists => value.is_some(),
                Rule::Absent => value.is_none(),
            }
        })
    }
}

impl fmt::Display for Selector {
    /// As kubectl writes it: `a=b,c in (d,e),!f`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.requirements.is_empty() {
            return f.write_str("any labels");
        }
        let list = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        for (index, Requirement { key, rule }) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match rule {
                Rule::In(values) if values.len() == 1 => write!(f, "{key}={}", list(values))?,
                Rule::In(values) => write!(f, "{key} in ({})", list(values))?,
                Rule::NotIn(values) if values.len() == 1 => write!(f, "{key}!={}", list(values))?,
                Rule::NotIn(values) => write!(f, "{key} notin ({})", list(values))?,
                Rule::Exists => f.write_str(key)?,
                Rule::Absent => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
    use rstest::rstest;

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let requirement =
            LabelSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values: Some(values) };
        LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }
    }

    #[rstest]
    #[case::value_listed("In", &["a", "b"], Some("a"), true)]
    #[case::value_not_listed("In", &["a", "b"], Some("c"), false)]
    #[case::in_wants_the_key("In", &["a"], None, false)]
    #[case::value_excluded("NotIn", &["a"], Some("a"), false)]
    #[case::another_value("NotIn", &["a"], Some("b"), true)]
    #[case::not_in_holds_without_the_key("NotIn", &["a"], None, true)]
    #[case::the_empty_value_is_a_value("NotIn", &[""], Some(""), false)]
    #[case::there("Exists", &[], Some(""), true)]
    #[case::not_there("Exists", &[], None, false)]
    #[case::gone("DoesNotExist", &[], None, true)]
    #[case::still_there("DoesNotExist", &[], Some("x"), false)]
    fn expressions_mean_what_kubernetes_says(
        #[case] operator: &str,
        #[case] values: &[&str],
        #[case] label: Option<&str>,
        #[case] matches: bool,
    ) {
        let selector = Selector::parse(&expression("k", operator, values)).expect("a good selector");
        let labels = label.map(|value| ("k".to_owned(), value.to_owned())).into_iter().collect();
        assert_eq!(selector.matches(&labels), matches);
    }

    #[rstest]
    #[case("in", &["a"], "matchExpressions[0].operator: \"in\" is none of In, NotIn, Exists, DoesNotExist")]
    #[case("In", &[], "matchExpressions[0].values: In and NotIn need at least one")]
    #[case("Exists", &["a"], "matchExpressions[0].values: Exists and DoesNotExist take none")]
    #[case("NotIn", &["a b"], "matchExpressions[0].values: \"a b\" is not a label value")]
    fn what_kubernetes_refuses_is_refused(#[case] operator: &str, #[case] values: &[&str], #[case] error: &str) {
        let refused = Selector::parse(&expression("k", operator, values)).expect_err("a bad selector");
        assert_eq!(refused.to_string(), error);
    }

    #[test]
    fn an_empty_selector_matches_every_host() {
        let selector = Selector::parse(&LabelSelector::default()).expect("empty is fine");
        assert_eq!(selector, Selector::everything());
        assert!(selector.matches(&BTreeMap::new()));
    }

    #[test]
    fn labels_and_expressions_must_all_hold() {
        let mut selector = expression("rack", "NotIn", &["r1"]);
        selector.match_labels = Some(BTreeMap::from([("flavor".to_owned(), "worker".to_owned())]));
        let selector = Selector::parse(&selector).expect("a good selector");
        let labels = |rack: &str| {
            BTreeMap::from([("flavor".to_owned(), "worker".to_owned()), ("rack".to_owned(), rack.to_owned())])
        };
        assert!(selector.matches(&labels("r2")));
        assert!(!selector.matches(&labels("r1")));
        assert_eq!(selector.to_string(), "flavor=worker,rack!=r1");
    }
}
