//! Shows that proxies and extra authorities are honoured: all kinds of downloads, from a namespace with nothing but a proxy.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    config::{SUSHY_TOOLS, run},
    context::Cx,
    egress::EXTRA_CA,
    http, net,
    packages::system_python,
    step::{Step, command},
};

/// The cable between the namespace and the proxy; nothing else leads out.
const INSIDE: &str = "172.22.254.2/30";
const PROXY: [u8; 4] = [172, 22, 254, 1];
const PORT: u16 = 3128;
const CABLE: &str = "swproxy";

/// What each download must have asked the proxy for: a host that only this kind of download needs.
const KINDS: [(&str, &[&str]); 4] = [
    ("Go modules", &["proxy.golang.org"]),
    ("Python packages", &["pypi.org", "files.pythonhosted.org"]),
    ("Rust crates", &["index.crates.io", "static.crates.io"]),
    ("Debian packages", &["deb.debian.org", "security.debian.org"]),
];

/// The namespace, the cable and the proxy; gone with the value.
struct Cell {
    dir: PathBuf,
    netns: PathBuf,
    proxy: Option<Child>,
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let Some(mut proxy) = self.proxy.take() {
            // It may have ended by itself.
            let _ = proxy.kill();
            let _ = proxy.wait();
        }
        for (program, args) in [("ip", vec!["link", "delete", CABLE]), ("umount", vec![&*self.netns.to_string_lossy()])]
        {
            let _ = Command::new(program).args(args).stderr(Stdio::null()).status();
        }
        let _ = fs::remove_file(&self.netns);
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Downloads of every kind through a proxy, then through one that opens TLS, and without one, where they must fail.
pub fn test(cx: &Cx) -> Result<()> {
    cx.steps.run("downloads through a proxy", |step| {
        let mut cell = Cell { dir: run("egress"), netns: run("netns/egress"), proxy: None };
        cell.make(step)?;
        step.note("without a proxy");
        if cell.probe(cx, step, "none", &[]).is_ok() {
            bail!("the namespace has a way out besides the proxy: what follows would show nothing");
        }
        let address = format!("http://{}:{PORT}", std::net::Ipv4Addr::from(PROXY));
        // In capitals only: apt reads the others.
        let variables = [("HTTP_PROXY", address.as_str()), ("HTTPS_PROXY", &address)];
        cell.start(cx, step, None)?;
        step.note("through a proxy");
        cell.probe(cx, step, "tunnel", &variables)?;
        cell.judge("tunnel")?;
        let authority = cell.authority(step)?;
        cell.start(cx, step, Some(&authority))?;
        step.note("through a proxy that opens TLS");
        let file = authority.join("ca.crt");
        let file = file.to_string_lossy();
        cell.probe(cx, step, "opened", &[&variables[..], &[(EXTRA_CA, &*file)]].concat())?;
        cell.judge("opened")?;
        Ok("modules, crates, Python and Debian packages, and with TLS opened by an authority of its own")
    })
}

/// Runs inside the namespace, in the environment that `egress::adopt` made: one download of each kind, into `dir`.
pub fn probe(cx: &Cx, dir: &Path) -> Result<()> {
    cx.steps.run("probe", |step| {
        fs::create_dir_all(dir.join("crate/src"))?;
        fs::write(dir.join("crate/src/lib.rs"), "")?;
        let manifest = "[package]\nname = \"probe\"\nedition = \"2024\"\n[dependencies]\nfnv = \"1\"\n[workspace]\n";
        fs::write(dir.join("crate/Cargo.toml"), manifest)?;
        let go = ["mod", "download", "-modcacherw", "go.uber.org/multierr"];
        step.run(
            command("go", go)
                .current_dir(cx.repo.join("dev/etcd"))
                .env("GOMODCACHE", dir.join("go"))
                .env("GOFLAGS", ""),
        )?;
        let pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--retries=0", "--dest"];
        let package = format!("sushy-tools=={SUSHY_TOOLS}");
        step.run(command(cx.cache.join("venv/bin/python"), pip).arg(dir).arg(package).env_remove("PIP_FIND_LINKS"))?;
        step.run(command("cargo", ["fetch"]).current_dir(dir.join("crate")).env("CARGO_HOME", dir.join("cargo")))?;
        step.run(command("apt-get", ["-q", "-o", "Acquire::Retries=0", "download", "hostname"]).current_dir(dir))?;
        Ok("done")
    })
}

impl Cell {
    fn make(&self, step: &Step) -> Result<()> {
        fs::create_dir_all(&self.dir)?;
        net::namespace(step, &self.netns)?;
        let inside = |line: &str| {
            let netns = format!("--net={}", self.netns.display());
            command("nsenter", [netns.as_str(), "ip"].into_iter().chain(line.split(' ')))
        };
        let host = format!("{}/30", std::net::Ipv4Addr::from(PROXY));
        let ends = ["link", "add", CABLE, "type", "veth", "peer", "name", "out", "netns"];
        step.run(command("ip", ends).arg(&self.netns))?;
        step.run(&mut command("ip", ["address", "add", &host, "dev", CABLE]))?;
        step.run(&mut command("ip", ["link", "set", CABLE, "up"]))?;
        step.run(&mut inside(&format!("address add {INSIDE} dev out")))?;
        step.run(&mut inside("link set out up"))?;
        step.run(&mut inside("link set lo up"))
    }

    fn seen(&self) -> PathBuf {
        self.dir.join("seen")
    }

    /// Starts the proxy in place of the one before.
    fn start(&mut self, cx: &Cx, step: &Step, authority: Option<&Path>) -> Result<()> {
        if let Some(mut before) = self.proxy.take() {
            before.kill()?;
            before.wait()?;
        }
        fs::write(self.seen(), "")?;
        let log = fs::File::create(self.dir.join("proxy.log"))?;
        let mut proxy = command("setpriv", ["--pdeathsig", "KILL"]);
        proxy.arg(system_python()).arg(cx.repo.join("dev/egress/proxy.py"));
        proxy.arg(std::net::Ipv4Addr::from(PROXY).to_string()).arg(PORT.to_string()).arg(self.seen()).args(authority);
        let child = proxy.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        self.proxy = Some(child.context("cannot start the proxy")?);
        step.wait("the proxy", Duration::from_secs(20), || Ok(http::listens(PROXY, PORT).then_some(())))
    }

    /// Runs this program's `egress-probe` inside, with no variable that could lead out but these.
    fn probe(&self, cx: &Cx, step: &Step, name: &str, variables: &[(&str, &str)]) -> Result<()> {
        let mut inside = command("nsenter", [format!("--net={}", self.netns.display())]);
        inside.arg(env::current_exe()?).arg("egress-probe").arg(self.dir.join(name)).current_dir(&cx.repo);
        for (set, _) in env::vars_os() {
            if set.to_string_lossy().to_lowercase().ends_with("_proxy") {
                inside.env_remove(set);
            }
        }
        step.run(inside.envs(variables.iter().copied()))
    }

    /// Fails unless every kind of download asked the proxy.
    fn judge(&self, name: &str) -> Result<()> {
        let text = fs::read_to_string(self.seen())?;
        let seen: BTreeSet<&str> = text.lines().collect();
        for (kind, hosts) in KINDS {
            if !hosts.iter().any(|host| seen.contains(host)) {
                bail!("{kind} came, but not through the proxy ({name}), which saw {seen:?}");
            }
        }
        Ok(())
    }

    fn authority(&self, step: &Step) -> Result<PathBuf> {
        let dir = self.dir.join("authority");
        fs::create_dir_all(&dir)?;
        let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
        let subject = ["-subj", "/CN=a proxy that opens TLS", "-addext", "keyUsage=critical,keyCertSign"];
        let (key, cert) = (dir.join("ca.key"), dir.join("ca.crt"));
        step.run(command("openssl", new).args(subject).arg("-keyout").arg(key).arg("-out").arg(cert))?;
        Ok(dir)
    }
}
