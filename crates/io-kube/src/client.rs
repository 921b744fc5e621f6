//! The client of the API server: how it is found, how it is named there, and that it never resends a write.

use std::{
    path::PathBuf,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{Layer, Service, limit::ConcurrencyLimitLayer, timeout::TimeoutLayer};

use crate::metrics::Metrics;

/// How the API server is reached.
#[derive(Clone, Default)]
pub struct Access {
    /// Kubeconfig to use; none: `KUBECONFIG`, the usual file, or, in a pod, its service account.
    pub kubeconfig: Option<PathBuf>,
    /// Requests in flight at most; none: 64.
    pub concurrency: Option<usize>,
    /// Counts the requests.
    pub metrics: Option<Metrics>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum NoClient {
    /// The kubeconfig, or the pod's service account, cannot be read.
    #[error("cannot find out how to reach the Kubernetes API: {0}")]
    Config(String),
    /// The client cannot be made of it.
    #[error("cannot make a client of the Kubernetes API: {0}")]
    Client(#[source] kube::Error),
}

/// How we name ourselves to the server.
const AGENT: &str = concat!("slipway/", env!("CARGO_PKG_VERSION"));

/// How long the server may take to begin an answer.
const ANSWER: Duration = Duration::from_mins(1);

/// Makes the client. It sends every request once: a write whose answer is lost must not be sent again by somebody who
/// does not know what it was decided on, and reads and watches are retried by who made them. The process must have
/// chosen its rustls crypto provider before.
pub async fn connect(access: Access) -> Result<Client, NoClient> {
    let mut config = match access.kubeconfig {
        None => Config::infer().await.map_err(|error| NoClient::Config(error.to_string()))?,
        Some(path) => {
            let said = |error: &dyn std::fmt::Display| NoClient::Config(format!("{}: {error}", path.display()));
            let kubeconfig = Kubeconfig::read_from(&path).map_err(|error| said(&error))?;
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
            config.map_err(|error| said(&error))?
        }
    };
    config.default_retry = false;
    config.headers.push((USER_AGENT, HeaderValue::from_static(AGENT)));
    let builder = ClientBuilder::try_from(config).map_err(NoClient::Client)?;
    Ok(builder
        .with_layer(&TimeoutLayer::new(ANSWER))
        .with_layer(&Counted(access.metrics.unwrap_or_default()))
        .with_layer(&ConcurrencyLimitLayer::new(access.concurrency.unwrap_or(64)))
        .build())
}

/// Counts requests by method and status.
#[derive(Clone)]
struct Counted(Metrics);

impl<S> Layer<S> for Counted {
    type Service = CountedService<S>;

    fn layer(&self, inner: S) -> CountedService<S> {
        CountedService { inner, metrics: self.0.clone() }
    }
}

struct CountedService<S> {
    inner: S,
    metrics: Metrics,
}

impl<S, B> Service<Request<Body>> for CountedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (metrics, method) = (self.metrics.clone(), request.method().clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            metrics.requested(&method, answer.as_ref().ok().map(Response::status));
            answer
        })
    }
}
