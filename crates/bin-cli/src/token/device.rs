//! Login on another device (RFC 8628): a code is shown here and entered there.

use std::time::Duration;

use anyhow::bail;
use reqwest::Url;
use serde::Deserialize;

use super::{Tokens, provider::Discovered};

/// The grant of this login.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// What the provider answers at first.
#[derive(Deserialize)]
struct Started {
    device_code: String,
    user_code: String,
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    #[serde(default = "five")]
    interval: u64,
}

fn five() -> u64 {
    5
}

/// Shows the code and asks until somebody has entered it.
pub async fn login(provider: &Discovered, endpoint: &Url) -> anyhow::Result<Tokens> {
    let scopes = provider.scopes();
    let started: Started = match provider.post(endpoint, &[("scope", &scopes)]).await? {
        Ok(started) => started,
        Err(refusal) => bail!("{} refuses a login by device code: {refusal}", provider.issuer()),
    };
    eprintln!("Open {} on any device and enter the code {}", started.verification_uri, started.user_code);
    if let Some(complete) = &started.verification_uri_complete {
        eprintln!("or open {complete}");
    }
    let mut interval = started.interval.max(1);
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        match provider.grant(&[("grant_type", GRANT), ("device_code", &started.device_code)]).await? {
            Ok(tokens) => return Ok(tokens),
            Err(refusal) => match refusal.error.as_str() {
                "authorization_pending" => {}
                "slow_down" => interval += 5,
                "expired_token" => bail!("the code {} has expired before anybody entered it", started.user_code),
                "access_denied" => bail!("the login was denied"),
                _ => bail!("{} refuses the login: {refusal}", provider.issuer()),
            },
        }
    }
}
