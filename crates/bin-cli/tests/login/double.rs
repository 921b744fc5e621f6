//! A provider of today as far as a login sees it: PKCE is demanded (RFC 7636), a device code is given (RFC 8628).

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// Fields of a form.
pub type Form = BTreeMap<String, String>;

/// What the double knows and was asked.
#[derive(Debug, Default)]
pub struct State {
    /// The challenge that came with the login, once a browser was there.
    pub challenge: Option<String>,
    /// The nonce that came with it.
    pub nonce: Option<String>,
    /// What the token endpoint answers to a device code, one after the other: an error, or nothing for a token.
    pub polls: VecDeque<Option<&'static str>>,
    /// Forms that the token endpoint got.
    pub grants: Vec<Form>,
}

/// The double, served on the loopback until the test ends.
#[derive(Clone, Debug)]
pub struct Double {
    /// Its issuer's URL.
    pub issuer: String,
    /// Its certificate, which is its own CA, PEM.
    pub ca: String,
    state: Arc<Mutex<State>>,
}

impl Double {
    /// Starts it.
    pub async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://{}/dex", listener.local_addr().unwrap());
        let double = Self { issuer, ca: made.cert.pem(), state: Arc::default() };
        let served = double.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, double) = (acceptor.clone(), served.clone());
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    let (path, form) = request(&mut stream).await;
                    let (status, body) = double.answer(&path, &form);
                    let body = body.to_string();
                    let head =
                        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                    stream.shutdown().await.ok();
                });
            }
        });
        double
    }

    /// What it knows.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn answer(&self, path: &str, form: &Form) -> (&'static str, Value) {
        let at = |path: &str| format!("{}{path}", self.issuer);
        match path {
            "/dex/.well-known/openid-configuration" => {
                let offers = json!({
                    "issuer": self.issuer,
                    "authorization_endpoint": at("/auth"),
                    "token_endpoint": at("/token"),
                    "device_authorization_endpoint": at("/device/code"),
                    "code_challenge_methods_supported": ["S256", "plain"],
                    "scopes_supported": ["openid", "email", "offline_access"],
                });
                ("200 OK", offers)
            }
            "/dex/device/code" if form["client_id"] == "kubernetes" => {
                let started = json!({
                    "device_code": "device",
                    "user_code": "ABCD-EFGH",
                    "verification_uri": at("/device"),
                    "expires_in": 300,
                    "interval": 1,
                });
                ("200 OK", started)
            }
            "/dex/token" => self.grant(form),
            _ => ("404 Not Found", Value::Null),
        }
    }

    fn grant(&self, form: &Form) -> (&'static str, Value) {
        let mut state = self.state();
        state.grants.push(form.clone());
        let refused = match form["grant_type"].as_str() {
            "authorization_code" => {
                let proof = form.get("code_verifier").map(|verifier| URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)));
                (form["code"] != "the code" || proof.is_none() || proof != state.challenge).then_some("invalid_grant")
            }
            "urn:ietf:params:oauth:grant-type:device_code" => state.polls.pop_front().flatten(),
            _ => Some("unsupported_grant_type"),
        };
        if let Some(error) = refused {
            return ("400 Bad Request", json!({ "error": error }));
        }
        let claims =
            json!({ "iss": self.issuer, "aud": "kubernetes", "exp": i64::from(u32::MAX), "nonce": state.nonce });
        let token = format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()));
        ("200 OK", json!({ "id_token": token, "token_type": "bearer" }))
    }
}

/// Path and form of a request.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> (String, Form) {
    let mut read = Vec::new();
    loop {
        stream.read_buf(&mut read).await.unwrap();
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let form = Url::parse(&format!("https://form/?{body}")).unwrap();
            return (path, form.query_pairs().into_owned().collect());
        }
    }
}
