//! Asks what serves a tenant: the sidecars of load balancers what their HAProxy serves and finds, OIDC providers who they are.

use std::{collections::BTreeMap, future::Future, net::SocketAddr, pin::Pin, time::Duration};

use plan_sip::{
    outlook::{Question, ServerHealth},
    services::Report,
};
use serde::Deserialize;

use crate::discovery;

/// How long a sidecar may take to answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// An answer to come.
pub type Answer<'a, T = Report> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// How what serves a tenant is asked; a test has its own. What is not overridden cannot be asked.
pub trait Ask: Send + Sync {
    /// What the sidecar in the pod of this name reports at its address; `None` where it cannot be asked.
    fn ask<'a>(&'a self, namespace: &'a str, pod: &'a str, address: SocketAddr) -> Answer<'a>;

    /// What the checks of the HAProxy in this pod found; `None` where it cannot be asked.
    fn health<'a>(&'a self, _: &'a str, _: &'a str, _: SocketAddr) -> Answer<'a, Vec<ServerHealth>> {
        Box::pin(std::future::ready(None))
    }

    /// The issuer that an OIDC provider says it is, or why it does not say; `None` where it cannot be asked.
    fn issuer<'a>(&'a self, _: &'a Question) -> Answer<'a, Result<String, String>> {
        Box::pin(std::future::ready(None))
    }
}

/// Asks over HTTP: sidecars at the pod's own address, providers at that of their Service.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverHttp;

/// What `GET /status` of the sidecar answers (`contract::Status` of bin-lb), as much as is read of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    serving: Option<String>,
    #[serde(default)]
    candidate: Option<String>,
    #[serde(default)]
    refused: Vec<Refused>,
    #[serde(default)]
    leaving: Vec<Leaving>,
}

#[derive(Deserialize)]
struct Refused {
    sha: String,
    message: String,
}

#[derive(Deserialize)]
struct Leaving {
    name: String,
    #[serde(default)]
    sessions: Option<u64>,
    #[serde(default)]
    configured: bool,
}

/// What `GET /backends` of the sidecar answers (`contract::Backends` of bin-lb), as much as is read of it.
#[derive(Deserialize)]
struct Backends {
    backends: Vec<BackendState>,
}

#[derive(Deserialize)]
struct BackendState {
    server: String,
    #[serde(default)]
    up: Option<bool>,
    #[serde(default)]
    says: String,
}

impl Ask for OverHttp {
    fn ask<'a>(&'a self, _: &'a str, _: &'a str, address: SocketAddr) -> Answer<'a> {
        Box::pin(async move { report(&get(address, "/status").await?) })
    }

    fn health<'a>(&'a self, _: &'a str, _: &'a str, address: SocketAddr) -> Answer<'a, Vec<ServerHealth>> {
        Box::pin(async move { health(&get(address, "/backends").await?) })
    }

    fn issuer<'a>(&'a self, question: &'a Question) -> Answer<'a, Result<String, String>> {
        Box::pin(async move { Some(discovery::issuer(question).await) })
    }
}

async fn get(address: SocketAddr, path: &str) -> Option<Vec<u8>> {
    let talk = async {
        let stream = tokio::net::TcpStream::connect(address).await.ok()?;
        fetch(stream, &address.to_string(), path).await.ok()
    };
    tokio::time::timeout(DEADLINE, talk).await.ok()?
}

/// One HTTP/1.0 request by hand: a whole client for one fixed `GET` to a pod would cost more than it does.
pub(crate) async fn fetch<S>(mut stream: S, host: &str, path: &str) -> std::io::Result<Vec<u8>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const ANSWER_MAX: u64 = 256 * 1024;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(ANSWER_MAX).read_to_end(&mut answer).await {
        // A TLS peer that hangs up without a word has said what it had to say; whether that is whole, its reader finds.
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof || answer.is_empty() => Err(error),
        _ => Ok(answer),
    }
}

/// The body of a good answer; else its first line.
pub(crate) fn body(answer: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(answer).map_err(|_| "the answer is not text".to_owned())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or("the answer is not HTTP")?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") { Ok(body) } else { Err(status.to_owned()) }
}

fn health(answer: &[u8]) -> Option<Vec<ServerHealth>> {
    let Backends { backends } = serde_json::from_str(body(answer).ok()?).ok()?;
    let server = |BackendState { server, up, says }| ServerHealth { name: server, up, says };
    Some(backends.into_iter().map(server).collect())
}

fn report(answer: &[u8]) -> Option<Report> {
    let Status { serving, candidate, refused, leaving } = serde_json::from_str(body(answer).ok()?).ok()?;
    let refused = refused.into_iter().max_by_key(|r| Some(&r.sha) == candidate.as_ref()).map(|r| (r.sha, r.message));
    let mut left = BTreeMap::new();
    for Leaving { name, sessions, configured } in leaving {
        // Not told by some worker, or still in the configuration: not gone, so not in the report.
        let sessions = sessions.filter(|_| !configured);
        let known = left.entry(name).or_insert(Some(0));
        *known = known.zip(sessions).map(|(a, b): (u64, u64)| a.max(b));
    }
    let left = left.into_iter().filter_map(|(name, sessions)| Some((name, sessions?))).collect();
    Some(Report { serving: serving.unwrap_or_default(), refused, leaving: left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_is_a_report() {
        let good = b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n{\"serving\":\"abc\",\"leaving\":[{\"name\":\"n1\",\"sessions\":2},{\"name\":\"n2\",\"sessions\":null}]}";
        let report = report(good).expect("a report");
        assert_eq!((report.serving.as_str(), report.leaving["n1"], report.leaving.get("n2")), ("abc", 2, None));
        assert_eq!(super::report(b"HTTP/1.0 503 Service Unavailable\r\n\r\n{}"), None);
        assert_eq!(super::report(b"HTTP/1.0 200 OK\r\n\r\nrubbish"), None);
        assert_eq!(super::report(b"\xff"), None);
    }

    #[test]
    fn what_the_checks_found_is_read_and_an_old_sidecar_says_nothing() {
        let answer = b"HTTP/1.0 200 OK\r\n\r\n{\"backends\":[{\"backend\":\"b\",\"server\":\"n1\",\"up\":false,\"says\":\"refused\"}]}";
        let expected = ServerHealth { name: "n1".to_owned(), up: Some(false), says: "refused".to_owned() };
        assert_eq!(health(answer), Some(vec![expected]));
        assert_eq!(health(b"HTTP/1.0 404 Not Found\r\n\r\n"), None);
    }
}
