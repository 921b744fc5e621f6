//! `host` as people call it, against BMCs on loopback.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bmc;

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use bmc::{Bmc, Nature};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpListener, process::Command};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A jump host: the mounted files.
struct JumpHost {
    dir: PathBuf,
}

/// What a call printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    out: String,
    err: String,
    code: i32,
}

impl JumpHost {
    fn with(hosts: &Value) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("slipway-host-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("hosts"), hosts.to_string()).unwrap();
        JumpHost { dir }
    }

    fn trusting(self, certificate: &str) -> Self {
        fs::write(self.dir.join("ca.crt"), certificate).unwrap();
        self
    }

    async fn host(&self, arguments: &[&str]) -> Said {
        self.host_with(arguments, &[]).await
    }

    async fn host_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_host"));
        for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SIP_BMC_PROXY"] {
            command.env_remove(name);
        }
        command.args(arguments).env("SIP_HOSTS", self.dir.join("hosts")).env("SIP_BMC_CA", self.dir.join("ca.crt"));
        let output = command.envs(environment.iter().copied()).output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
    }
}

impl Drop for JumpHost {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn host(name: &str, address: &str, password: &str) -> Value {
    json!({ "name": name, "bmc": { "ip": "", "address": address, "username": "root", "password": password } })
}

fn system(bmc: &Bmc) -> String {
    format!("redfish+https://{}/redfish/v1/Systems/1", bmc.address)
}

#[tokio::test]
async fn list_prints_one_name_per_line() {
    let jump = JumpHost::with(&json!([host("b", "", ""), host("a", "", "")]));
    assert_eq!(jump.host(&["list"]).await, Said { out: "b\na\n".to_owned(), err: String::new(), code: 0 });
}

#[tokio::test]
async fn wrong_use_is_exit_code_1_with_usage() {
    let jump = JumpHost::with(&json!([]));
    for arguments in [&[][..], &["reboot"], &["dance"]] {
        let said = jump.host(arguments).await;
        assert!(said.code == 1 && said.err.contains("Usage: host"), "{arguments:?}: {said:?}");
    }
    let said = jump.host(&["reboot", "nobody"]).await;
    assert_eq!((said.code, said.err.as_str()), (1, "host: no host is called nobody; `host list` prints the names\n"));
}

#[tokio::test]
async fn reboot_is_graceful_and_speaks_of_it() {
    let bmc = Bmc::start(LOCALHOST, Nature::default()).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw")]));
    let said = jump.host(&["reboot", "a"]).await;
    let url = format!("https://{}/redfish/v1/Systems/1", bmc.address);
    let out = format!("a: {url} is On\na: GracefulRestart accepted\n");
    assert_eq!(said, Said { out, err: String::new(), code: 0 });
    assert_eq!(bmc.resets(), ["GracefulRestart"]);
}

#[tokio::test]
async fn what_the_bmc_does_not_allow_is_not_sent() {
    let bmc = Bmc::start(LOCALHOST, Nature { allowable: None, ..Nature::default() }).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw")]));
    assert_eq!(jump.host(&["reboot", "a"]).await.code, 0);
    let said = jump.host(&["off", "a"]).await;
    let why = "host: a: the BMC allows none of GracefulShutdown (it allows ForceRestart, On)";
    assert!(said.code == 1 && said.err.starts_with(why), "{said:?}");
    assert_eq!(bmc.resets(), ["ForceRestart"], "ActionInfo names no graceful restart");
}

#[tokio::test]
async fn off_says_that_metal3_switches_the_host_on_again() {
    let bmc = Bmc::start(LOCALHOST, Nature::default()).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw")]));
    let said = jump.host(&["off", "a"]).await;
    assert!(said.code == 0 && said.out.contains("Metal3") && said.out.contains("online: true"), "{said:?}");
    assert_eq!(jump.host(&["off", "--force", "a"]).await.code, 0);
    assert_eq!(bmc.resets(), ["GracefulShutdown", "ForceOff"]);
}

#[tokio::test]
async fn status_is_a_table_in_which_a_silent_bmc_has_its_line() {
    let bmc = Bmc::start(LOCALHOST, Nature::default()).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let dead = format!("redfish://{gone}/redfish/v1/Systems/1");
    let jump = JumpHost::with(&json!([host("node-1", &system(&bmc), "pw"), host("n2", &dead, "pw")]));
    let said = jump.host(&["status"]).await;
    assert_eq!(said.out, "NAME    POWER       HEALTH\nnode-1  On          OK\nn2      ?           ?\n");
    assert!(said.code == 1 && said.err.contains("n2") && said.err.contains("does not answer"), "{said:?}");
    let said = jump.host(&["status", "node-1"]).await;
    assert_eq!((said.out.as_str(), said.code), ("NAME    POWER       HEALTH\nnode-1  On          OK\n", 0));
}

#[rstest]
#[case::spaces("two words ")]
#[case::quotes(r#"'single' "double" `back`"#)]
#[case::glob("*?[a-z]$HOME")]
#[case::backslash(r"back\slash\n")]
#[case::other_scripts("pässwörd €")]
#[tokio::test]
async fn any_password_works(#[case] password: &str) {
    let bmc = Bmc::start(LOCALHOST, Nature { password: password.to_owned(), ..Nature::default() }).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), password)]));
    assert_eq!(jump.host(&["reboot", "a"]).await.code, 0);
    assert_eq!(bmc.resets(), ["GracefulRestart"]);
}

#[tokio::test]
async fn a_refusal_is_shown_with_status_and_message_and_without_the_login() {
    let refuses = Nature { refuses: Some("A reset is in progress."), ..Nature::default() };
    let bmc = Bmc::start(LOCALHOST, refuses).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw"), host("b", &system(&bmc), "wrong-secret")]));
    let said = jump.host(&["reboot", "a"]).await;
    assert!(said.code == 1 && said.err.contains("409 Conflict: A reset is in progress."), "{said:?}");
    let said = jump.host(&["reboot", "b"]).await;
    assert!(said.code == 1 && said.err.contains("401 Unauthorized: The login is wrong."), "{said:?}");
    assert!(!format!("{said:?}").contains("wrong-secret"));
}

#[tokio::test]
async fn an_address_without_a_path_finds_the_only_system() {
    let one = Bmc::start(IpAddr::V6(Ipv6Addr::LOCALHOST), Nature::default()).await;
    let two = Bmc::start(LOCALHOST, Nature { systems: vec!["1", "2"], ..Nature::default() }).await;
    let original =
        json!({ "name": "a", "bmc": { "ip": one.address.to_string(), "username": "root", "password": "pw" } });
    let jump = JumpHost::with(&json!([original, host("b", &format!("redfish://{}", two.address), "pw")]));
    assert_eq!(jump.host(&["reboot", "a"]).await.code, 0);
    assert_eq!(one.resets(), ["GracefulRestart"]);
    let said = jump.host(&["reboot", "b"]).await;
    let names = "must name one of /redfish/v1/Systems/1, /redfish/v1/Systems/2";
    assert!(said.code == 1 && said.err.contains(names), "{said:?}");
}

#[tokio::test]
async fn certificates_are_verified_where_the_host_asks_for_it() {
    let bmc = Bmc::start(LOCALHOST, Nature::default()).await;
    let mut entry = host("a", &system(&bmc), "pw");
    entry["bmc"]["disableCertificateVerification"] = json!(false);
    let jump = JumpHost::with(&json!([entry]));
    let said = jump.host(&["status"]).await;
    assert!(said.code == 1 && said.err.contains("does not answer"), "an unknown certificate was accepted: {said:?}");
    let jump = jump.trusting(&bmc.certificate);
    assert_eq!(jump.host(&["status"]).await.code, 0);
}

#[tokio::test]
async fn the_login_is_sent_to_no_other_place() {
    let other = Bmc::start(LOCALHOST, Nature::default()).await;
    let target = format!("https://{}/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", other.address);
    let bmc = Bmc::start(LOCALHOST, Nature { target, ..Nature::default() }).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw")]));
    let said = jump.host(&["reboot", "a"]).await;
    assert!(said.code == 1 && said.err.contains("refers to another place"), "{said:?}");
    assert_eq!(other.resets(), Vec::<String>::new());
}

#[tokio::test]
async fn a_host_without_login_says_how_to_expose_it() {
    let jump = JumpHost::with(&json!([{ "name": "a", "bmc": { "ip": "127.0.0.1" } }]));
    let said = jump.host(&["reboot", "a"]).await;
    assert!(said.code == 1 && said.err.contains("bmc.expose"), "{said:?}");
}

#[tokio::test]
async fn a_proxy_is_used_only_when_asked_for() {
    let bmc = Bmc::start(LOCALHOST, Nature::default()).await;
    let jump = JumpHost::with(&json!([host("a", &system(&bmc), "pw")]));
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy_url = format!("http://{}", proxy.local_addr().unwrap());
    let environment = [("HTTPS_PROXY", proxy_url.as_str())];
    assert_eq!(jump.host_with(&["status"], &environment).await.code, 0, "the proxy, which is silent, was used");

    let first_line = tokio::spawn(async move {
        let (mut socket, _) = proxy.accept().await.unwrap();
        let mut request = [0; 256];
        let length = socket.read(&mut request).await.unwrap();
        String::from_utf8_lossy(&request[..length]).lines().next().unwrap_or_default().to_owned()
    });
    let asked = [environment[0], ("SIP_BMC_PROXY", "true")];
    assert_eq!(jump.host_with(&["status"], &asked).await.code, 1, "that proxy hangs up");
    assert_eq!(first_line.await.unwrap(), format!("CONNECT {} HTTP/1.1", bmc.address));
}

#[tokio::test]
async fn a_broken_file_is_reported_without_its_content() {
    let jump = JumpHost::with(&json!([{ "name": "a", "bmc": { "password": ["hunter2"] } }]));
    let said = jump.host(&["list"]).await;
    assert!(said.code == 1 && said.err.contains("is not a list of hosts (line 1"), "{said:?}");
    assert!(!said.err.contains("hunter2"));
}
