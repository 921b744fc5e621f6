//! The hosts' BMCs: OpenStack's Redfish emulator with its fake driver, one system per host, behind TLS and a login.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    cluster::says,
    config::{BMC_LOGIN, BMC_PORT, HOSTS, NODE_IP, SUSHY_TOOLS, state},
    context::Cx,
    files, http,
    packages::system_python,
    process::Service,
    step::{Step, command},
};

/// The authority that signed the BMCs' certificate.
pub fn ca() -> PathBuf {
    state("bmc/ca.crt")
}

/// Makes the BMCs answer.
pub fn up(cx: &Cx) -> Result<()> {
    install(cx)?;
    cx.steps.run("BMCs", |step| {
        certificate(step)?;
        let config = config(cx, step)?;
        let python = cx.cache.join("venv/bin/python");
        let mut service = Service::new("bmc", &python, cx.steps.logs());
        service.args =
            ["-m", "sushy_tools.emulator.main", "--config", &config.to_string_lossy()].map(str::to_owned).into();
        service.inputs = vec![config, state("bmc/tls.crt"), state("bmc/htpasswd")];
        // TLS is seen from here as a server that takes the connection; what it says is for the tests.
        let outcome = service.ensure(step, Duration::from_secs(30), || http::listens(NODE_IP, BMC_PORT))?;
        Ok(format!("{} at https://{NODE_IP}:{BMC_PORT}/redfish/v1", says(outcome)))
    })
}

/// The emulator from PyPI, in a Python environment of our own.
pub fn install(cx: &Cx) -> Result<()> {
    let venv = cx.cache.join("venv");
    let stamp = venv.join("slipway-stamp");
    let want = format!("sushy-tools=={SUSHY_TOOLS}");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == want) {
        return Ok(());
    }
    cx.steps.run("BMC emulator", |step| {
        step.run(command(system_python(), ["-m", "venv", "--clear"]).arg(&venv))?;
        step.run(
            command(venv.join("bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(&want),
        )?;
        files::write(&stamp, &want)?;
        Ok(format!("installed {want} from PyPI"))
    })
}

fn certificate(step: &Step) -> Result<()> {
    let (cert, key) = (state("bmc/tls.crt"), state("bmc/tls.key"));
    let (ca_cert, ca_key) = (ca(), state("bmc/ca.key"));
    if cert.exists() {
        return Ok(());
    }
    fs::create_dir_all(state("bmc"))?;
    let new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650"];
    let authority =
        ["-subj", "/CN=slipway local stack BMC authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
    step.run(command("openssl", new).args(authority).arg("-keyout").arg(&ca_key).arg("-out").arg(&ca_cert))?;
    let san = format!("subjectAltName=IP:{NODE_IP}");
    let leaf =
        ["-subj", "/CN=slipway local stack BMC", "-addext", &san, "-addext", "basicConstraints=critical,CA:FALSE"];
    let mut openssl = command("openssl", new);
    openssl.args(leaf).arg("-CA").arg(&ca_cert).arg("-CAkey").arg(&ca_key);
    step.run(openssl.arg("-keyout").arg(&key).arg("-out").arg(&cert))
}

fn config(cx: &Cx, step: &Step) -> Result<PathBuf> {
    let (user, password) = BMC_LOGIN;
    let htpasswd = state("bmc/htpasswd");
    if !htpasswd.exists() {
        let script = "import bcrypt, sys; print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(6)).decode())";
        let hash = step.feed(command(cx.cache.join("venv/bin/python"), ["-c", script]).current_dir("/"), password)?;
        files::write_private(&htpasswd, &format!("{user}:{}\n", hash.trim()))?;
    }
    fs::create_dir_all(state("bmc/systems")).context("cannot make the emulator's folder")?;
    let systems: Vec<_> = HOSTS
        .iter()
        .map(|host| {
            json!({
                "uuid": host.system(),
                "name": host.name,
                "power_state": "On",
                "nics": [{ "mac": host.mac(), "ip": host.address() }],
            })
        })
        .collect();
    // The file is Python: literals of JSON that are not Python's (true, null) must not occur in it.
    let text = format!(
        "SUSHY_EMULATOR_LISTEN_IP = '{NODE_IP}'\n\
         SUSHY_EMULATOR_LISTEN_PORT = {BMC_PORT}\n\
         SUSHY_EMULATOR_SSL_CERT = '{cert}'\n\
         SUSHY_EMULATOR_SSL_KEY = '{key}'\n\
         SUSHY_EMULATOR_AUTH_FILE = '{htpasswd}'\n\
         SUSHY_EMULATOR_STATE_DIR = '{state}'\n\
         SUSHY_EMULATOR_FAKE_DRIVER = True\n\
         SUSHY_EMULATOR_FAKE_SYSTEMS = {systems}\n",
        cert = state("bmc/tls.crt").display(),
        key = state("bmc/tls.key").display(),
        htpasswd = htpasswd.display(),
        state = state("bmc/systems").display(),
        systems = serde_json::to_string_pretty(&systems)?,
    );
    let file = state("bmc/emulator.conf");
    files::write(&file, &text)?;
    Ok(file)
}
