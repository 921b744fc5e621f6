//! The generated pages of `docs/reference/`: the API from its schema, the commands from their definition.

mod schema;

use std::fmt::Write as _;

use clap::Command;

/// Which page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Page {
    /// The API of SIPClusters.
    Sipcluster,
    /// The commands of this program.
    Cli,
}

/// A page as Markdown.
pub fn page(page: Page, command: &Command) -> String {
    match page {
        Page::Sipcluster => schema::page(&api::crds().swap_remove(0)),
        Page::Cli => commands(command),
    }
}

/// The help of every command.
fn commands(command: &Command) -> String {
    let mut command = command.clone().term_width(100);
    command.build();
    let mut text = "<!-- Generated from the program by `cargo xtask gen`. -->\n# `slipway`\n".to_owned();
    section(&mut command.clone(), &mut text);
    let shown = |sub: &&mut Command| !sub.is_hide_set() && sub.get_name() != "help";
    let mut subs: Vec<&mut Command> = command.get_subcommands_mut().filter(shown).collect();
    subs.sort_by_key(|sub| sub.get_name().to_owned());
    for sub in subs {
        let _ = write!(text, "\n## `slipway {}`\n", sub.get_name());
        section(sub, &mut text);
    }
    text
}

fn section(command: &mut Command, text: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(text, "\n```text\n{}\n```\n", lines.join("\n").trim_end());
}
