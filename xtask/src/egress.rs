//! The way out: proxies and extra certificates, told to every program in the words it understands.
//!
//! Proxies come as usual, in `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, in capitals or not. More authorities than the
//! machine trusts, such as that of a proxy that opens TLS, come as a PEM file in `SLIPWAY_EXTRA_CA`.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow};

use crate::{
    config::{HOSTS_CIDR, POD_CIDR, SERVICE_CIDR, TENANT_SERVICE_CIDR},
    files,
};

/// The variable with extra authorities.
pub const EXTRA_CA: &str = "SLIPWAY_EXTRA_CA";

/// Variables that exist in capitals and not: some programs read one, some the other.
const SPELLINGS: [(&str, &str); 4] = [
    ("http_proxy", "HTTP_PROXY"),
    ("https_proxy", "HTTPS_PROXY"),
    ("all_proxy", "ALL_PROXY"),
    ("no_proxy", "NO_PROXY"),
];

/// What never is behind a proxy: the local stack itself.
const LOCAL: [&str; 6] = ["localhost", "127.0.0.1", HOSTS_CIDR, POD_CIDR, SERVICE_CIDR, TENANT_SERVICE_CIDR];

/// The variables by which programs take a bundle of authorities: OpenSSL and Go, Python's requests, pip, curl, git, cargo.
const BUNDLE: [&str; 6] =
    ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO"];

/// The authorities that Debian trusts.
const SYSTEM_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Starts this program anew if its environment lacks something that the programs it starts need.
pub fn adopt(cache: &Path) -> Result<()> {
    let now: BTreeMap<String, String> = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let bundle = now.get(EXTRA_CA).map(|extra| bundle(&now, Path::new(extra), cache)).transpose()?;
    let missing = missing(&now, bundle.as_deref());
    if missing.is_empty() {
        return Ok(());
    }
    let error = Command::new(env::current_exe()?).args(env::args_os().skip(1)).envs(missing).exec();
    Err(anyhow!(error).context("cannot start anew with the proxies' settings"))
}

/// Writes the machine's authorities and the extra ones into one file, and one for apt that names it.
fn bundle(now: &BTreeMap<String, String>, extra: &Path, cache: &Path) -> Result<PathBuf> {
    let file = cache.join("ca-bundle.pem");
    let own = file.to_string_lossy();
    // After the new start the variable names our own bundle.
    let system = now.get("SSL_CERT_FILE").filter(|named| *named != &*own).map_or(SYSTEM_BUNDLE, String::as_str);
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let extra_text = read(extra).with_context(|| format!("{EXTRA_CA} names authorities to trust"))?;
    // Debian's package may be missing on a fresh machine: then the extra ones are all there are.
    let trusted = fs::read_to_string(system).unwrap_or_default();
    files::write(&file, &format!("{}\n{extra_text}", trusted.trim_end()))?;
    files::write(&apt_config(&file), &format!("Acquire::https::CAInfo \"{own}\";\n"))?;
    Ok(file)
}

fn apt_config(bundle: &Path) -> PathBuf {
    bundle.with_file_name("apt.conf")
}

/// The variables to set so that every program finds the proxies and the authorities.
fn missing(now: &BTreeMap<String, String>, bundle: Option<&Path>) -> BTreeMap<String, String> {
    let mut want = BTreeMap::new();
    let value = |name: &str| now.get(name).filter(|value| !value.is_empty());
    for (small, capital) in SPELLINGS {
        if let Some(set) = value(small).or_else(|| value(capital)) {
            want.insert(small.to_owned(), set.clone());
            want.insert(capital.to_owned(), set.clone());
        }
    }
    if SPELLINGS[..3].iter().any(|(small, _)| want.contains_key(*small)) {
        let listed = want.get("no_proxy").cloned().unwrap_or_default();
        let mut hosts: Vec<&str> = listed.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
        hosts.extend(LOCAL.iter().filter(|local| !listed.split(',').any(|host| host.trim() == **local)));
        for name in ["no_proxy", "NO_PROXY"] {
            want.insert(name.to_owned(), hosts.join(","));
        }
    }
    if let Some(bundle) = bundle {
        let path = bundle.to_string_lossy().into_owned();
        want.extend(BUNDLE.map(|name| (name.to_owned(), path.clone())));
        want.insert("APT_CONFIG".into(), apt_config(bundle).to_string_lossy().into_owned());
    }
    want.retain(|name, value| now.get(name) != Some(value));
    want
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn without_a_proxy_nothing_is_set() {
        assert_eq!(missing(&environment(&[("PATH", "/bin"), ("HTTP_PROXY", "")]), None), environment(&[]));
    }

    #[test]
    fn a_proxy_in_capitals_is_told_in_small_too_and_the_stack_is_not_behind_it() {
        let now = environment(&[("HTTPS_PROXY", "http://proxy:3128"), ("no_proxy", "intranet, 127.0.0.1")]);
        let set = missing(&now, None);
        assert_eq!(set["https_proxy"], "http://proxy:3128");
        assert!(!set.contains_key("HTTPS_PROXY"), "it is so already");
        let around = "intranet,127.0.0.1,localhost,172.22.0.0/24,10.233.0.0/16,10.234.0.0/16,10.236.0.0/16";
        assert_eq!(set["NO_PROXY"], around);
        assert_eq!(set["no_proxy"], around);
    }

    #[test]
    fn the_second_start_needs_nothing_more() {
        let mut now = environment(&[("http_proxy", "http://proxy:3128"), (EXTRA_CA, "/ca.pem")]);
        let bundle = Some(Path::new("/cache/ca-bundle.pem"));
        let set = missing(&now, bundle);
        assert_eq!(set["APT_CONFIG"], "/cache/apt.conf");
        now.extend(set);
        assert_eq!(missing(&now, bundle), environment(&[]));
    }
}
