//! An explanation in one paragraph, for the people who run the platform.

use std::fmt;

use base::Key;

use super::{
    Explanation, Level,
    explain::{Claimed, Dropped, FullDomain, LevelReport, Place, Remedy, Rivals, Unlabelled},
};

/// Bytes of a paragraph at most.
const LONGEST: usize = 1_000;
/// Characters of a name, detail or selector at most.
const LONGEST_NAME: usize = 90;
/// Levels and places named at most.
const LEVELS: usize = 3;
/// Clusters named at most.
const CLUSTERS: usize = 3;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, asked, owned, need, placeable, .. } = self;
        let has = if *owned > 0 { format!(" ({owned} of {asked} owned)") } else { String::new() };
        let placeable = if *placeable == 0 { "none".to_owned() } else { placeable.to_string() };
        let head = format!("role {role}: {} needed{has}, {placeable} can be placed: ", hosts_more(*need));
        let remedy = self.remedy.as_ref().map(remedy).unwrap_or_default();
        let body = body(self);
        let room = LONGEST.saturating_sub(head.len() + remedy.len());
        write!(f, "{head}{}.{remedy}", cut(&body, room))
    }
}

fn body(explanation: &Explanation) -> String {
    let Explanation {
        matching, not_allowed, excluded, own, claimed, dropped, free, unlabelled, levels, rivals, ..
    } = explanation;
    let selector = short(&explanation.selector);
    if *matching == 0 {
        return format!("no host matches {selector}");
    }
    let mut fates = Vec::new();
    if *own > 0 {
        fates.push(format!("{own} {} this cluster's already", are(*own)));
    }
    fates.extend(claims(claimed));
    fates.extend(dropped.iter().map(drops));
    if *excluded > 0 {
        fates.push(format!("{excluded} to be replaced"));
    }
    if *not_allowed > 0 {
        fates.push(format!("{not_allowed} in namespaces this cluster may not take from"));
    }
    let spread = levels.first().map(|level| format!(" in {} of {}", domains(level.with_free), short(&level.level.key)));
    fates.push(match free {
        0 => "none free".to_owned(),
        _ => format!("{free} free{}", spread.unwrap_or_default()),
    });
    let matches = if *matching == 1 { "1 host matches".to_owned() } else { format!("{matching} hosts match") };
    let mut text = format!("{matches} {selector}: {}", fates.join(", "));
    for lacking in unlabelled {
        text.push_str(&lacks(lacking));
    }
    for level in levels {
        text.push_str(&level_text(level));
    }
    if let Some(rivals) = rivals {
        text.push_str(&rivals_text(rivals));
    }
    text
}

fn claims(claimed: &[Claimed]) -> Vec<String> {
    if claimed.len() > CLUSTERS {
        let hosts: u32 = claimed.iter().map(|claimed| claimed.hosts).sum();
        return vec![format!("{hosts} claimed by {} other clusters", claimed.len())];
    }
    claimed.iter().map(|Claimed { by, hosts }| format!("{hosts} claimed by {}", name(by))).collect()
}

fn drops(dropped: &Dropped) -> String {
    let Dropped { why, hosts, examples } = dropped;
    let names: Vec<String> = examples
        .iter()
        .map(|(key, detail)| if detail.is_empty() { name(key) } else { format!("{}: {}", name(key), short(detail)) })
        .collect();
    format!("{hosts} {why} ({})", listed(&names, *hosts as usize))
}

fn lacks(lacking: &Unlabelled) -> String {
    let Unlabelled { key, hosts, examples } = lacking;
    let names: Vec<String> = examples.iter().map(name).collect();
    let verb = if *hosts == 1 { "lacks" } else { "lack" };
    format!("; {hosts} of the free {verb} label {} ({})", short(key), listed(&names, *hosts as usize))
}

fn level_text(report: &LevelReport) -> String {
    let LevelReport { level: Level { key, max_per_domain }, full, full_count, usable, usable_count, with_free: _ } =
        report;
    let mut text = format!("; at most {max_per_domain} per {}", short(key));
    let mut parts = Vec::new();
    for FullDomain { domain, hosts, owned } in full {
        let names: Vec<String> = hosts.iter().map(name).collect();
        match owned {
            0 => parts.push(format!("{domain} has no room")),
            _ => parts.push(format!("{domain} already used by {}", listed(&names, *owned as usize))),
        }
    }
    let unnamed = *full_count as usize - full.len();
    if unnamed > 0 {
        parts.push(format!("{unnamed} more used up"));
    }
    if *usable_count > 0 {
        let verb = if *usable_count == 1 { "has" } else { "have" };
        parts.push(format!("{} {verb} free hosts", joined(usable, *usable_count as usize)));
    }
    if !parts.is_empty() {
        text.push_str(": ");
        text.push_str(&parts.join(", "));
    }
    text
}

fn rivals_text(rivals: &Rivals) -> String {
    let Rivals { roles, need, placeable } = rivals;
    let roles: Vec<String> = roles.iter().map(|role| short(role)).collect();
    let named = &roles[..roles.len().min(CLUSTERS + 1)];
    let names = joined(named, roles.len());
    format!("; roles {names} compete for the same hosts: together they need {need} more, {placeable} can be placed")
}

fn remedy(remedy: &Remedy) -> String {
    let Remedy { more, least, levels, places } = remedy;
    let perhaps = if *least { "" } else { ", perhaps fewer" };
    let rules: Vec<String> = levels
        .iter()
        .take(LEVELS)
        .map(|Level { key, max_per_domain }| match more {
            1 => format!("another {}", short(key)),
            _ => format!("{max_per_domain} per {}", short(key)),
        })
        .collect();
    let rules = joined(&rules, levels.len());
    let places = &places[..places.len().min(LEVELS)];
    if *more == 1 {
        let rules = if levels.is_empty() { "that matches".to_owned() } else { format!("in {rules}") };
        let places: Vec<String> = by_key(places, |place| place.domain.clone());
        let places = if places.is_empty() { String::new() } else { format!(", or in {},", all(&places, "or")) };
        return format!(" 1 more free host {rules}{places} would do{perhaps}.");
    }
    let rules =
        if levels.is_empty() { " that match".to_owned() } else { format!(" in other domains, at most {rules},") };
    let places = by_key(places, |place| format!("{} (up to {})", place.domain, place.hosts));
    let places = if places.is_empty() { String::new() } else { format!("; some may be in {}", all(&places, "or")) };
    format!(" {more} more free hosts{rules} would do{perhaps}{places}.")
}

/// Places with the key before the first of each.
fn by_key(places: &[Place], text: impl Fn(&Place) -> String) -> Vec<String> {
    let mut last = "";
    let mut texts = Vec::with_capacity(places.len());
    for place in places {
        let text = text(place);
        texts.push(if place.key == last { text } else { format!("{} {text}", short(&place.key)) });
        last = &place.key;
    }
    texts
}

fn hosts_more(count: u32) -> String {
    format!("{count} more {}", plural(count as usize, "host"))
}

fn domains(count: u32) -> String {
    format!("{count} {}", plural(count as usize, "domain"))
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn are(count: u32) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn name(key: &Key) -> String {
    short(&key.to_string())
}

/// The first names of `all`, then how many more.
fn listed(names: &[String], all: usize) -> String {
    match all - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// All names as part of a sentence: `a, b and c`.
fn all<T: AsRef<str>>(names: &[T], word: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} {word} {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// The first names of `count` as part of a sentence.
fn joined(names: &[String], count: usize) -> String {
    match count - names.len() {
        0 => all(names, "and"),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn short(text: &str) -> String {
    cut(text, LONGEST_NAME)
}

/// At most `bytes` of a text; what is cut off leaves an ellipsis.
fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes.saturating_sub('\u{2026}'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}\u{2026}", &text[..end])
}
