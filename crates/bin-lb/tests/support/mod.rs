//! A load balancer pod on loopback: a real HAProxy in master-worker mode, servers that stream, and the sidecar.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use axum::{body::Body, http::Request};
use http_body_util::BodyExt as _;
use slipway_lb::{
    config::checksum,
    contract::{BackendState, Backends, Leaving, Meta, Status, WorkerState},
    report::router,
    sidecar::Sidecar,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tower::ServiceExt as _;

/// A condition that has not come true after this long will not.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that greets with its name and then echoes.
pub struct Server {
    pub name: &'static str,
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts server `name` on `127.0.0.<host>`.
    pub async fn start(name: &'static str, host: u8) -> Self {
        let listener = TcpListener::bind((IpAddr::from([127, 0, 0, host]), 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = socket.split();
                    if write.write_all(format!("{name}\n").as_bytes()).await.is_ok() {
                        let _ = tokio::io::copy(&mut read, &mut write).await;
                    }
                });
            }
        });
        Server { name, address, task }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A connection of a client through the load balancer.
pub struct Client {
    socket: BufReader<TcpStream>,
    /// The server that greeted.
    pub server: String,
}

impl Client {
    /// Sends a line and takes it back: the connection lives.
    pub async fn alive(&mut self) -> bool {
        let line = b"ping\n";
        let mut echo = [0; 5];
        self.socket.get_mut().write_all(line).await.is_ok()
            && matches!(timeout(PATIENCE, self.socket.read_exact(&mut echo)).await, Ok(Ok(_)))
            && echo == *line
    }

    /// Waits for the end of the connection.
    pub async fn ended(mut self) -> bool {
        let mut rest = Vec::new();
        timeout(PATIENCE, self.socket.read_to_end(&mut rest)).await.is_ok()
    }
}

/// The pod.
pub struct Pod {
    dir: PathBuf,
    address: SocketAddr,
    haproxy: Option<Child>,
    pub sidecar: Sidecar,
    version: u32,
}

impl Pod {
    /// A pod whose Secret holds `meta` and configurations for the first time; HAProxy is started by the caller.
    pub fn new() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let (process, pod) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("slb-{process}-{pod}");
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("volume")).unwrap();
        fs::create_dir(dir.join("run")).unwrap();
        // An address of its own per process and pod, so that no two ever want the same port.
        let [.., high, low] = process.to_be_bytes();
        let address = SocketAddr::from(([127, 64 | (high & 0x3f), low, pod], 6443));
        let sidecar = Sidecar::new(dir.join("volume"), dir.join("run"));
        Pod { dir, address, haproxy: None, sidecar, version: 0 }
    }

    /// A configuration with these servers, like the ones that users' templates give.
    pub fn config(&self, servers: &[&Server]) -> String {
        let line = |server: &&Server| format!("  server {} {} check inter 200ms", server.name, server.address);
        let lines = servers.iter().map(line).collect::<Vec<_>>().join("\n");
        format!(
            "global\n  log stdout format raw local0 notice\n  daemon\n\
             defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 600s\n  timeout server 600s\n\
             frontend api\n  bind {}\n  default_backend api\n\
             backend api\n  balance roundrobin\n{lines}\n",
            self.address
        )
    }

    /// Replaces the volume as kubelet does: new directory, then one rename of the `..data` link.
    pub fn mount(&mut self, accepted: &str, candidate: Option<&str>, leaving: &[&Server]) {
        self.version += 1;
        let volume = self.dir.join("volume");
        let data = volume.join(format!("..v{}", self.version));
        fs::create_dir(&data).unwrap();
        let leaving = leaving
            .iter()
            .map(|server| Leaving { name: server.name.to_owned(), address: Some(server.address.ip().to_string()) });
        let meta =
            Meta { accepted: checksum(accepted), candidate: candidate.map(checksum), leaving: leaving.collect() };
        fs::write(data.join("haproxy.cfg"), accepted).unwrap();
        fs::write(data.join("meta.json"), serde_json::to_vec(&meta).unwrap()).unwrap();
        if let Some(candidate) = candidate {
            fs::write(data.join("candidate.cfg"), candidate).unwrap();
        }
        std::os::unix::fs::symlink(data.file_name().unwrap(), volume.join("..tmp")).unwrap();
        fs::rename(volume.join("..tmp"), volume.join("..data")).unwrap();
    }

    /// Starts HAProxy as the container does.
    pub fn start_haproxy(&mut self) {
        let run = self.dir.join("run");
        let program = std::env::var_os("SLIPWAY_TEST_HAPROXY").map_or_else(haproxy, PathBuf::from);
        let file = |name: &str| fs::File::options().create(true).append(true).open(run.join(name)).unwrap();
        let child = Command::new(&program)
            .args(["-W", "-db", "-S"])
            .arg(format!("{},mode,0660", run.join("master.sock").display()))
            .arg("-f")
            .arg(run.join("haproxy.cfg"))
            .stdin(Stdio::null())
            .stdout(file("log"))
            .stderr(file("errors"))
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.display()));
        self.haproxy = Some(child);
    }

    /// Kills HAProxy, as the kernel does when memory is short.
    pub async fn kill_haproxy(&mut self) {
        let mut child = self.haproxy.take().unwrap();
        child.kill().await.unwrap();
    }

    /// The sidecar begins anew, as after a restart of the node: what is in the shared directory is still there.
    pub fn restarted(&mut self) {
        let _ = fs::remove_file(self.dir.join("run/master.sock"));
        self.sidecar = Sidecar::new(self.dir.join("volume"), self.dir.join("run"));
    }

    /// The pod as it is after its first configuration was loaded.
    pub async fn serving(servers: &[&Server]) -> Self {
        let mut pod = Pod::new();
        let config = pod.config(servers);
        pod.mount(&config, None, &[]);
        pod.sidecar.init().unwrap();
        pod.start_haproxy();
        pod.until_serves(&config).await;
        pod
    }

    /// Turns until `what` holds, and returns the report that shows it.
    pub async fn until(&mut self, wish: &str, what: impl Fn(&Status) -> bool) -> Status {
        let mut last = Status::default();
        let turns = async {
            loop {
                last = self.sidecar.turn().await;
                if what(&last) {
                    return last.clone();
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        if let Ok(status) = timeout(PATIENCE, turns).await {
            return status;
        }
        let errors = fs::read_to_string(self.dir.join("run/errors")).unwrap_or_default();
        panic!("{wish} did not come true; last report {last:#?}\nHAProxy said:\n{errors}")
    }

    /// Turns until this configuration is served.
    pub async fn until_serves(&mut self, config: &str) -> Status {
        let sha = checksum(config);
        self.until("the configuration is served", |status| status.serving.as_deref() == Some(&sha)).await
    }

    /// Asks over HTTP, as the manager does, until the servers are as `expected`.
    pub async fn until_backends(&self, expected: &[(&str, Option<bool>)]) -> Vec<BackendState> {
        let mut last = String::new();
        let asked = async {
            loop {
                // A router of its own for each question: the answers of one are kept for a while.
                let processes = self.sidecar.master().processes().await.unwrap();
                let current = processes.workers[0].pid;
                let workers = vec![WorkerState { pid: current, serving: None, current: true }];
                let (_send, reports) = watch::channel((Instant::now(), Status { workers, ..Status::default() }));
                let request = Request::get("/backends").body(Body::empty()).unwrap();
                let answer = router(reports, self.sidecar.master()).oneshot(request).await.unwrap();
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                last = String::from_utf8_lossy(&body).into_owned();
                if let Ok(Backends { backends }) = serde_json::from_slice::<Backends>(&body) {
                    let found: Vec<_> = backends.iter().map(|state| (state.server.as_str(), state.up)).collect();
                    if found == expected {
                        return backends;
                    }
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        if let Ok(backends) = timeout(PATIENCE, asked).await {
            return backends;
        }
        panic!("the servers are not {expected:?} within {PATIENCE:?}: {last}")
    }

    /// Connects until `server` greets.
    pub async fn connect_to(&self, server: &str) -> Client {
        let connect = async {
            loop {
                if let Some(client) = self.connect().await
                    && client.server == server
                {
                    return client;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, connect).await.unwrap_or_else(|_| panic!("no connection to {server} within {PATIENCE:?}"))
    }

    /// One connection; none if it is refused or no server greets.
    pub async fn connect(&self) -> Option<Client> {
        let mut socket = BufReader::new(TcpStream::connect(self.address).await.ok()?);
        let mut server = String::new();
        let read = timeout(PATIENCE, socket.read_line(&mut server)).await.ok()?;
        (read.ok()? > 0).then(|| Client { socket, server: server.trim_end().to_owned() })
    }

    /// Changes one key of the mounted volume in place, as kubelet never does.
    pub fn tear(&self, key: &str, text: &str) {
        fs::write(self.dir.join("volume/..data").join(key), text).unwrap();
    }

    /// The file HAProxy would read at its next start.
    pub fn file(&self) -> String {
        fs::read_to_string(self.dir.join("run/haproxy.cfg")).unwrap()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Some(child) = &mut self.haproxy {
            let _ = child.start_kill();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// HAProxy where packages put it.
fn haproxy() -> PathBuf {
    let places = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"];
    let found = places.iter().map(Path::new).find(|path| path.exists());
    found
        .expect("these tests need HAProxy: install the package `haproxy`, or name the program in SLIPWAY_TEST_HAPROXY")
        .into()
}
