//! `host`: lists the hosts of a cluster and switches their power, from its jump host.

mod address;
mod hosts;
mod power;
mod redfish;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::{
    hosts::{Host, Hosts},
    power::Action,
    redfish::{Connection, System},
};

/// Lists the hosts of this cluster and switches their power.
#[derive(Parser)]
#[command(name = "host", version, after_help = "Redfish is spoken with the BMCs named in /etc/opt/sip/hosts.")]
struct Cli {
    /// Where the hosts and their BMC logins are
    #[arg(long, global = true, env = "SIP_HOSTS", hide_env_values = true, default_value = "/etc/opt/sip/hosts")]
    hosts: PathBuf,
    /// Certificates that sign those of BMCs, beside the system's own (used if the file exists)
    #[arg(long, global = true, env = "SIP_BMC_CA", default_value = "/etc/opt/sip/bmc-ca.crt")]
    ca: PathBuf,
    /// Reach BMCs through the proxy of the environment
    #[arg(long, global = true, env = "SIP_BMC_PROXY")]
    proxy: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One name per line
    List,
    /// Power and health of one host or of all
    Status { name: Option<String> },
    /// Switch a host on
    On { name: String },
    /// Shut a host down
    Off {
        name: String,
        /// Cut its power at once
        #[arg(long)]
        force: bool,
    },
    /// Restart a host
    Reboot {
        name: String,
        /// Reset it at once
        #[arg(long)]
        force: bool,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Wrong use is 1, as it was with the script this replaces; asking for help is no error.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    rustls::crypto::aws_lc_rs::default_provider().install_default().expect("nothing was installed before");
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("host: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(Cli { hosts, ca, proxy, command }: Cli) -> anyhow::Result<ExitCode> {
    let hosts = Hosts::read(&hosts)?;
    let connection = Connection { ca, proxy };
    let (name, action, force) = match command {
        Command::List => {
            hosts.iter().for_each(|host| println!("{}", host.name));
            return Ok(ExitCode::SUCCESS);
        }
        Command::Status { name: Some(name) } => return Ok(table([hosts.find(&name)?.clone()], &connection).await),
        Command::Status { name: None } => return Ok(table(hosts.iter().cloned(), &connection).await),
        Command::On { name } => (name, Action::On, false),
        Command::Off { name, force } => (name, Action::Off, force),
        Command::Reboot { name, force } => (name, Action::Reboot, force),
    };
    let system = System::open(hosts.find(&name)?, &connection).await?;
    println!("{name}: {} is {}", system.url(), system.power());
    let kind = power::choose(action, force, system.power(), &system.reset_types().await?);
    match kind.with_context(|| name.clone())? {
        None => println!("{name}: nothing to do"),
        Some(kind) => {
            system.reset(kind).await?;
            println!("{name}: {kind} accepted");
        }
    }
    if action == Action::Off {
        println!("{name}: Metal3 switches a host with `online: true` on again; to keep it off, set that to false");
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks all hosts at the same time, prints them in their order.
async fn table(hosts: impl IntoIterator<Item = Host>, connection: &Connection) -> ExitCode {
    let asked: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            let connection = connection.clone();
            let name = host.name.clone();
            (name, tokio::spawn(async move { System::open(&host, &connection).await }))
        })
        .collect();
    let width = asked.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(4);
    println!("{:width$}  {:<10}  HEALTH", "NAME", "POWER");
    let mut code = ExitCode::SUCCESS;
    for (name, answer) in asked {
        let (power, health) = match answer.await.expect("the task does not panic") {
            Ok(system) => (system.power().to_owned(), system.health().to_owned()),
            Err(error) => {
                eprintln!("host: {:#}", anyhow::Error::new(error));
                code = ExitCode::FAILURE;
                ("?".to_owned(), "?".to_owned())
            }
        };
        println!("{name:width$}  {power:<10}  {health}");
    }
    code
}
