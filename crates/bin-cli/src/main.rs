//! `slipway`, also `kubectl slipway`: plan, explain, lint, kubeconfig, token, crds.
fn main() {}
