//! The command line: commands, their arguments, and what they answer to the shell.

use std::{ffi::OsString, io::Write as _, path::Path, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::{
    definitions, explain,
    input::BadInput,
    kubeconfig, lint,
    plan::{self, Answer},
    reference, token,
};

/// Exit status: the input is bad.
const BAD_INPUT: u8 = 2;
/// Exit status: something is blocked.
const BLOCKED: u8 = 3;

/// Takes bare-metal hosts to tenant Kubernetes clusters: shows what would be done and why, and logs in to tenants.
#[derive(Debug, Parser)]
#[command(name = "slipway", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show which hosts SIPClusters would claim and release, without touching anything
    ///
    /// Exit status: 0 when nothing is blocked, 3 when something is, 2 when the input is bad.
    Plan(plan::Args),
    /// Show why a SIPCluster is as it is, and what would change that
    ///
    /// Exit status: as that of `plan`.
    Explain(explain::Args),
    /// Check manifests: what admission would refuse, and what it would accept and people would regret
    ///
    /// Exit status: 0, 1 for warnings with --strict, 2 for errors.
    Lint(lint::Args),
    /// Print a kubeconfig for a tenant cluster, which logs in by `slipway token`
    Kubeconfig(kubeconfig::Args),
    /// Log in to a tenant's OIDC provider; kubectl calls this by itself
    Token(token::Args),
    /// Print the CustomResourceDefinitions
    Crds,
    /// Print the completion script of a shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print a page of the reference
    #[command(hide = true)]
    Reference {
        /// The page
        #[arg(value_enum)]
        page: reference::Page,
    },
}

/// Runs the command that these arguments ask for; the first one is the program's name.
pub async fn run(args: Vec<OsString>) -> ExitCode {
    let mut command = command(args.first().map(OsString::as_os_str));
    let task = command
        .try_get_matches_from_mut(args)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    let task = match task {
        Ok(Cli { task }) => task,
        Err(error) => error.exit(),
    };
    match carry_out(task, command).await {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            match error.downcast_ref::<BadInput>() {
                Some(BadInput(all)) => all.iter().for_each(|bad| eprintln!("slipway: {bad}")),
                None => eprintln!("slipway: {error:#}"),
            }
            if error.is::<BadInput>() { ExitCode::from(BAD_INPUT) } else { ExitCode::FAILURE }
        }
    }
}

/// The command line, by the name it was called by: kubectl finds its plugin `kubectl-slipway` as `kubectl slipway`.
fn command(called: Option<&std::ffi::OsStr>) -> clap::Command {
    // One file after each -f there, so that the SIPCluster may come last.
    let command =
        Cli::command().mut_subcommand("explain", |explain| explain.mut_arg("files", |files| files.num_args(1)));
    let stem = called.and_then(|name| Path::new(name).file_stem()?.to_str());
    match stem {
        Some("kubectl-slipway") => command.bin_name("kubectl slipway"),
        _ => command.bin_name("slipway"),
    }
}

async fn carry_out(task: Task, mut command: clap::Command) -> anyhow::Result<u8> {
    match task {
        Task::Plan(args) => answer(&plan::run(args).await?),
        Task::Explain(args) => answer(&explain::run(args).await?),
        Task::Lint(args) => {
            let findings = lint::run(&args);
            notes(&findings.notes);
            print(&findings.to_string())?;
            Ok(findings.status())
        }
        Task::Kubeconfig(args) => kubeconfig::run(args).await.map(|()| 0),
        Task::Token(args) => token::run(args).await.map(|()| 0),
        Task::Crds => print(&definitions::yaml()?).map(|()| 0),
        Task::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "slipway", &mut script);
            print(&String::from_utf8(script)?).map(|()| 0)
        }
        Task::Reference { page } => print(&reference::page(page, &command)).map(|()| 0),
    }
}

fn answer(Answer { text, notes: said, blocked }: &Answer) -> anyhow::Result<u8> {
    notes(said);
    print(text)?;
    Ok(if *blocked { BLOCKED } else { 0 })
}

fn notes(notes: &[String]) {
    for note in notes {
        eprintln!("note: {note}");
    }
}

/// Prints, unless nobody reads any more: `slipway plan | head` is no failure.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(None).debug_assert();
    }

    #[test]
    fn help_names_the_program_as_it_was_called() {
        for (called, usage) in
            [("slipway", "Usage: slipway <COMMAND>"), ("/usr/bin/kubectl-slipway", "Usage: kubectl slipway <COMMAND>")]
        {
            let help = command(Some(called.as_ref())).render_help().to_string();
            assert!(help.contains(usage), "{help}");
        }
    }
}
