//! Starts a browser where there is one.

use std::process::Stdio;

use tokio::process::Command;

/// Opens `url`: by `$BROWSER`, else by what the desktop has. That it cannot is no error: the address is printed too.
pub fn open(url: &str) {
    let Some(mut words) = command(url) else { return };
    let program = words.remove(0);
    let started =
        Command::new(&program).args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Err(error) = started {
        eprintln!("Cannot start {program}: {error}");
    }
}

/// Whether there is one to start.
pub fn is_there() -> bool {
    command("").is_some()
}

/// Program and arguments.
fn command(url: &str) -> Option<Vec<String>> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    if let Some(browser) = set("BROWSER") {
        return of_variable(&browser, url);
    }
    if cfg!(target_os = "macos") {
        return Some(vec!["open".to_owned(), url.to_owned()]);
    }
    set("DISPLAY").or_else(|| set("WAYLAND_DISPLAY")).map(|_| vec!["xdg-open".to_owned(), url.to_owned()])
}

/// `$BROWSER`: a command, `%s` in it is the address; the first of several that are separated by colons.
fn of_variable(browser: &str, url: &str) -> Option<Vec<String>> {
    let first = browser.split(':').find(|one| !one.trim().is_empty())?;
    let mut words: Vec<String> = first.split_whitespace().map(|word| word.replace("%s", url)).collect();
    if !first.contains("%s") {
        words.push(url.to_owned());
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_command_with_or_without_a_place_for_the_address() {
        assert_eq!(of_variable("firefox", "u").unwrap(), ["firefox", "u"]);
        assert_eq!(of_variable("w3m -T %s:lynx", "u").unwrap(), ["w3m", "-T", "u"]);
        assert_eq!(of_variable(" : ", "u"), None);
    }
}
