//! A BMC for tests: Redfish over TLS on loopback, with basic authentication and one system.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{Method, StatusCode, header},
    response::{IntoResponse as _, Response},
    serve::Listener,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
    server::TlsStream,
};

/// What the BMC is like.
#[derive(Clone, Debug)]
pub struct Nature {
    pub password: String,
    pub power: &'static str,
    /// Systems under `/redfish/v1/Systems`.
    pub systems: Vec<&'static str>,
    /// The `ResetType@Redfish.AllowableValues`; none leaves them to an ActionInfo resource.
    pub allowable: Option<Vec<&'static str>>,
    /// Where the reset action is said to be.
    pub target: String,
    /// Answers resets with this message and status 409.
    pub refuses: Option<&'static str>,
}

impl Default for Nature {
    fn default() -> Self {
        Nature {
            password: "pw".to_owned(),
            power: "On",
            systems: vec!["1"],
            allowable: Some(vec!["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart"]),
            target: "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset".to_owned(),
            refuses: None,
        }
    }
}

/// The running BMC.
pub struct Bmc {
    pub address: SocketAddr,
    /// Its own certificate, which signs itself.
    pub certificate: String,
    resets: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone)]
struct Shared {
    nature: Nature,
    resets: Arc<Mutex<Vec<String>>>,
}

impl Bmc {
    /// Starts one on `ip`.
    pub async fn start(ip: IpAddr, nature: Nature) -> Self {
        let tcp = TcpListener::bind((ip, 0)).await.unwrap();
        let address = tcp.local_addr().unwrap();
        let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([ip.to_string()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let tls = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let resets = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { nature, resets: resets.clone() };
        let router = Router::new().fallback(answer).with_state(shared);
        let listener = Tls { tcp, acceptor: TlsAcceptor::from(Arc::new(tls)) };
        tokio::spawn(async move { axum::serve(listener, router).await });
        Bmc { address, certificate: cert.pem(), resets }
    }

    /// The resets it was asked for.
    pub fn resets(&self) -> Vec<String> {
        self.resets.lock().unwrap().clone()
    }
}

async fn answer(State(Shared { nature, resets }): State<Shared>, request: Request) -> Response {
    let login = format!("Basic {}", STANDARD.encode(format!("root:{}", nature.password)));
    if request.headers().get(header::AUTHORIZATION).is_none_or(|given| given.as_bytes() != login.as_bytes()) {
        return no(StatusCode::UNAUTHORIZED, "The login is wrong.");
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (method, path.as_str()) {
        (Method::GET, "/redfish/v1/Systems") => {
            let member = |id: &&str| json!({ "@odata.id": format!("/redfish/v1/Systems/{id}") });
            Json(json!({ "Members": nature.systems.iter().map(member).collect::<Vec<_>>() })).into_response()
        }
        (Method::GET, "/redfish/v1/Systems/1") => {
            let mut reset = json!({ "target": nature.target });
            match nature.allowable {
                Some(values) => reset["ResetType@Redfish.AllowableValues"] = json!(values),
                None => reset["@Redfish.ActionInfo"] = json!("/redfish/v1/Systems/1/ResetActionInfo"),
            }
            let system = json!({
                "PowerState": nature.power, "Status": { "Health": "OK" }, "Actions": { "#ComputerSystem.Reset": reset },
            });
            Json(system).into_response()
        }
        (Method::GET, "/redfish/v1/Systems/1/ResetActionInfo") => {
            Json(json!({ "Parameters": [{ "Name": "ResetType", "AllowableValues": ["On", "ForceRestart"] }] }))
                .into_response()
        }
        (Method::POST, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset") => {
            let body = axum::body::to_bytes(request.into_body(), 4096).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            if let Some(message) = nature.refuses {
                return no(StatusCode::CONFLICT, message);
            }
            resets.lock().unwrap().push(body["ResetType"].as_str().unwrap().to_owned());
            StatusCode::NO_CONTENT.into_response()
        }
        _ => no(StatusCode::NOT_FOUND, "There is no such resource."),
    }
}

fn no(status: StatusCode, message: &str) -> Response {
    let body = json!({ "error": { "code": "Base.1.8.GeneralError", "message": "See ExtendedInfo",
        "@Message.ExtendedInfo": [{ "MessageId": "Base.1.8.GeneralError", "Message": message }] } });
    (status, Json(body)).into_response()
}

/// TCP with TLS on top; a failed handshake is the client's affair.
struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((socket, from)) = self.tcp.accept().await else { continue };
            if let Ok(stream) = self.acceptor.accept(socket).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
