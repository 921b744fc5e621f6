//! `slipway token` against a real Dex that runs on the configuration a plan renders.
//!
//! SLIPWAY_DEX names the binary. Any Dex will do; the one that can be built here is of 2018 and knows neither PKCE nor
//! the device code, so this also shows that the login does without them.
#![allow(clippy::unwrap_used)] // a test says `unwrap` where its failure is a failure of the test

mod browser;
mod provider;

use std::{
    fs,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bin_cli::token::{Args, Tokens, token};
use serde_json::Value;
use tokio::task::JoinHandle;

use self::{browser::Person, provider::Dex};

const ANN: Person = Person { connector: "local", login: "ann@example.org", password: "correct horse" };
const STAFF: Person = Person { connector: "staff", login: "staff", password: provider::STAFF_PASSWORD };

fn provider_of_crypto() {
    // Every test may be the first.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
}

fn args(dex: &Dex) -> Args {
    let ca = dex.cache().with_extension("pem");
    fs::write(&ca, &dex.ca).expect("the CA");
    Args {
        issuer: dex.issuer.clone(),
        client_id: "kubernetes".to_owned(),
        ca_file: Some(ca),
        ca_data: None,
        cache_dir: Some(dex.cache()),
        device: false,
        no_browser: true,
        timeout: 60,
    }
}

/// Logs in as `person`, and tells the last page that they saw.
async fn log_in(dex: &Dex, args: &Args, person: Person) -> (anyhow::Result<Tokens>, Option<String>) {
    let visit: Arc<Mutex<Option<JoinHandle<String>>>> = Arc::default();
    let (http, kept) = (dex.http(), visit.clone());
    let open = move |url: &str| {
        let (http, url) = (http.clone(), url.to_owned());
        *kept.lock().unwrap() = Some(tokio::spawn(async move { person.visit(&http, &url).await }));
    };
    let tokens = token(args, &open).await;
    let visit = visit.lock().unwrap().take();
    let page = match visit {
        Some(visit) => Some(visit.await.unwrap()),
        None => None,
    };
    (tokens, page)
}

/// A call that may not ask anybody to log in.
async fn without_a_login(args: &Args) -> Tokens {
    token(args, &|url| panic!("nobody has to log in at {url}")).await.unwrap()
}

fn claims(tokens: &Tokens) -> Value {
    let payload = tokens.id_token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// Puts a token into the cache whose time is over, and leaves the refresh token.
fn let_it_expire(dex: &Dex) {
    let is_cache = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let file = fs::read_dir(dex.cache()).unwrap().map(|file| file.unwrap().path()).find(is_cache).unwrap();
    let mut kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    kept["id_token"] = "e30.e30.x".into();
    fs::write(file, kept.to_string()).unwrap();
}

#[tokio::test]
async fn a_local_user_logs_in_once_and_the_token_is_renewed_even_after_a_restart() {
    provider_of_crypto();
    let mut dex = Dex::start().await;
    let args = args(&dex);
    let (first, page) = log_in(&dex, &args, ANN).await;
    let first = first.unwrap_or_else(|why| panic!("{why:#}\n{page:?}\n{}", dex.said()));
    assert!(page.unwrap().contains("You are logged in"));
    let said = claims(&first);
    assert_eq!((&said["email"], &said["email_verified"]), (&"ann@example.org".into(), &true.into()));
    assert_eq!((&said["iss"], &said["aud"]), (&dex.issuer.as_str().into(), &"kubernetes".into()));

    assert_eq!(without_a_login(&args).await.id_token, first.id_token, "kept while it holds");
    let_it_expire(&dex);
    let second = without_a_login(&args).await;
    assert_ne!(second.id_token, first.id_token);
    assert_eq!(claims(&second)["sub"], said["sub"]);

    dex.restart().await;
    let_it_expire(&dex);
    assert_eq!(claims(&without_a_login(&args).await)["sub"], said["sub"], "the refresh token survived");

    dex.restart_empty().await;
    let_it_expire(&dex);
    let (again, page) = log_in(&dex, &args, ANN).await;
    assert_eq!(claims(&again.unwrap())["sub"], said["sub"], "a refused refresh means a login");
    assert!(page.is_some());
}

#[tokio::test]
async fn a_connectors_password_reaches_dex_as_it_was_written() {
    provider_of_crypto();
    let dex = Dex::start().await;
    let (tokens, page) = log_in(&dex, &args(&dex), STAFF).await;
    let tokens = tokens.unwrap_or_else(|why| panic!("{why:#}\n{page:?}\n{}", dex.said()));
    assert_eq!(claims(&tokens)["iss"], dex.issuer.as_str());
}

#[tokio::test]
async fn a_wrong_password_gives_no_token_and_the_wait_ends() {
    provider_of_crypto();
    let dex = Dex::start().await;
    let args = Args { timeout: 2, ..args(&dex) };
    let (tokens, page) = log_in(&dex, &args, Person { password: "wrong", ..ANN }).await;
    assert_eq!(tokens.err().unwrap().to_string(), "nobody logged in within 2 seconds (--timeout)");
    let page = page.unwrap();
    assert!(page.contains("Invalid"), "Dex shows its form again, not\n{page}\n{}", dex.said());
}

#[tokio::test]
async fn a_login_by_device_code_falls_back_to_the_browser_where_there_is_none() {
    provider_of_crypto();
    let dex = Dex::start().await;
    let offers: Value = dex
        .http()
        .get(format!("{}/.well-known/openid-configuration", dex.issuer))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(offers.get("device_authorization_endpoint").is_none(), "a Dex that has it needs another test");
    let (tokens, _) = log_in(&dex, &Args { device: true, ..args(&dex) }, ANN).await;
    assert_eq!(claims(&tokens.unwrap())["email"], "ann@example.org");
}

#[tokio::test]
async fn a_certificate_of_another_ca_or_another_issuer_is_refused_in_words() {
    provider_of_crypto();
    let (dex, other) = (Dex::start().await, Dex::start().await);
    let never = |url: &str| panic!("nobody may log in at {url}");
    let strange = Args { ca_file: args(&other).ca_file, ..args(&dex) };
    let why = format!("{:#}", token(&strange, &never).await.err().unwrap());
    assert!(why.starts_with("cannot reach the OIDC provider at") && why.contains("certificate"), "{why}");

    let alias = Args { issuer: dex.issuer.replace("127.0.0.1", "localhost"), ..args(&dex) };
    let why = format!("{:#}", token(&alias, &never).await.err().unwrap());
    assert_eq!(why, format!("the provider at {:?} calls itself {:?}", alias.issuer, dex.issuer));

    let lost = Args { issuer: format!("{}/x", dex.issuer), ..args(&dex) };
    let why = format!("{:#}", token(&lost, &never).await.err().unwrap());
    assert!(why.contains("answers 404") && why.contains("is this the issuer's URL?"), "{why}");

    let plain = Args { issuer: "http://127.0.0.1:5556/dex".to_owned(), ..args(&dex) };
    assert!(token(&plain, &never).await.err().unwrap().to_string().contains("https"));
}
