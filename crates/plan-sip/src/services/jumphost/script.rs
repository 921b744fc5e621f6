//! What runs on the jump host: the wrapper `host`, the environment it sets, and the wait before the pod ends.

use std::collections::BTreeMap;

/// The wrapper that people call, `/opt/sip/bin/host`: it sets the environment that sshd does not pass on.
pub(super) const HOST: &str = r#"#!/bin/sh
# host list | status | on | off | reboot: the hosts of this cluster, through their BMCs.
tool=/usr/local/bin/host
if ! [ -x "$tool" ]; then
    echo "host: this image has no $tool; use the jump-host image of Slipway" >&2
    exit 1
fi
[ -r /etc/opt/sip/environment ] && . /etc/opt/sip/environment
exec "$tool" "$@"
"#;

/// Runs before the pod ends: waits until nobody is logged in. The Service sends new sessions to the new pod meanwhile,
/// so a change of the pod cuts nobody off. The kernel's table of connections is all it needs; the local port is in it
/// in hexadecimal, and state 01 is an established connection.
pub(super) fn wait_for_sessions(port: u16) -> String {
    format!(
        "while grep -qE '^ *[0-9]+: [0-9A-F]+:{port:04X} [0-9A-F]+:[0-9A-F]{{4}} 01 ' /proc/net/tcp /proc/net/tcp6; do sleep 1; done"
    )
}

/// The file `environment`: what a shell reads to set these variables. Names that are no names of variables are left out.
pub(super) fn environment(variables: &BTreeMap<String, String>) -> String {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    variables
        .iter()
        .filter(|(name, value)| is_name(name) && !value.contains('\0'))
        .map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''")))
        .collect::<Vec<_>>()
        .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a POSIX shell makes of single-quoted words and `\'` between them.
    fn shell(text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some(after) = rest.strip_prefix("export ") {
            let (name, mut quoted) = after.split_once('=').expect("an assignment");
            let mut value = String::new();
            loop {
                if let Some(body) = quoted.strip_prefix('\'') {
                    let (literal, after) = body.split_once('\'').expect("a closing quote");
                    value += literal;
                    quoted = after;
                } else if let Some(after) = quoted.strip_prefix(r"\'") {
                    value.push('\'');
                    quoted = after;
                } else {
                    rest = quoted.strip_prefix('\n').expect("the end of the line");
                    break;
                }
            }
            found.push((name.to_owned(), value));
        }
        assert_eq!(rest, "");
        found
    }

    proptest! {
        #[test]
        fn a_shell_reads_back_what_was_set_and_runs_nothing(value in "[ -~\n'\\\\$`]{0,40}") {
            let variables = BTreeMap::from([("HTTPS_PROXY".to_owned(), value.clone())]);
            prop_assert_eq!(shell(&environment(&variables)), [("HTTPS_PROXY".to_owned(), value)]);
        }

        #[test]
        fn what_is_no_name_of_a_variable_is_left_out(name in "[ -~]{1,12}") {
            let text = environment(&BTreeMap::from([(name.clone(), "x".to_owned())]));
            let kept = format!("export {name}='x'\n");
            prop_assert!(text.is_empty() || (text == kept && !name.contains([' ', ';', '$', '='])));
        }
    }

    #[test]
    fn sessions_are_recognised_in_the_kernels_table() {
        let port = 2222;
        let pattern = wait_for_sessions(port);
        assert!(pattern.contains(":08AE "), "{pattern}");
    }
}
