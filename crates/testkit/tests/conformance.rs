//! The server in memory does what a real one does.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

mod cases;

use cases::{apply, delete, lists, services, workloads, write};
use testkit::Api;

macro_rules! in_memory {
    ($($group:ident :: $case:ident,)*) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $case() {
                let api = Api::new();
                api.seed(serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "case" } }));
                $group::$case(api.client(), "case".to_owned()).await;
            }
        )*
    };
}

every_case!(in_memory);
