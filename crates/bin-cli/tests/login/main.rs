//! The logins that the Dex of 2018 cannot show: PKCE, and the device code.
#![allow(clippy::unwrap_used)] // a test says `unwrap` where its failure is a failure of the test

mod double;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bin_cli::token::{Args, Tokens, token};
use reqwest::Url;
use tempfile::TempDir;

use self::double::{Double, Form};

/// A provider and the arguments of somebody who logs in there.
async fn given() -> (Double, Args, TempDir) {
    // Every test may be the first.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let (double, cache) = (Double::start().await, tempfile::tempdir().unwrap());
    let args = Args {
        issuer: double.issuer.clone(),
        client_id: "kubernetes".to_owned(),
        ca_file: None,
        ca_data: Some(STANDARD.encode(&double.ca)),
        cache_dir: Some(cache.path().to_owned()),
        device: false,
        no_browser: true,
        timeout: 30,
    };
    (double, args, cache)
}

/// A browser at once comes back with `code`, and with what the login said.
async fn log_in(double: &Double, args: &Args, code: &'static str, tampered: bool) -> anyhow::Result<Tokens> {
    let seen = double.clone();
    token(args, &move |url| {
        let asked: Form = Url::parse(url).unwrap().query_pairs().into_owned().collect();
        assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
        assert_eq!(asked["scope"], "openid email offline_access", "of what is supported");
        let mut state = seen.state();
        state.challenge = Some(asked["code_challenge"].clone());
        state.nonce = Some(if tampered { "another".to_owned() } else { asked["nonce"].clone() });
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        back.query_pairs_mut().append_pair("code", code).append_pair("state", &asked["state"]);
        tokio::spawn(async move { reqwest::get(back).await.unwrap() });
    })
    .await
}

#[tokio::test]
async fn the_code_is_worth_nothing_without_the_secret_that_stayed_here() {
    let (double, args, _cache) = given().await;
    log_in(&double, &args, "the code", false).await.unwrap();
    let grants = double.state().grants.clone();
    assert_eq!(grants.len(), 1);
    assert!(grants[0]["code_verifier"].len() >= 43, "RFC 7636, section 4.1");
}

#[tokio::test]
async fn a_refused_code_and_a_token_for_another_login_are_errors() {
    let (double, args, _cache) = given().await;
    let why = log_in(&double, &args, "another code", false).await.err().unwrap();
    assert_eq!(why.to_string(), format!("{} refuses the login: invalid_grant", double.issuer));
    let why = log_in(&double, &args, "the code", true).await.err().unwrap();
    assert_eq!(why.to_string(), "the token answers another login than ours (nonce)");
}

#[tokio::test]
async fn a_device_code_is_asked_about_until_somebody_has_entered_it() {
    let (double, args, _cache) = given().await;
    double.state().polls = [Some("authorization_pending"), None].into();
    let args = Args { device: true, ..args };
    let never = |url: &str| panic!("no browser is needed here: {url}");
    let first = token(&args, &never).await.unwrap();
    assert_eq!(double.state().grants.len(), 2);
    assert_eq!(token(&args, &never).await.unwrap().id_token, first.id_token, "kept");
    assert_eq!(double.state().grants.len(), 2);
}

#[tokio::test]
async fn a_device_code_that_is_denied_or_too_old_ends_the_wait() {
    let (double, args, _cache) = given().await;
    double.state().polls = [Some("access_denied"), Some("expired_token")].into();
    let args = Args { device: true, ..args };
    let never = |url: &str| panic!("no browser is needed here: {url}");
    assert_eq!(token(&args, &never).await.err().unwrap().to_string(), "the login was denied");
    let why = token(&args, &never).await.err().unwrap().to_string();
    assert_eq!(why, "the code ABCD-EFGH has expired before anybody entered it");
}

/// kubectl in a script: without a browser and without a terminal nobody would ever answer.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_can_log_in_the_wait_does_not_begin() {
    let (double, args, cache) = given().await;
    let program = tokio::process::Command::new(env!("CARGO_BIN_EXE_slipway"))
        .args(["token", "--issuer", &args.issuer, "--ca-data", args.ca_data.as_deref().unwrap(), "--cache-dir"])
        .arg(cache.path())
        .env_remove("BROWSER")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .stdin(std::process::Stdio::null())
        .output();
    let said = tokio::time::timeout(std::time::Duration::from_mins(1), program).await.expect("no wait").unwrap();
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(!said.status.success() && said.stdout.is_empty(), "{text}");
    assert!(text.contains("nobody can log in here: there is no browser, and no terminal"), "{text}");
    assert!(double.state().grants.is_empty());
}
