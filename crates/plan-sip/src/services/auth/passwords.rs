//! Local users of a provider: a Secret of bcrypt hashes becomes Dex's `staticPasswords`.
//!
//! A value of the Secret is either a hash, and then its key is the user, or lines `user:hash` as `htpasswd -B` writes
//! them, and then the key means nothing. A key of a Secret cannot hold an `@`, so e-mail addresses need the second form.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::super::object::sha256;

/// The local users, sorted, and what is wrong with those that are left out.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Passwords {
    /// Entries of `staticPasswords`.
    pub users: Vec<Value>,
    /// Each names the key of the Secret. None shows a hash.
    pub bad: Vec<String>,
}

/// Costs that Dex checks; with any other it lets nobody in.
const COSTS: std::ops::RangeInclusive<u32> = 10..=16;

/// Reads the data of the Secret.
pub(super) fn read(data: &BTreeMap<String, Arc<[u8]>>) -> Passwords {
    let mut found = Passwords::default();
    let mut users: BTreeMap<String, (String, String)> = BTreeMap::new();
    for (key, value) in data {
        let Ok(text) = std::str::from_utf8(value) else {
            found.bad.push(format!("key {key} is not text"));
            continue;
        };
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        if lines.is_empty() {
            found.bad.push(format!("key {key} is empty"));
        }
        for line in lines {
            let (user, hash) =
                line.split_once(':').map_or((key.as_str(), line), |(user, hash)| (user.trim(), hash.trim()));
            match checked(user, hash) {
                // Dex compares e-mail addresses in lower case.
                Ok(()) => match users.entry(user.to_lowercase()) {
                    std::collections::btree_map::Entry::Vacant(free) => {
                        free.insert((user.to_owned(), hash.to_owned()));
                    }
                    std::collections::btree_map::Entry::Occupied(_) => {
                        found.bad.push(format!("key {key} has a user that is there already"));
                    }
                },
                Err(why) => found.bad.push(format!("key {key} {why}")),
            }
        }
    }
    found.users = users
        .into_iter()
        .map(|(email, (user, hash))| {
            let name = user.split('@').next().unwrap_or_default();
            json!({ "email": email, "username": name, "userID": identifier(&email), "hash": hash })
        })
        .collect();
    found
}

fn checked(user: &str, hash: &str) -> Result<(), String> {
    if user.is_empty() || user.len() > 254 || user.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("has a user that is no name".to_owned());
    }
    let mut parts = hash.split('$');
    let shape = (parts.next(), parts.next(), parts.next(), parts.next(), parts.next());
    let (Some(""), Some("2a" | "2b" | "2x" | "2y"), Some(cost), Some(rest), None) = shape else {
        return Err("has no bcrypt hash ($2a$, $2b$ or $2y$)".to_owned());
    };
    let digits = cost.len() == 2 && cost.bytes().all(|b| b.is_ascii_digit());
    if rest.len() != 53 || !rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"./".contains(&b)) || !digits {
        return Err("has a bcrypt hash that is damaged".to_owned());
    }
    match cost.parse::<u32>() {
        Ok(cost) if COSTS.contains(&cost) => Ok(()),
        _ => Err(format!("has a bcrypt hash of cost {cost}: Dex takes {} to {}", COSTS.start(), COSTS.end())),
    }
}

/// An identifier in the form of a UUID that is always the same for one user: tokens and refreshes refer to it.
fn identifier(email: &str) -> String {
    let digest = sha256(&format!("slipway local user {email}"));
    format!("{}-{}-{}-{}-{}", &digest[..8], &digest[8..12], &digest[12..16], &digest[16..20], &digest[20..32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const HASH: &str = "$2y$10$J4uj33QYOx/zN8JvTuEvHeYq9vbN0bBfPM0T2W.pQnDw0zGmOpsGK";

    fn data(entries: &[(&str, &str)]) -> BTreeMap<String, Arc<[u8]>> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), Arc::from(value.as_bytes()))).collect()
    }

    #[test]
    fn a_bare_hash_belongs_to_its_key_and_a_line_to_its_user() {
        let read = read(&data(&[("admin", HASH), ("users", &format!("# staff\nAnn@Example.org:{HASH}\n\n"))]));
        assert_eq!(read.bad, Vec::<String>::new());
        let shown: Vec<_> =
            read.users.iter().map(|u| (u["email"].as_str().unwrap(), u["username"].as_str().unwrap())).collect();
        assert_eq!(shown, [("admin", "admin"), ("ann@example.org", "Ann")]);
        assert_eq!(read.users[1]["hash"], HASH);
        assert_ne!(read.users[0]["userID"], read.users[1]["userID"]);
    }

    #[rstest]
    #[case::plain("secret", "key k has no bcrypt hash ($2a$, $2b$ or $2y$)")]
    #[case::short("$2a$10$abc", "key k has a bcrypt hash that is damaged")]
    #[case::dear(&HASH.replace("$10$", "$17$"), "key k has a bcrypt hash of cost 17: Dex takes 10 to 16")]
    #[case::cheap(&HASH.replace("$10$", "$05$"), "key k has a bcrypt hash of cost 05: Dex takes 10 to 16")]
    #[case::blank(" \n", "key k is empty")]
    #[case::no_user(&format!(":{HASH}"), "key k has a user that is no name")]
    fn what_dex_would_stumble_over_is_left_out_and_named(#[case] value: &str, #[case] why: &str) {
        let read = read(&data(&[("good", HASH), ("k", value)]));
        assert_eq!(read.users.len(), 1);
        assert_eq!(read.bad, [why]);
    }

    #[test]
    fn one_user_twice_is_named_once() {
        let read = read(&data(&[("a", &format!("x@y:{HASH}\nX@Y:{HASH}"))]));
        assert_eq!(
            (read.users.len(), read.bad.as_slice()),
            (1, &["key a has a user that is there already".to_owned()][..])
        );
    }

    proptest! {
        #[test]
        fn no_value_of_the_secret_is_shown(value in "[ -9;-~]{1,20}") {
            let value = format!("zz{value}");
            for message in read(&data(&[("k", &value)])).bad {
                prop_assert!(!message.contains(&value), "{}", message);
            }
        }
    }
}
