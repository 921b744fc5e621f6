//! `slipway`, also `kubectl slipway`: plan, explain, lint, kubeconfig, token, crds.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("slipway: a TLS provider was installed before main");
        return ExitCode::FAILURE;
    }
    bin_cli::cli::run(std::env::args_os().collect()).await
}
