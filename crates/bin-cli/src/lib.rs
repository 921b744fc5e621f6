//! What the commands of `slipway` do, one module each.

pub mod kubeconfig;
pub mod token;
