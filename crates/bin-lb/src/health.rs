//! What HAProxy's own checks found of each server, read from its statistics.

use crate::contract::BackendState;

/// Reads the answer to `show stat -1 4 -1`; none when it is not the table of servers. Columns are found by their names.
pub fn read(statistics: &str) -> Option<Vec<BackendState>> {
    let mut lines = statistics.lines().skip_while(|line| !line.starts_with("# "));
    let header = fields(lines.next()?.trim_start_matches("# "));
    let column = |name: &str| header.iter().position(|title| title == name);
    let (backend, server, status) = (column("pxname")?, column("svname")?, column("status")?);
    let (check, code) = (column("check_status")?, column("check_code")?);
    let (described, last) = (column("check_desc"), column("last_chk"));
    let read = |line: &str| {
        let fields = fields(line);
        let field = |at: usize| fields.get(at).map(String::as_str).unwrap_or_default();
        // The master's own proxy shows the workers as servers up to 2.4.
        if fields.len() <= status || field(backend) == "MASTER" {
            return None;
        }
        let words = [described.map_or(field(check), field), field(code), last.map_or("", field)];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Some(BackendState {
            backend: field(backend).to_owned(),
            server: field(server).to_owned(),
            up: up(field(status), field(check)),
            says: words.join(", "),
        })
    };
    Some(lines.filter_map(read).collect())
}

/// Whether a server takes connections, as its checks found; none without checks, and until the first one has ended.
fn up(status: &str, check: &str) -> Option<bool> {
    // A check that runs has a star before what the one before it found.
    match (status, check.trim_start_matches("* ")) {
        ("no check", _) | (_, "" | "INI") => None,
        // `UP 1/3` is on its way down and still in service, `DOWN 1/2` the other way round; a drained one answers too.
        (status, _) => Some(["UP", "DRAIN", "NOLB"].iter().any(|word| status.starts_with(word))),
    }
}

/// The fields of a line of CSV as HAProxy writes it: one with commas is in quotes, and a quote in it is doubled.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().expect("there is one from the start").push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            char => fields.last_mut().expect("there is one from the start").push(char),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_up_as_its_checks_say_and_nobody_knows_without_them() {
        for (status, check, expected) in [
            ("UP", "L7OK", Some(true)),
            ("UP 1/3", "* L4TOUT", Some(true)),
            ("DOWN", "L4CON", Some(false)),
            ("DOWN 1/2", "L7OK", Some(false)),
            ("DRAIN", "L7OK", Some(true)),
            ("MAINT", "L7OK", Some(false)),
            ("UP", "INI", None),
            ("no check", "", None),
        ] {
            assert_eq!(up(status, check), expected, "{status} {check}");
        }
    }

    #[test]
    fn the_words_of_a_check_are_kept_though_they_hold_commas_and_quotes() {
        let text = "\n# pxname,svname,status,check_status,check_code,last_chk,check_desc,\n\
                    api,node-1,DOWN,L7STS,500,\"said \"\"no\"\", twice\",Layer7 wrong status,\n\
                    MASTER,cur-1,UP,,,,,\n\n";
        let says = "Layer7 wrong status, 500, said \"no\", twice".to_owned();
        let state = BackendState { backend: "api".into(), server: "node-1".into(), up: Some(false), says };
        assert_eq!(read(text), Some(vec![state]));
        assert_eq!(read("Unknown command\n"), None);
    }
}
