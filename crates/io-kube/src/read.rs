//! Live reads: one object, or all of a kind, page by page.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::{
    Client, Resource,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta},
};
use serde::de::DeserializeOwned;

use crate::{
    error::{Cause, Error, Target, Verb},
    write::{api, target, typed},
};

/// Objects per page of a list.
pub const PAGE: u32 = 500;

/// Reads one object from the server, not from a cache; none if it is not there.
pub async fn get(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<DynamicObject>, Error> {
    let found = api(client, resource, namespace).get_opt(name).await;
    let mut found = found.map_err(|error| Error {
        verb: Verb::Get,
        target: target(resource, namespace, name),
        cause: Cause::of(&error),
    })?;
    if let Some(object) = &mut found {
        object.metadata.managed_fields = None;
    }
    Ok(found)
}

/// Reads one object of a kind with a Rust type.
pub async fn get_as<K>(client: &Client, namespace: Option<&str>, name: &str) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let resource = ApiResource::erase::<K>(&());
    let found = get(client, &resource, namespace, name).await?;
    found.map(|object| typed(Verb::Get, &resource, object)).transpose()
}

/// The namespaced kinds that the server has in a group and version (`dex.coreos.com/v1`); none if it knows neither.
pub async fn kinds(client: &Client, api_version: &str) -> Result<Vec<ApiResource>, Error> {
    let found = match client.list_api_group_resources(api_version).await {
        Ok(found) => found.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        Err(error) => {
            let target = Target { kind: "APIResourceList".into(), namespace: None, name: api_version.to_owned() };
            return Err(Error { verb: Verb::Get, target, cause: Cause::of(&error) });
        }
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Subresources have a slash in their names.
    let whole = found.into_iter().filter(|resource| resource.namespaced && !resource.name.contains('/'));
    let kind = |resource: APIResource| {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &resource.kind), &resource.name)
    };
    Ok(whole.map(kind).collect())
}

/// Reads all objects of a kind that match a label selector (empty: all), in one namespace or everywhere.
pub async fn list(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    labels: &str,
) -> Result<Vec<DynamicObject>, Error> {
    let api = api(client, resource, namespace);
    let mut params = ListParams::default().limit(PAGE);
    if !labels.is_empty() {
        params = params.labels(labels);
    }
    let mut found = Vec::new();
    loop {
        let page = api.list(&params).await.map_err(|error| Error {
            verb: Verb::List,
            target: target(resource, namespace, ""),
            cause: Cause::of(&error),
        })?;
        found.extend(page.items.into_iter().map(|mut object| {
            object.metadata.managed_fields = None;
            // Items of built-in kinds come without their type.
            object.types.get_or_insert_with(|| TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            object
        }));
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params.continue_token = Some(token),
            _ => return Ok(found),
        }
    }
}
