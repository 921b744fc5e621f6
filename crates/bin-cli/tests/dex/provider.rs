//! A real Dex on the loopback, with the configuration that a plan renders for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    SIPClusterSpec,
    sipcluster::{Auth, AuthConnector, Endpoints, SecretKey},
};
use base::Key;
use k8s_openapi::ByteString;
use plan_sip::services::{
    Facts, Installation, Kind, Owned, Referred, Seen, Step, Want,
    auth::certificate::{CA, CERTIFICATE, CertificateMeta, META, PRIVATE_KEY},
    plan,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::{Certificate, Client};
use tempfile::TempDir;

/// bcrypt of `correct horse`, cost 10.
const HASH: &str = "$2b$10$abcdefghijklmnopqrstuu23JPZtHcGhwXSF41f93o/7vBdDut3Xu";
/// Password of the connector `staff`, with everything that Dex would like to expand.
pub const STAFF_PASSWORD: &str = r#"pa$$word $HOME ${PATH} "q" \ é"#;

/// Dex, stopped when it is dropped.
pub struct Dex {
    /// Its issuer's URL.
    pub issuer: String,
    /// CA of its certificate, PEM.
    pub ca: String,
    directory: TempDir,
    process: Option<Child>,
}

impl Dex {
    /// Plans, writes what the pod would mount, and starts it.
    pub async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
        let (ca, certificate, key) = pair();
        let config = rendered(port, &ca, &certificate, &key);
        let at = |name: &str| directory.path().join(name);
        for name in ["tls", "data"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        fs::write(at("tls").join("tls.crt"), &certificate).expect("the certificate");
        fs::write(at("tls").join("tls.key"), &key).expect("its key");
        // What differs from the pod: where the files are, and the port, which a Service maps there.
        let config = config
            .replace("/etc/dex/tls", &at("tls").display().to_string())
            .replace("/var/dex", &at("data").display().to_string())
            .replace("\":5556\"", &format!("\"127.0.0.1:{port}\""));
        fs::write(at("config.yaml"), config).expect("the configuration");
        std::os::unix::fs::symlink(web(), at("web")).expect("its pages");
        let mut dex = Self { issuer: format!("https://127.0.0.1:{port}/dex"), ca, directory, process: None };
        dex.run().await;
        dex
    }

    /// Starts it again with what is on its volume.
    pub async fn restart(&mut self) {
        self.stop();
        self.run().await;
    }

    /// Starts it again with nothing on its volume.
    pub async fn restart_empty(&mut self) {
        self.stop();
        fs::remove_file(self.directory.path().join("data/dex.db")).expect("its database");
        self.run().await;
    }

    /// A client that trusts it.
    pub fn http(&self) -> Client {
        let ca = Certificate::from_pem(self.ca.as_bytes()).expect("a certificate");
        Client::builder().tls_certs_only([ca]).no_proxy().build().expect("a client")
    }

    /// A place for the cache of one user.
    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    async fn run(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.log()).expect("a log");
        let process = Command::new(binary())
            .arg("serve")
            .arg(self.directory.path().join("config.yaml"))
            .current_dir(self.directory.path())
            .env("SLIPWAY_DOLLAR", "$")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Dex starts");
        self.process = Some(process);
        let http = self.http();
        let deadline = Instant::now() + Duration::from_secs(20);
        while http.get(format!("{}/healthz", self.issuer)).send().await.is_err() {
            let ended = self.process.as_mut().expect("just started").try_wait().expect("a state");
            assert!(ended.is_none() && Instant::now() < deadline, "Dex does not serve:\n{}", self.said());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it was running");
            process.wait().expect("it ends");
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// What it logged.
    pub fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }
}

impl Drop for Dex {
    fn drop(&mut self) {
        self.stop();
    }
}

fn binary() -> PathBuf {
    std::env::var_os("SLIPWAY_DEX").map(PathBuf::from).expect(
        "SLIPWAY_DEX must name a Dex binary: `make up` builds target/dev/bin/dex, with its pages in target/dev/dex-web",
    )
}

/// Its pages: `$SLIPWAY_DEX_WEB`, else where they are built to, in `dex-web` beside the folder of the binary.
fn web() -> PathBuf {
    let built = || binary().parent().and_then(Path::parent).map(|dev| dev.join("dex-web"));
    let web = std::env::var_os("SLIPWAY_DEX_WEB").map(PathBuf::from).or_else(built).expect("a folder");
    assert!(
        web.join("templates").is_dir(),
        "{} has no templates: SLIPWAY_DEX_WEB must name Dex's folder web",
        web.display()
    );
    fs::canonicalize(web).expect("a folder")
}

/// A CA, and a certificate of it for this machine: three PEM texts, CA, certificate and its key.
fn pair() -> (String, String, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "test CA");
    let ca = params.self_signed(&key).expect("a CA").pem();
    let issuer = Issuer::new(params, key);
    let leaf_key = KeyPair::generate().expect("a key");
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let leaf = CertificateParams::new(names).expect("names").signed_by(&leaf_key, &issuer).expect("a certificate");
    (ca, leaf.pem(), leaf_key.serialize_pem())
}

/// `config.yaml` as a plan renders it for a provider at this port.
fn rendered(port: u16, ca: &str, certificate: &str, key: &str) -> String {
    let mut entry = Auth {
        node_port: i32::from(port),
        passwords_secret: Some("users".to_owned()),
        connectors: vec![AuthConnector {
            kind: "mockPassword".to_owned(),
            id: "staff".to_owned(),
            name: "Staff: \u{201c}all\u{201d} \u{2028}".to_owned(),
            config_secret: SecretKey { name: "staff".to_owned(), key: "config".to_owned() },
        }],
        ..Auth::default()
    };
    entry.common.cluster_ip = Some("127.0.0.1".to_owned());
    let mut spec = SIPClusterSpec::default();
    spec.services.auth.push(entry);
    let installation = Installation { dex_image: "dex".to_owned(), ..Installation::default() };
    let want = Want {
        owner: Key::new("tenants", "blue"),
        owner_uid: "uid".to_owned(),
        spec: &spec,
        backends: Vec::new(),
        installation: &installation,
        gone: false,
    };
    let data = |entries: &[(&str, &str)]| -> BTreeMap<String, Arc<[u8]>> {
        entries.iter().map(|(key, text)| ((*key).to_owned(), Arc::from(text.as_bytes()))).collect()
    };
    let owned = |facts: Facts| Owned {
        owner_name: Some("blue".to_owned()),
        owner_uid: Some("uid".to_owned()),
        facts,
        ..Owned::default()
    };
    let staff = format!("username: staff\npassword: {}\n", serde_json::to_string(STAFF_PASSWORD).expect("a text"));
    let mut seen = Seen {
        referred: BTreeMap::from([
            ("users".to_owned(), Referred { data: data(&[("users", &format!("ann@example.org:{HASH}\n"))]) }),
            ("staff".to_owned(), Referred { data: data(&[("config", &staff)]) }),
        ]),
        ..Seen::default()
    };
    let service = Facts::Service { cluster_ip: String::new(), node_ports: vec![i32::from(port)], ingress: None };
    seen.objects.insert((Kind::Service, "auth-blue".to_owned()), owned(service));
    seen.published = Some(Endpoints { auth: plan(&want, &seen).endpoints.auth, ..Endpoints::default() });
    let names: BTreeSet<String> = plan(&want, &seen)
        .steps
        .iter()
        .find_map(|step| match step {
            Step::MakeCertificate { names, .. } => Some(names.clone()),
            _ => None,
        })
        .expect("a certificate is asked for");
    let meta = CertificateMeta { not_before: 0, not_after: 1000, names, ca_secret: None };
    let meta = serde_json::to_string(&meta).expect("JSON");
    let secret = data(&[(CERTIFICATE, certificate), (PRIVATE_KEY, key), (CA, ca), (META, &meta)]);
    seen.objects.insert((Kind::Secret, "auth-blue-tls".to_owned()), owned(Facts::Secret { data: secret }));
    let plan = plan(&want, &seen);
    assert_eq!(plan.problems.iter().filter(|problem| !problem.waiting).count(), 0, "{:?}", plan.problems);
    let config = plan.steps.iter().find_map(|step| match step {
        Step::Create(object) if object.name == "auth-blue-config" => Some(object.body["data"]["config.yaml"].clone()),
        _ => None,
    });
    let bytes: ByteString = serde_json::from_value(config.expect("the configuration is made")).expect("base64");
    String::from_utf8(bytes.0).expect("text")
}
