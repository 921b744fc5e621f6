//! `slipway token`: logs in at an OIDC provider and prints the token in the form kubectl asks of credential plugins.
//!
//! ```text
//!  cached token still good ──► print it
//!  refresh token ──► provider takes it ──► cache, print
//!                └── refuses it ──┐
//!  nothing cached ────────────────┴──► log in: browser (authorization code, PKCE) or device code ──► cache, print
//!                                      (way.rs says which)
//! ```

mod browser;
mod cache;
mod claims;
mod code;
mod device;
mod provider;
mod way;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use self::{
    cache::Cache,
    claims::Claims,
    provider::Provider,
    way::{Here, Way},
};

/// Arguments of `slipway token`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// URL of the OIDC provider, exactly as the API server knows it.
    #[arg(long, value_name = "URL")]
    pub issuer: String,
    /// OAuth2 client to log in as; a public one.
    #[arg(long, value_name = "ID", default_value = "kubernetes")]
    pub client_id: String,
    /// PEM file with the CA of the provider's certificate. Default: what this machine trusts.
    #[arg(long, value_name = "FILE", conflicts_with = "ca_data")]
    pub ca_file: Option<PathBuf>,
    /// The same as base64 of the PEM text.
    #[arg(long, value_name = "BASE64")]
    pub ca_data: Option<String>,
    /// Directory where tokens are kept. Default: `slipway/token` in the user's cache directory.
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Log in on another device: prints a code to enter there, and needs no browser here. Done by itself where this
    /// machine has no browser and the provider can.
    #[arg(long)]
    pub device: bool,
    /// Do not start a browser; the address to open is printed in any case.
    #[arg(long)]
    pub no_browser: bool,
    /// How many seconds a login may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
}

/// Gets a token, by a login where there is no other way, and prints it as an `ExecCredential`.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let token = token(&args, &|url| {
        if !args.no_browser {
            browser::open(url);
        }
    })
    .await?;
    println!("{}", serde_json::to_string(&credential(&token)?)?);
    Ok(())
}

/// What a provider gave for one login.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tokens {
    /// The token for the API server.
    pub id_token: String,
    /// What gets the next one without a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}

/// A token that holds for a while yet. `open` is called with the address at which somebody has to log in.
pub async fn token(args: &Args, open: &(dyn Fn(&str) + Sync)) -> anyhow::Result<Tokens> {
    let ca = args.ca()?;
    let provider = Provider::new(&args.issuer, &args.client_id, ca.as_deref())?;
    let cache =
        Cache::open(args.cache_dir.clone(), &[&args.issuer, &args.client_id, ca.as_deref().unwrap_or_default()])?;
    // One login at a time: kubectl starts several of us at once.
    let cache = tokio::task::spawn_blocking(|| cache.lock()).await.context("the cache lock was abandoned")??;
    let kept = cache.read();
    if let Some(tokens) = kept.as_ref().filter(|tokens| holds(&provider, tokens)) {
        return Ok(tokens.clone());
    }
    let discovered = provider.discover().await?;
    let tokens = match kept.and_then(|tokens| tokens.refresh_token) {
        Some(refresh) => discovered.refresh(&refresh).await?,
        None => None,
    };
    let tokens = match tokens {
        Some(tokens) => tokens,
        None => login(args, &discovered, open).await?,
    };
    Claims::of(&tokens.id_token)?.check(&args.issuer, &args.client_id)?;
    cache.write(&tokens)?;
    Ok(tokens)
}

/// Logs in the way that was asked for, as far as the provider can.
async fn login(args: &Args, provider: &provider::Discovered, open: &(dyn Fn(&str) + Sync)) -> anyhow::Result<Tokens> {
    if args.device && provider.device_endpoint().is_none() {
        eprintln!("{} offers no login by device code; a browser is needed.", args.issuer);
    }
    let way = Way::of(args.device, args.no_browser, provider.device_endpoint().is_some(), Here::look());
    if let Some(why) = way.sentence() {
        eprintln!("{why}");
    }
    let login = async {
        match (way, provider.device_endpoint()) {
            (Way::Nobody, _) => bail!(
                "a login is needed, and nobody can log in here: there is no browser, and no terminal to show an address \
                 on. Run `slipway token` with the same arguments in a terminal first, which keeps the token for the next \
                 time; or say --device or --no-browser to have the address printed all the same"
            ),
            (Way::Device | Way::DeviceForLack, Some(endpoint)) => device::login(provider, endpoint).await,
            (Way::Device | Way::DeviceForLack | Way::Browser | Way::Print | Way::PrintForLack, _) => {
                code::login(provider, open).await
            }
        }
    };
    match tokio::time::timeout(Duration::from_secs(args.timeout), login).await {
        Ok(tokens) => tokens,
        Err(_) => bail!("nobody logged in within {} seconds (--timeout)", args.timeout),
    }
}

/// Whether a cached token is this provider's and holds for another minute.
fn holds(provider: &Provider, tokens: &Tokens) -> bool {
    Claims::of(&tokens.id_token).is_ok_and(|claims| {
        claims.check(provider.issuer(), provider.client_id()).is_ok() && claims.exp > Timestamp::now().as_second() + 60
    })
}

impl Args {
    /// The CA, PEM.
    fn ca(&self) -> anyhow::Result<Option<String>> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        match (&self.ca_file, &self.ca_data) {
            (Some(file), _) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("--ca-file {}", file.display()))?;
                Ok(Some(text))
            }
            (None, Some(data)) => {
                let bytes = STANDARD.decode(data.trim()).context("--ca-data is not base64")?;
                Ok(Some(String::from_utf8(bytes).context("--ca-data is not a PEM text")?))
            }
            (None, None) => Ok(None),
        }
    }
}

/// What kubectl reads (`client.authentication.k8s.io`): in the version in which it asked, else v1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecCredential {
    api_version: String,
    kind: &'static str,
    status: Status,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: String,
    token: String,
}

fn credential(tokens: &Tokens) -> anyhow::Result<ExecCredential> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        api_version: String,
    }
    let asked = std::env::var("KUBERNETES_EXEC_INFO").ok().and_then(|text| serde_json::from_str::<Asked>(&text).ok());
    let expires = Timestamp::from_second(Claims::of(&tokens.id_token)?.exp).context("the token's exp is no time")?;
    Ok(ExecCredential {
        api_version: asked
            .map(|asked| asked.api_version)
            .filter(|version| version.starts_with("client.authentication.k8s.io/"))
            .unwrap_or_else(|| "client.authentication.k8s.io/v1".to_owned()),
        kind: "ExecCredential",
        status: Status { expiration_timestamp: expires.to_string(), token: tokens.id_token.clone() },
    })
}
