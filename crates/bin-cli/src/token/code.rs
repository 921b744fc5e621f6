//! Login in a browser: authorization code with PKCE, answered to a port of this machine (RFC 8252, RFC 7636).

use std::{net::Ipv6Addr, time::Duration};

use anyhow::{Context as _, bail, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{Tokens, claims::Claims, provider::Discovered};

/// Ports that are tried first: those that clients of kubectl are usually registered with. 0: any.
const PORTS: [u16; 3] = [8000, 18000, 0];
/// Longest head of a request that is read.
const HEAD_MAX: usize = 16 * 1024;

/// Sends the browser, by `open`, to the provider and waits for it to come back.
pub async fn login(provider: &Discovered, open: &(dyn Fn(&str) + Sync)) -> anyhow::Result<Tokens> {
    let door = Door::open().await?;
    // Not 127.0.0.1: of public clients, Dex before 2.26 takes the name only.
    let redirect = format!("http://localhost:{}", door.port);
    let (state, nonce, verifier) = (random(), random(), random());
    let scopes = provider.scopes();
    let mut url = provider.authorization_endpoint().clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", provider.client_id())
        .append_pair("redirect_uri", &redirect)
        .append_pair("scope", &scopes)
        .append_pair("state", &state)
        .append_pair("nonce", &nonce);
    if provider.challenge() {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        url.query_pairs_mut().append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
    }
    eprintln!("Log in at {url}");
    eprintln!("(with a browser on another machine, first: ssh -L {0}:localhost:{0} THIS-MACHINE)", door.port);
    open(url.as_str());
    let code = door.answer(&state).await?;
    let mut form =
        vec![("grant_type", "authorization_code"), ("code", code.as_str()), ("redirect_uri", redirect.as_str())];
    if provider.challenge() {
        form.push(("code_verifier", &verifier));
    }
    let tokens = match provider.grant(&form).await? {
        Ok(tokens) => tokens,
        Err(refusal) => bail!("{} refuses the login: {refusal}", provider.issuer()),
    };
    let claims = Claims::of(&tokens.id_token)?;
    ensure!(claims.nonce.as_deref() == Some(&nonce), "the token answers another login than ours (nonce)");
    Ok(tokens)
}

/// 256 random bits as text that needs no escape anywhere.
fn random() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

/// The port to which the browser brings the code.
struct Door {
    port: u16,
    listeners: Vec<TcpListener>,
}

impl Door {
    /// Listens on both loopback addresses: which of them `localhost` is, browsers decide. A port of which somebody else
    /// has one half is not taken, for the code might go there.
    async fn open() -> anyhow::Result<Self> {
        let mut last = None;
        for port in PORTS.into_iter().chain([0; 8]) {
            let four = match TcpListener::bind(("127.0.0.1", port)).await {
                Ok(four) => four,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            let port = four.local_addr().context("a listener has no address")?.port();
            match TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await {
                Ok(six) => return Ok(Self { port, listeners: vec![four, six] }),
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => last = Some(error),
                // No IPv6 here, so nobody can come by it.
                Err(_) => return Ok(Self { port, listeners: vec![four] }),
            }
        }
        let why = last.map(|error| error.to_string()).unwrap_or_default();
        bail!("no port of this machine can be listened on for the browser's answer: {why}")
    }

    /// The code that the browser brings. Whoever else comes by is turned away, and does not hold anything up.
    async fn answer(self, state: &str) -> anyhow::Result<String> {
        let (found, mut codes) = mpsc::channel(1);
        let tasks: Vec<_> = self
            .listeners
            .into_iter()
            .map(|listener| {
                let (found, state) = (found.clone(), state.to_owned());
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        let (found, state) = (found.clone(), state.clone());
                        tokio::spawn(async move {
                            let visit = tokio::time::timeout(Duration::from_secs(10), visit(stream, &state)).await;
                            if let Ok(Some(code)) = visit {
                                // A second answer to the same login finds nobody waiting.
                                found.send(code).await.ok();
                            }
                        });
                    }
                })
            })
            .collect();
        let code = codes.recv().await.context("the listener for the browser ended")?;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        code
    }
}

/// Serves one connection: the code, or why there is none, if it is the answer to our login.
async fn visit(mut stream: TcpStream, state: &str) -> Option<anyhow::Result<String>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        if stream.read_buf(&mut head).await.ok()? == 0 {
            break;
        }
    }
    let answer = parse(&String::from_utf8_lossy(&head), state);
    let (status, text) = match &answer {
        Some(Ok(_)) => ("200 OK", "You are logged in. This window can be closed."),
        Some(Err(_)) => ("400 Bad Request", "The login failed; the terminal says why. This window can be closed."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(page.as_bytes()).await.ok();
    stream.shutdown().await.ok();
    answer
}

/// The code in a request; `None` where it does not answer the login with this state.
fn parse(head: &str, state: &str) -> Option<anyhow::Result<String>> {
    let mut words = head.lines().next()?.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return None };
    let url = Url::parse(&format!("http://localhost{target}")).ok()?;
    let value = |key: &str| url.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned());
    if url.path() != "/" || value("state")? != state {
        return None;
    }
    match (value("code"), value("error")) {
        (Some(code), None) => Some(Ok(code)),
        (_, Some(error)) => {
            let more = value("error_description").map(|text| format!(" ({text})")).unwrap_or_default();
            Some(Err(anyhow::anyhow!("the provider refuses the login: {error}{more}")))
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_our_login_counts() {
        let get = |target: &str| parse(&format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"), "ours");
        assert_eq!(get("/?code=a%2Fb&state=ours").unwrap().unwrap(), "a/b");
        assert!(get("/?code=a&state=theirs").is_none());
        assert!(get("/?code=a").is_none());
        assert!(get("/favicon.ico?state=ours&code=a").is_none());
        assert!(get("/?state=ours").is_none());
        assert!(parse("POST /?code=a&state=ours HTTP/1.1\r\n\r\n", "ours").is_none());
        assert!(parse("", "ours").is_none());
    }

    #[test]
    fn a_refusal_is_told_in_the_providers_words() {
        let answer = parse("GET /?error=access_denied&error_description=not+you&state=s HTTP/1.1\r\n\r\n", "s");
        assert_eq!(answer.unwrap().unwrap_err().to_string(), "the provider refuses the login: access_denied (not you)");
    }

    #[tokio::test]
    async fn strangers_and_silent_connections_hold_nothing_up() {
        let door = Door::open().await.unwrap();
        let port = door.port;
        let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let visitor = tokio::spawn(async move {
            let mut pages = Vec::new();
            for target in ["/favicon.ico", "/?code=x&state=wrong", "/?code=right&state=s"] {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
                let mut page = String::new();
                stream.read_to_string(&mut page).await.unwrap();
                pages.push(page.lines().next().unwrap().to_owned());
            }
            pages
        });
        assert_eq!(door.answer("s").await.unwrap(), "right");
        assert_eq!(visitor.await.unwrap(), ["HTTP/1.1 404 Not Found", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK"]);
    }

    #[tokio::test]
    async fn two_logins_at_once_have_two_doors() {
        let (one, two) = (Door::open().await.unwrap(), Door::open().await.unwrap());
        assert_ne!(one.port, two.port);
    }
}
