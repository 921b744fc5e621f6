//! The layer rule: which crate of the workspace may use which, and what the pure ones must not contain.

use std::{collections::BTreeMap, fmt, process::Command};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::context::Cx;

/// Crates that do I/O or need a runtime: nothing below the io layer may contain them.
const IMPURE: [&str; 6] = ["tokio", "hyper", "hyper-util", "kube-client", "kube-runtime", "reqwest"];

/// What a binary must never reach, however indirectly: the manager has no hands on machines.
const UNREACHABLE: [(&str, &[&str]); 1] = [("bin-manager", &["ctl-node", "io-libvirt", "io-redfish"])];

/// The rooms of the workspace, the lower before the higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Types and pure functions that everybody may use among the ground floor: `base`, `api`.
    Ground,
    /// The rest of the ground floor: `api-foreign`, `hypervisor`, `gotemplate`.
    Floor,
    /// Pure decisions.
    Plan,
    /// The world outside.
    Io,
    /// The loops.
    Ctl,
    /// Programs.
    Bin,
    /// Doubles for tests.
    Testkit,
    /// The build and the whole-system tests: outside of the house.
    Outside,
}

fn room(name: &str) -> Option<Room> {
    Some(match name {
        "base" | "api" => Room::Ground,
        "api-foreign" | "hypervisor" | "gotemplate" => Room::Floor,
        "testkit" => Room::Testkit,
        "xtask" | "system-tests" => Room::Outside,
        _ if name.starts_with("plan-") => Room::Plan,
        _ if name.starts_with("io-") => Room::Io,
        _ if name.starts_with("ctl-") => Room::Ctl,
        _ if name.starts_with("bin-") => Room::Bin,
        _ => return None,
    })
}

impl Room {
    fn may_use(self, other: Room) -> bool {
        use Room::{Bin, Ctl, Floor, Ground, Io, Outside, Plan, Testkit};
        match self {
            Ground | Floor => other == Ground,
            Plan | Io => matches!(other, Ground | Floor),
            Ctl | Testkit => matches!(other, Ground | Floor | Plan | Io),
            Bin => matches!(other, Ground | Floor | Plan | Io | Ctl),
            Outside => other != Outside,
        }
    }

    fn pure(self) -> bool {
        matches!(self, Room::Ground | Room::Floor | Room::Plan)
    }
}

/// An edge that must not be.
#[derive(Debug, PartialEq, Eq)]
struct Offence {
    from: String,
    to: String,
    why: &'static str,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}: {}", self.from, self.to, self.why)
    }
}

/// What the rule says of an edge between two crates of the workspace.
fn judge(from: &str, to: &str) -> Option<Offence> {
    let offence = |why| Some(Offence { from: from.to_owned(), to: to.to_owned(), why });
    let (Some(user), Some(used)) = (room(from), room(to)) else {
        return offence("one of them has no place in the layers: see CONTRIBUTING.md, \"Layers\"");
    };
    // base is below api.
    if (from, to) == ("base", "api") {
        return offence("base is the lowest of all");
    }
    if used == Room::Testkit && user != Room::Outside {
        return offence("testkit is for tests: make it a dev-dependency");
    }
    if user.may_use(used) {
        return None;
    }
    offence(match (user, used) {
        (Room::Plan, Room::Plan) => "one plan does not see another",
        (Room::Io, Room::Io) => "one io does not see another",
        (Room::Plan, Room::Io) | (Room::Io, Room::Plan) => "plan and io do not see each other",
        _ => "edges go bin -> ctl -> {plan, io} -> {api, api-foreign, hypervisor, gotemplate, base} and nowhere else",
    })
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for a normal dependency, else `dev` or `build`.
    kind: Option<String>,
    /// Set for a crate of the workspace.
    path: Option<String>,
}

/// Fails when an edge breaks the rule, naming all that do.
pub fn check(cx: &Cx) -> Result<()> {
    cx.steps.run("layers", |step| {
        let metadata = step.output(&mut cargo(cx, &["metadata", "--format-version=1", "--no-deps", "--locked"]))?;
        let Metadata { packages } = serde_json::from_str(&metadata).context("cargo metadata printed something else")?;
        let mut edges = 0;
        let mut offences = Vec::new();
        for package in &packages {
            if room(&package.name).is_none() {
                bail!(
                    "crate {} has no place in the layers: name it as CONTRIBUTING.md, \"Layers\", says",
                    package.name
                );
            }
            for dependency in &package.dependencies {
                if dependency.path.is_some() && dependency.kind.as_deref() != Some("dev") {
                    edges += 1;
                    offences.extend(judge(&package.name, &dependency.name));
                }
            }
        }
        for package in &packages {
            let args =
                ["tree", "--locked", "--edges=normal", "--prefix=depth", "--format= {p}", "--package", &package.name];
            let unreachable =
                UNREACHABLE.iter().filter(|(name, _)| *name == package.name).flat_map(|(_, crates)| *crates);
            let pure = room(&package.name).is_some_and(Room::pure);
            let banned: Vec<&str> = unreachable.chain(IMPURE.iter().filter(|_| pure)).copied().collect();
            if !banned.is_empty() {
                let tree = step.output(&mut cargo(cx, &args))?;
                offences.extend(contents(&tree, &banned));
            }
        }
        if offences.is_empty() {
            return Ok(format!("{} crates, {edges} edges between them, all downwards", packages.len()));
        }
        for offence in &offences {
            eprintln!("    {offence}");
        }
        bail!("{} edges break the layer rule", offences.len())
    })
}

fn cargo(cx: &Cx, args: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(&cx.repo);
    cargo
}

/// The edges of a dependency tree (`cargo tree --prefix=depth`) that lead to a banned crate, each once.
fn contents(tree: &str, banned: &[&str]) -> Vec<Offence> {
    let mut path: Vec<String> = Vec::new();
    let mut found = BTreeMap::new();
    for line in tree.lines() {
        let Some((depth, rest)) = line.split_once(' ') else { continue };
        let (Ok(depth), Some(name)) = (depth.parse::<usize>(), rest.split(' ').next()) else { continue };
        path.truncate(depth);
        path.push(name.to_owned());
        if banned.contains(&name) && depth > 0 {
            let from = format!("{} ({})", path[0], path[1..depth].join(" -> "));
            found.entry((path[0].clone(), name.to_owned())).or_insert(from);
        }
    }
    let why = "it must not be in there, not even through others";
    found.into_iter().map(|((_, to), from)| Offence { from: from.replace(" ()", ""), to, why }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_that_may_be() {
        for (from, to) in [
            ("bin-manager", "ctl-sip"),
            ("bin-cli", "plan-sip"),
            ("ctl-sip", "plan-sip"),
            ("ctl-sip", "io-kube"),
            ("plan-sip", "gotemplate"),
            ("plan-sip", "api"),
            ("io-kube", "base"),
            ("io-redfish", "hypervisor"),
            ("api", "base"),
            ("hypervisor", "base"),
            ("api-foreign", "api"),
            ("testkit", "api"),
            ("xtask", "testkit"),
            ("xtask", "bin-cli"),
        ] {
            assert_eq!(judge(from, to), None, "{from} -> {to}");
        }
    }

    #[test]
    fn edges_that_must_not_be() {
        for (from, to, why) in [
            ("plan-sip", "io-kube", "plan and io do not see each other"),
            ("io-kube", "plan-sip", "plan and io do not see each other"),
            ("plan-sip", "plan-vino", "one plan does not see another"),
            ("io-redfish", "io-libvirt", "one io does not see another"),
            ("base", "api", "base is the lowest of all"),
            ("plan-sip", "testkit", "testkit is for tests: make it a dev-dependency"),
            ("ctl-sip", "testkit", "testkit is for tests: make it a dev-dependency"),
        ] {
            assert_eq!(judge(from, to).map(|offence| offence.why), Some(why), "{from} -> {to}");
        }
        for (from, to) in [
            ("ctl-sip", "ctl-vino"),
            ("ctl-sip", "bin-manager"),
            ("bin-cli", "bin-manager"),
            ("api", "api-foreign"),
            ("gotemplate", "hypervisor"),
            ("plan-sip", "ctl-sip"),
            ("api", "xtask"),
            ("base", "helpers"),
        ] {
            assert!(judge(from, to).is_some(), "{from} -> {to}");
        }
    }

    #[test]
    fn a_runtime_deep_in_a_pure_crate_is_found_with_the_way_to_it() {
        let tree = "0 plan-sip v0.1.0 (/x)\n1 api v0.1.0\n2 kube v5.0.0\n3 kube-core v5.0.0\n3 kube-client v5.0.0\n4 tokio v1.0.0\n1 base v0.1.0\n";
        let said: Vec<String> = contents(tree, &IMPURE).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "plan-sip (api -> kube) -> kube-client: it must not be in there, not even through others",
                "plan-sip (api -> kube -> kube-client) -> tokio: it must not be in there, not even through others",
            ]
        );
    }

    #[test]
    fn a_pure_tree_is_clean() {
        assert_eq!(contents("0 base v0.1.0\n1 ipnet v2.0.0\n", &IMPURE), []);
    }
}
