//! What HAProxy prints on its standard error, read from the file that its command redirects it to.
//!
//! Up to 2.6 the master's command line does not say why a configuration was refused; the file does, with every version
//! and also when HAProxy does not start at all. HAProxy appends (`2>>`), so the file may be cut to nothing at any time.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

/// Past this size the file is emptied, in bytes.
const LIMIT: u64 = 1 << 20;
/// A message keeps this many bytes.
const MESSAGE: usize = 2048;

/// A reader that follows the file.
#[derive(Debug)]
pub struct Errors {
    path: PathBuf,
    read: u64,
    rest: String,
}

impl Errors {
    /// Follows `path`, which need not exist, from its beginning.
    pub fn follow(path: PathBuf) -> Self {
        Errors { path, read: 0, rest: String::new() }
    }

    /// The complete lines that were added since the last call. A file that cannot be read has none.
    pub fn new_lines(&mut self) -> Vec<String> {
        let Ok(mut file) = fs::File::options().read(true).write(true).open(&self.path) else { return Vec::new() };
        let length = file.metadata().map_or(0, |about| about.len());
        if length < self.read {
            self.read = 0;
        }
        let mut added = Vec::new();
        if file.seek(SeekFrom::Start(self.read)).and_then(|_| file.read_to_end(&mut added)).is_err() {
            return Vec::new();
        }
        self.read += u64::try_from(added.len()).unwrap_or(0);
        if self.read > LIMIT && file.set_len(0).is_ok() {
            self.read = 0;
        }
        self.rest.push_str(&String::from_utf8_lossy(&added));
        let Some((complete, rest)) = self.rest.rsplit_once('\n') else { return Vec::new() };
        let lines = complete.lines().map(str::to_owned).collect();
        self.rest = rest.to_owned();
        lines
    }
}

/// What of these lines tells a person why a configuration was refused; none if nothing does.
pub fn reason<'a>(lines: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut said: Vec<&str> = Vec::new();
    for line in lines {
        // `[ALERT]    (5151) : config : parsing [...]`, before 2.4 `[ALERT] 324/132105 (5151) : parsing [...]`.
        let Some((_, text)) = line.strip_prefix("[ALERT]").and_then(|line| line.split_once(") : ")) else { continue };
        let text = text.strip_prefix("config : ").unwrap_or(text).trim();
        let summary = text.starts_with("Error(s) found in configuration") || text.starts_with("Fatal errors found");
        if !summary && !said.contains(&text) {
            said.push(text);
        }
    }
    let mut message = said.join("; ");
    if message.len() > MESSAGE {
        let end = (0..=MESSAGE).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
        message.push_str(" ...");
    }
    (!message.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_haproxys_own_words_without_summary_and_repetition() {
        let said = "[NOTICE]   (5151) : Reloading HAProxy\n\
                    [ALERT]    (5151) : config : parsing [h.cfg:16] : unknown keyword 'badword' in 'global' section\n\
                    [ALERT]    (5151) : config : parsing [h.cfg:16] : unknown keyword 'badword' in 'global' section\n\
                    [ALERT]    (5151) : config : Error(s) found in configuration file : h.cfg\n\
                    [ALERT]    (5151) : config : Fatal errors found in configuration.\n";
        assert_eq!(reason(said.lines()).unwrap(), "parsing [h.cfg:16] : unknown keyword 'badword' in 'global' section");
        let older = "[ALERT] 324/132105 (13640) : parsing [h.cfg:3] : no such thing";
        assert_eq!(reason(older.lines()).unwrap(), "parsing [h.cfg:3] : no such thing");
        assert_eq!(reason(["[NOTICE] (1) : all is well"]), None);
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let line = format!("[ALERT] (1) : {}", "ü".repeat(3000));
        let message = reason([line.as_str()]).unwrap();
        assert!(message.len() <= MESSAGE + 4 && message.ends_with("ü ..."), "{} bytes", message.len());
    }

    #[test]
    fn lines_are_given_once_and_only_when_complete() {
        use std::io::Write as _;
        let path = std::env::temp_dir().join(format!("slipway-lb-errors-{}", std::process::id()));
        let mut errors = Errors::follow(path.clone());
        assert_eq!(errors.new_lines(), Vec::<String>::new());
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(b"one\ntw").unwrap();
        assert_eq!(errors.new_lines(), ["one"]);
        file.write_all(b"o\n").unwrap();
        assert_eq!(errors.new_lines(), ["two"]);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(errors.new_lines(), ["new"], "a file that became shorter is read from its beginning");
        fs::remove_file(&path).unwrap();
    }
}
