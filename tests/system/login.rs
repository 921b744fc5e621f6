//! A person's login through Dex, and the tokens that the tenant's API server refuses.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    sip,
    stack::{Folder, NODE, Restore, command, feed, kubectl, repo, run, state, until},
};

/// The user of the example, and the password of examples/quickstart.yaml.
const USER: &str = "ada@example.org";
const PASSWORD: &str = "slipway-demo";

/// Lets the example's user list namespaces on the tenant, as its administrator would; taken back at the end.
fn rights() -> Restore<impl FnMut()> {
    let admin = |line: &str| {
        let mut kubectl = command("kubectl");
        run(kubectl.arg("--kubeconfig").arg(state("tenant/edge/super-admin.conf")).args(line.split_whitespace()))
    };
    // What a test that was killed left.
    admin("delete clusterrole,clusterrolebinding system-test-login --ignore-not-found").success();
    admin("create clusterrole system-test-login --verb=get,list --resource=namespaces").success();
    let restore = Restore(move || drop(admin("delete clusterrole,clusterrolebinding system-test-login")));
    admin(&format!("create clusterrolebinding system-test-login --clusterrole=system-test-login --user={USER}"))
        .success();
    restore
}

/// The user at the desk: a home of their own and the "browser".
fn desk(folder: &Folder, mut program: Command) -> Command {
    folder.file("login", USER);
    folder.file("password", PASSWORD);
    program.env("HOME", folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    program.env("SLIPWAY_TEST_FOLDER", folder.path()).env("BROWSER", repo().join("tests/system/login.sh"));
    program
}

/// The kubeconfig that `slipway kubeconfig` prints.
fn kubeconfig(folder: &Folder) -> std::path::PathBuf {
    let text = run(command("slipway").args(["kubeconfig", "tenant-a/edge"])).success();
    folder.file("kubeconfig", &text)
}

fn view(folder: &Folder, kubeconfig: &Path) -> Value {
    // kubectl may log in even for this: it asks the credential plugin of every configuration it loads.
    let mut kubectl = desk(folder, command("kubectl"));
    let words = ["config", "view", "--raw", "--output=json"];
    serde_json::from_str(&run(kubectl.arg("--kubeconfig").arg(kubeconfig).args(words)).success()).unwrap()
}

/// The token that `slipway token` gives to kubectl: the same cache, so no second login.
fn token(folder: &Folder, kubeconfig: &Value) -> String {
    let arguments = kubeconfig["users"][0]["user"]["exec"]["args"].as_array().unwrap();
    let mut slipway = desk(folder, command("slipway"));
    slipway.args(arguments.iter().map(|word| word.as_str().unwrap()));
    let credential: Value = serde_json::from_str(&run(&mut slipway).success()).unwrap();
    credential["status"]["token"].as_str().unwrap().to_owned()
}

/// What the tenant's API server says to the bearer of this token.
fn bearer(folder: &Folder, kubeconfig: &Value, token: &str) -> Result<String, String> {
    let mut with_token = kubeconfig.clone();
    with_token["users"][0]["user"] = json!({ "token": token });
    let file = folder.file("bearer", &with_token.to_string());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut kubectl = command("kubectl");
    let answer = run(kubectl.arg("--kubeconfig").arg(file).args(["get", "namespaces", "--output=name"]));
    match answer.ok() {
        Some(said) => Ok(said),
        None => Err(run(&mut kubectl).refusal()),
    }
}

/// These claims, signed by the very key of the tenant's Dex.
fn signed(claims: &Value) -> String {
    let mut python = command("python3");
    python.arg(repo().join("tests/system/sign_token.py")).arg(state("volumes/auth-edge/dex.db"));
    feed(&mut python, &claims.to_string()).success().trim().to_owned()
}

fn logged_in(folder: &Folder) -> Value {
    let file = kubeconfig(folder);
    let names = until("the login's rights are known to all API servers", Duration::from_secs(30), || {
        let mut kubectl = desk(folder, command("kubectl"));
        kubectl.arg("--kubeconfig").arg(&file).args(["get", "namespaces", "--output=name"]);
        run(&mut kubectl).ok().ok_or_else(|| run(&mut kubectl).refusal())
    });
    assert!(names.lines().any(|name| name == "namespace/kube-system"), "{names}");
    view(folder, &file)
}

#[test]
fn a_user_logs_in_through_dex_and_lists_namespaces() {
    sip::edge();
    let folder = Folder::new("login");
    let _rights = rights();
    let kubeconfig = logged_in(&folder);
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], format!("https://{NODE}:30443"));
    let token = token(&folder, &kubeconfig);
    bearer(&folder, &kubeconfig, &token).expect("the token of the login is good by itself");
}

#[test]
fn tokens_for_another_audience_expired_ones_and_those_of_strangers_are_refused() {
    sip::edge();
    let folder = Folder::new("tokens");
    let _rights = rights();
    let kubeconfig = logged_in(&folder);
    let good = token(&folder, &kubeconfig);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let claims = json!({
        "iss": format!("https://{NODE}:30556/dex"), "aud": "kubernetes", "sub": "system-test",
        "iat": now - 60, "exp": now + 600, "email": USER, "email_verified": true,
    });
    let with = |claim: &str, value: Value| {
        let mut changed = claims.clone();
        changed[claim] = value;
        signed(&changed)
    };
    // Signed by us with Dex's key and right in every claim: accepted, so what follows is refused for its one difference.
    bearer(&folder, &kubeconfig, &signed(&claims)).expect("the control is accepted");

    let refused = |what: &str, token: &str| {
        let said = bearer(&folder, &kubeconfig, token).expect_err(what);
        assert!(said.contains("Unauthorized") || said.contains("must be logged in"), "{what}: {said}");
    };
    // Dex gave it to another application of the same users.
    refused("another audience", &with("aud", json!("dashboard")));
    // Two hours old: a login ends.
    let mut old = claims.clone();
    old["iat"] = json!(now - 7200);
    old["exp"] = json!(now - 3600);
    refused("expired", &signed(&old));
    // The same claims from an issuer that the tenant does not know.
    refused("another issuer", &with("iss", json!(format!("https://{NODE}:30557/dex"))));
    // A user who calls themselves as Kubernetes calls its own.
    refused("a system name", &with("email", json!("system:admin")));
    // Whoever cannot sign: the good token with another signature, and with another person's claims under its signature.
    let parts: Vec<&str> = good.split('.').collect();
    let other = signed(&claims);
    let other: Vec<&str> = other.split('.').collect();
    refused("a stranger's signature", &format!("{}.{}.{}", parts[0], parts[1], other[2]));
    refused("claims that were not signed", &format!("{}.{}.{}", parts[0], other[1], parts[2]));
    // A good token of the base cluster opens no tenant.
    let base = kubectl("create token default --namespace=tenant-a").success();
    refused("a token of the base cluster", base.trim());
    // And the login is still good: none of the refusals was for another reason.
    bearer(&folder, &kubeconfig, &good).expect("the token of the login");
}
