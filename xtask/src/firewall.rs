//! Packet filter rules: ours, and the removal of those that kube-proxy, kubelet and the CNI plugins made.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::{
    config::{HOSTS_BRIDGE, POD_BRIDGE},
    packages::which,
    step::{Step, command},
};

/// Our own chain at the head of FORWARD.
const FORWARD: &str = "SLIPWAY-FORWARD";
/// The first parts of the names of chains that the stack's programs make.
const PREFIXES: [&str; 3] = ["KUBE-", "CNI-", "SLIPWAY-"];
/// The programs of the two address families.
const FAMILIES: [&str; 2] = ["iptables", "ip6tables"];

/// Lets traffic of the stack's bridges pass where FORWARD drops by default, as Docker makes it.
pub fn open(step: &Step) -> Result<()> {
    let iptables = |args: &[&str]| command("iptables", [&["-w", "10"], args].concat());
    if step.output(&mut iptables(&["-n", "-L", FORWARD])).is_err() {
        step.run(&mut iptables(&["-N", FORWARD]))?;
    }
    for bridge in [HOSTS_BRIDGE, POD_BRIDGE] {
        for direction in ["-i", "-o"] {
            let rule = [FORWARD, direction, bridge, "-j", "ACCEPT"];
            if step.output(&mut iptables(&[&["-C"], &rule[..]].concat())).is_err() {
                step.run(&mut iptables(&[&["-A"], &rule[..]].concat()))?;
            }
        }
    }
    if step.output(&mut iptables(&["-C", "FORWARD", "-j", FORWARD])).is_err() {
        step.run(&mut iptables(&["-I", "FORWARD", "1", "-j", FORWARD]))?;
    }
    Ok(())
}

/// All chains with a name such as the stack's programs use, as `program table chain`.
pub fn chains(step: &Step) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (program, dump) in dumps(step) {
        for (table, rules) in tables(&dump) {
            all.extend(rules.chains.iter().map(|chain| format!("{program} {table} {chain}")));
        }
    }
    all
}

/// Removes the chains of the stack's programs and every rule that jumps to them, but not those in `keep`.
pub fn close(step: &Step, keep: &BTreeSet<String>) -> Result<usize> {
    let mut removed = 0;
    for (program, dump) in dumps(step) {
        let (script, count) = removal(program, &dump, keep);
        if count > 0 {
            step.feed(&mut command(format!("{program}-restore"), ["-w", "10", "--noflush"]), &script)?;
        }
        removed += count;
    }
    Ok(removed)
}

fn dumps(step: &Step) -> Vec<(&'static str, String)> {
    let mut dumps = Vec::new();
    for program in FAMILIES {
        let save = format!("{program}-save");
        if which(&save).is_some() {
            // A kernel without IPv6 has no ip6tables: then there is nothing of ours in it.
            dumps.push((program, step.output(&mut command(save, [""; 0])).unwrap_or_default()));
        }
    }
    dumps
}

#[derive(Default)]
struct Rules<'a> {
    chains: Vec<&'a str>,
    rules: Vec<&'a str>,
}

/// What `iptables-save` printed, by table: the chains with a name like ours, and all rules.
fn tables(dump: &str) -> BTreeMap<&str, Rules<'_>> {
    let mut tables: BTreeMap<&str, Rules<'_>> = BTreeMap::new();
    let mut table = "";
    for line in dump.lines() {
        if let Some(name) = line.strip_prefix('*') {
            table = name;
        } else if let Some(chain) = line.strip_prefix(':').and_then(|rest| rest.split(' ').next()) {
            if PREFIXES.iter().any(|prefix| chain.starts_with(prefix)) {
                tables.entry(table).or_default().chains.push(chain);
            }
        } else if line.starts_with("-A ") {
            tables.entry(table).or_default().rules.push(line);
        }
    }
    tables
}

/// Input for `iptables-restore --noflush` that removes the chains, and how many they are.
fn removal(program: &str, dump: &str, keep: &BTreeSet<String>) -> (String, usize) {
    let mut script: Vec<String> = Vec::new();
    let mut count = 0;
    for (table, Rules { chains, rules }) in tables(dump) {
        let ours: BTreeSet<&str> =
            chains.into_iter().filter(|chain| !keep.contains(&format!("{program} {table} {chain}"))).collect();
        if ours.is_empty() {
            continue;
        }
        script.push(format!("*{table}"));
        for rule in rules {
            let words: Vec<&str> = rule.split(' ').collect();
            let jumps = words.windows(2).any(|pair| matches!(pair[0], "-j" | "-g") && ours.contains(pair[1]));
            if jumps && !ours.contains(words[1]) {
                script.push(format!("-D {}", &rule["-A ".len()..]));
            }
        }
        // Naming a chain empties it; only empty chains can go.
        script.extend(ours.iter().map(|chain| format!(":{chain} - [0:0]")));
        script.extend(ours.iter().map(|chain| format!("-X {chain}")));
        script.push("COMMIT\n".into());
        count += ours.len();
    }
    (script.join("\n"), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-SERVICES - [0:0]
:CNI-OTHER - [0:0]
-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A PREROUTING -j DOCKER
-A PREROUTING -j CNI-OTHER
-A KUBE-SERVICES -j RETURN
COMMIT
";

    #[test]
    fn jumps_to_our_chains_go_first_and_others_rules_stay() {
        let keep = BTreeSet::from(["iptables nat CNI-OTHER".to_owned()]);
        let (script, count) = removal("iptables", DUMP, &keep);
        assert_eq!(
            script,
            "*nat\n\
             -D PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n\
             :KUBE-SERVICES - [0:0]\n\
             -X KUBE-SERVICES\n\
             COMMIT\n"
        );
        assert_eq!(count, 1);
    }

    #[test]
    fn a_machine_without_our_chains_needs_nothing() {
        let (script, count) = removal("iptables", "*nat\n:DOCKER - [0:0]\nCOMMIT\n", &BTreeSet::new());
        assert_eq!((script.as_str(), count), ("", 0));
    }
}
