//! What an API server does, as cases that run against ours in memory and against a real one alike.
//!
//! Every case works in a namespace of its own, which its runner makes.
// Bodies are written where they are used.
#![allow(clippy::needless_pass_by_value)]

pub mod apply;
pub mod delete;
pub mod lists;
pub mod services;
pub mod workloads;
pub mod write;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    api::{PostParams, TypeMeta},
    core::Status,
};
use serde_json::{Value, json};

/// Names each case once, for both runners.
#[macro_export]
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            write::a_name_is_taken_once,
            write::nothing_is_made_in_a_namespace_that_is_not_there,
            write::names_and_labels_are_checked,
            write::a_generated_name_begins_as_asked,
            write::a_replacement_of_an_old_version_is_refused,
            write::a_replacement_without_a_version_depends_on_the_kind,
            write::a_replacement_of_another_uid_is_refused,
            write::a_write_that_changes_nothing_keeps_the_version,
            write::a_merge_patch_of_an_old_version_is_refused,
            write::a_merge_patch_of_another_uid_is_refused,
            write::a_json_patch_tests_and_changes,
            write::a_dry_run_keeps_nothing,
            write::the_generation_counts_changes_of_the_spec,
            write::the_status_is_written_apart,
            write::the_status_is_bound_to_version_and_uid,
            write::a_secret_takes_plain_text_and_keeps_its_type,
            write::a_missing_lease_is_made_by_a_replacement_without_uid_only,
            apply::an_apply_makes_what_is_missing,
            apply::an_apply_that_makes_needs_the_name,
            apply::an_apply_with_an_impossible_version_only_makes,
            apply::an_apply_of_an_old_version_is_refused,
            apply::an_apply_with_the_uid_of_an_object_that_is_gone_makes_nothing,
            apply::fields_left_out_go_and_those_of_others_stay,
            apply::elements_of_keyed_lists_are_owned_one_by_one,
            apply::fields_of_others_need_force,
            apply::fields_made_by_a_post_do_not_go,
            apply::the_status_is_applied_apart,
            apply::lists_of_our_kinds_are_keyed_as_their_schema_says,
            delete::a_deletion_is_bound_to_version_and_uid,
            delete::finalizers_hold_an_object,
            delete::the_last_finalizer_lets_it_go,
            delete::no_finalizer_is_added_to_what_is_deleted,
            delete::a_name_is_taken_until_its_object_is_gone,
            delete::a_foreground_deletion_leaves_its_finalizer,
            lists::a_list_comes_in_pages_of_one_version,
            lists::selectors_narrow_a_list,
            lists::a_watch_begins_where_a_list_ended,
            lists::a_watch_tells_what_enters_and_leaves_its_selection,
            lists::a_watch_without_version_begins_with_what_is_there,
            lists::metadata_can_be_had_alone,
            lists::a_version_from_the_future_is_refused,
            services::ports_and_addresses_are_given,
            services::a_taken_node_port_is_refused,
            services::a_node_port_out_of_range_is_refused,
            services::a_replacement_keeps_the_node_port_it_leaves_out,
            services::ports_are_checked,
            services::the_address_does_not_change,
            workloads::a_selector_must_match_and_stay,
            workloads::the_kubelets_stand_in_makes_a_deployment_available,
        }
    };
}

/// A ConfigMap with one key.
pub fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "key": value } })).expect("a ConfigMap")
}

/// Makes it.
pub async fn made(client: &Client, namespace: &str, name: &str) -> ConfigMap {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.create(&PostParams::default(), &config_map(name, "a")).await.expect("it is made")
}

/// The refusal that was expected.
pub fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> Status {
    match answer {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected to be refused, got {other:?}"),
    }
}

/// Whether both have the same version.
pub fn same_version(a: &impl kube::Resource<DynamicType = ()>, b: &impl kube::Resource<DynamicType = ()>) -> bool {
    a.resource_version() == b.resource_version()
}

/// With the type that a real server wants to see in an apply.
pub fn apply_of<K: kube::Resource<DynamicType = ()>>(mut body: Value) -> Value {
    let types = TypeMeta::resource::<K>();
    body["apiVersion"] = json!(types.api_version);
    body["kind"] = json!(types.kind);
    body
}
