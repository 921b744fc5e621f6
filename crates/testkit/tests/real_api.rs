//! A real API server does what the one in memory does: the same cases, against the server of SLIPWAY_TEST_KUBECONFIG.
#![cfg(feature = "real-api")]
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

mod cases;

use cases::{apply, delete, lists, services, workloads, write};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait::{await_condition, conditions::is_crd_established},
};

async fn client() -> Client {
    let path = std::env::var("SLIPWAY_TEST_KUBECONFIG")
        .expect("SLIPWAY_TEST_KUBECONFIG must name the kubeconfig of an API server that may be written to; `make test` starts one");
    // Another test of this process may have been first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(path).expect("a kubeconfig");
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a kubeconfig");
    config.default_retry = false;
    let client = Client::try_from(config).expect("a client");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api::crds() {
        let name = crd.name_any();
        crds.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(crd)).await.expect("the CRD is taken");
        await_condition(crds.clone(), &name, is_crd_established()).await.expect("the CRD is established");
    }
    client
}

macro_rules! for_real {
    ($($group:ident :: $case:ident,)*) => {
        $(
            #[tokio::test]
            async fn $case() {
                let client = client().await;
                let namespaces: Api<Namespace> = Api::all(client.clone());
                let mut namespace = Namespace::default();
                namespace.metadata.generate_name = Some("slipway-case-".into());
                let made = namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace");
                $group::$case(client, made.name_any()).await;
                namespaces.delete(&made.name_any(), &DeleteParams::default()).await.expect("it goes");
            }
        )*
    };
}

every_case!(for_real);
