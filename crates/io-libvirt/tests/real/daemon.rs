//! A libvirtd of the test's own: in its own mount, network and process namespaces, gone with the test however that ends.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Emulated guests take whole processors: one test has the machine at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs as the first process of its namespaces; takes orders until its input ends, and everything ends with it. In bash, which
/// buries the guests that end: a plain shell would leave them for libvirt to wait for.
const INIT: &str = r#"
set -e
export PATH=/usr/local/sbin:/usr/sbin:/sbin:$PATH
mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
for dir in /etc/libvirt /var/lib/libvirt /var/log/libvirt /var/cache/libvirt; do
    mkdir -p "$LAB$dir"
    test -d "$dir" || { echo "there is no $dir: is libvirt installed?" >&2; exit 1; }
    mount --bind "$LAB$dir" "$dir"
done
# Guests in cgroups of this machine would be in the way of its own, and outlive their namespace.
umount --recursive --lazy /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/libvirt /var/log/libvirt/qemu /var/lib/libvirt/dnsmasq /etc/libvirt/qemu
cat > /etc/libvirt/libvirtd.conf <<END
unix_sock_dir = "$LAB"
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_rw_perms = "0700"
END
cat > /etc/libvirt/qemu.conf <<END
user = "root"
group = "root"
security_driver = "none"
remember_owner = 0
namespaces = []
END
virtlogd -d
start() { libvirtd -f /etc/libvirt/libvirtd.conf -p "$LAB/libvirtd.pid" >> "$LAB/libvirtd.log" 2>&1 & daemon=$!; }
start
while read -r order; do
    case $order in
        kill) kill -9 "$daemon"; wait "$daemon" || true; rm -f "$LAB/libvirtd.pid" ;;
        start) start ;;
    esac
done
"#;

/// A libvirtd, and the directory it keeps everything in.
pub struct Daemon {
    child: Child,
    orders: ChildStdin,
    directory: tempfile::TempDir,
    /// Given back last.
    _turn: MutexGuard<'static, ()>,
}

impl Daemon {
    /// One that answers.
    pub fn start() -> Self {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        virt::error::clear_error_callback();
        let directory = tempfile::Builder::new().prefix("slipway-libvirt-").tempdir().expect("a directory");
        let mut child = Command::new("unshare")
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", INIT])
            .env("LAB", directory.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let orders = child.stdin.take().expect("it is piped");
        let mut daemon = Self { child, orders, directory, _turn: turn };
        daemon.wait();
        daemon
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_mins(2);
        while virt::connect::Connect::open(Some(&self.uri())).is_err() {
            assert!(Instant::now() < deadline, "libvirtd does not answer");
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                panic!("libvirtd does not start: {status}");
            }
            // Looking is not free, and the machine has other things to do.
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The URI under which it answers.
    pub fn uri(&self) -> String {
        format!("qemu:///system?socket={}/libvirt-sock", self.path().display())
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where `path` of its namespace is outside.
    pub fn inside(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        writeln!(self.orders, "kill").expect("it takes orders");
    }

    /// Starts it again.
    pub fn come_back(&mut self) {
        writeln!(self.orders, "start").expect("it takes orders");
        self.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.path().join("libvirtd.log")).unwrap_or_default();
            eprintln!("libvirtd said:\n{log}");
        }
        // With the first process of its namespace everything in it ends, guests included.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
