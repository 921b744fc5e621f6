//! Asks the sidecars of load balancers what their HAProxy serves.

use std::{collections::BTreeMap, future::Future, net::SocketAddr, pin::Pin, time::Duration};

use plan_sip::services::Report;
use serde::Deserialize;

/// How long a sidecar may take to answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// An answer to come.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Option<Report>> + Send + 'a>>;

/// How a sidecar is asked; a test has its own.
pub trait Ask: Send + Sync {
    /// What the pod of this name reports at its address; `None` where it cannot be asked.
    fn ask<'a>(&'a self, namespace: &'a str, pod: &'a str, address: SocketAddr) -> Answer<'a>;
}

/// Asks over HTTP at the pod's own address.
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

impl Ask for OverHttp {
    fn ask<'a>(&'a self, _: &'a str, _: &'a str, address: SocketAddr) -> Answer<'a> {
        Box::pin(async move { tokio::time::timeout(DEADLINE, get(address)).await.ok()? })
    }
}

/// One HTTP/1.0 request by hand: a whole client for one fixed `GET` to a pod would cost more than it does.
async fn get(address: SocketAddr) -> Option<Report> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const ANSWER_MAX: u64 = 256 * 1024;
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    stream.write_all(b"GET /status HTTP/1.0\r\nConnection: close\r\n\r\n").await.ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await.ok()?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> Option<Report> {
    let text = std::str::from_utf8(answer).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    if head.split(' ').nth(1)? != "200" {
        return None;
    }
    let Status { serving, candidate, refused, leaving } = serde_json::from_str(body).ok()?;
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
        let report = parse(good).expect("a report");
        assert_eq!((report.serving.as_str(), report.leaving["n1"], report.leaving.get("n2")), ("abc", 2, None));
        assert_eq!(parse(b"HTTP/1.0 503 Service Unavailable\r\n\r\n{}"), None);
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\n\r\nrubbish"), None);
        assert_eq!(parse(b"\xff"), None);
    }
}
