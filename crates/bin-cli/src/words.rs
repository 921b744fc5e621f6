//! Numbers and names in sentences.

use std::collections::BTreeMap;

/// `1 host`, `2 hosts`.
pub fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// `5 hosts to claim, 1 to release now`; none if all are zero.
pub fn parts(numbers: &[(usize, &str)]) -> Option<String> {
    let mut texts = Vec::new();
    for (number, what) in numbers.iter().filter(|(number, _)| *number > 0) {
        let subject = if texts.is_empty() { count(*number, "host") } else { number.to_string() };
        let what = if *number == 1 { what.replace("them", "it") } else { (*what).to_owned() };
        texts.push(format!("{subject} {what}"));
    }
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// `rack=r1, host=n1`: labels without the prefixes of their keys, where that leaves them distinct.
pub fn labels(labels: &BTreeMap<String, String>) -> String {
    let short = |key: &str| key.rsplit('/').next().unwrap_or(key).to_owned();
    let distinct = |key: &str| labels.keys().filter(|other| short(other) == short(key)).count() == 1;
    let text = |(key, value): (&String, &String)| {
        let key = if distinct(key) { short(key) } else { key.clone() };
        format!("{key}={value}")
    };
    labels.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The first few, and how many more.
pub fn few(texts: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = texts.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if texts.len() > SHOWN { format!("{shown} and {} more", texts.len() - SHOWN) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn numbers_read_as_sentences() {
        assert_eq!(parts(&[(0, "to claim")]), None);
        assert_eq!(
            parts(&[(1, "to claim"), (2, "to release when nobody uses them")]).as_deref(),
            Some("1 host to claim, 2 to release when nobody uses them")
        );
        assert_eq!(
            parts(&[(0, "to claim"), (1, "to release when nobody uses them")]).as_deref(),
            Some("1 host to release when nobody uses it")
        );
    }

    #[test]
    fn labels_are_short_unless_that_mixes_them_up() {
        assert_eq!(labels(&map(&[("vino.airshipit.org/rack", "r1"), ("room", "7")])), "room=7, rack=r1");
        assert_eq!(labels(&map(&[("a.org/rack", "r1"), ("b.org/rack", "r2")])), "a.org/rack=r1, b.org/rack=r2");
    }
}
