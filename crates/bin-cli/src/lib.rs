//! What the commands of `slipway` do, one module each.

pub mod cli;
mod definitions;
mod explain;
mod input;
pub mod kubeconfig;
mod lint;
mod live;
mod plan;
mod reference;
mod site;
mod source;
pub mod token;
mod words;
