//! The local stack as the tests reach it: its programs, its files, what they answer, and waiting for it.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

/// The address of the base cluster's node, under which its node ports are.
pub const NODE: &str = "172.22.0.1";
/// State of the stack.
const STATE: &str = "/var/lib/slipway-dev";
/// How often a condition is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// The checkout.
pub fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A file of the stack's state.
pub fn state(path: &str) -> PathBuf {
    Path::new(STATE).join(path)
}

/// A program, with those of the stack before all others.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    // Where cargo puts `slipway`, and where the stack keeps kubectl.
    let built = env::var_os("CARGO_TARGET_DIR").map_or_else(|| repo().join("target"), PathBuf::from);
    let ours = [built.join("debug"), repo().join("target/debug"), repo().join("target/dev/bin")];
    let path = env::var_os("PATH").unwrap_or_default();
    let all: Vec<PathBuf> = ours.into_iter().chain(env::split_paths(&path)).collect();
    let mut command = Command::new(program);
    let kubeconfig = env::var_os("KUBECONFIG").unwrap_or_else(|| repo().join(".slipway/kubeconfig").into());
    command.env("PATH", env::join_paths(all).unwrap()).env("KUBECONFIG", kubeconfig).current_dir(repo());
    command
}

/// What a program said.
pub struct Answer {
    what: String,
    ok: bool,
    out: String,
    err: String,
}

impl Answer {
    /// Its output; panics unless it succeeded.
    pub fn success(self) -> String {
        assert!(self.ok, "`{}` failed: {}{}", self.what, self.out, self.err);
        self.out
    }

    /// What it complained of; panics unless it failed.
    pub fn refusal(self) -> String {
        assert!(!self.ok, "`{}` should have been refused, and said: {}", self.what, self.out);
        self.out + &self.err
    }

    /// Its output if it succeeded.
    pub fn ok(self) -> Option<String> {
        self.ok.then_some(self.out)
    }
}

/// Runs it to its end, with this as its input.
pub fn feed(command: &mut Command, input: &str) -> Answer {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let what = words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start `{what}`: {error}"));
    // A program that refuses before it has read everything is no error of ours.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Answer { what, ok: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Runs it to its end.
pub fn run(command: &mut Command) -> Answer {
    feed(command, "")
}

/// kubectl with this line, on the base cluster.
pub fn kubectl(line: &str) -> Answer {
    run(command("kubectl").args(line.split_whitespace()))
}

/// Objects of the base cluster, as kubectl shows them.
pub fn get(line: &str) -> Value {
    let text = kubectl(&format!("get {line} --output=json")).success();
    serde_json::from_str(&text).unwrap()
}

/// Creates an object in the base cluster.
pub fn create(object: &Value) -> Answer {
    feed(command("kubectl").args(["create", "--filename=-"]), &object.to_string())
}

/// Patches an object (`kind name --namespace=...`) of the base cluster with a merge patch.
pub fn patch(object: &str, patch: &Value) -> Answer {
    let mut kubectl = command("kubectl");
    kubectl.arg("patch").args(object.split_whitespace()).args(["--type=merge", "--patch", &patch.to_string()]);
    run(&mut kubectl)
}

/// kubectl with this line, on the tenant, as its own administrator, through the load balancer.
pub fn tenant_kubectl(line: &str) -> Command {
    let mut kubectl = command("kubectl");
    kubectl.arg("--kubeconfig").arg(state("tenant/edge/super-admin.conf"));
    kubectl.arg(format!("--server=https://{NODE}:30443")).args(line.split_whitespace());
    kubectl
}

/// Waits until the question has an answer; panics with what was waited for and what was seen last.
pub fn until<T>(what: &str, limit: Duration, mut question: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match question() {
            Ok(answer) => return answer,
            Err(seen) => assert!(began.elapsed() < limit, "not within {limit:?}: {what}; seen last: {seen}"),
        }
        thread::sleep(PERIOD);
    }
}

/// What is given back when a test ends, however it ends.
pub struct Restore<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Restore<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A folder that goes with the test.
pub struct Folder(PathBuf);

impl Folder {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("slipway-system-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file in it.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
