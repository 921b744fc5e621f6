use kube::CustomResourceExt;

#[test]
fn dump() {
    println!("{}", serde_json::to_string_pretty(&super::SIPCluster::crd()).unwrap());
}
