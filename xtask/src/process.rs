//! Long-running programs of the stack: started into its cgroup, recorded by pid and start time, stopped only if they are still the same.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    cgroup,
    config::run,
    files,
    step::{Step, command},
};

/// How long a program may take to end after a signal.
const GRACE: Duration = Duration::from_secs(8);

/// A program to keep running.
pub struct Service {
    /// Its name: of the record, of the log.
    pub name: String,
    /// What to run.
    pub program: PathBuf,
    /// Its arguments. No secrets: everybody on the machine can read them.
    pub args: Vec<String>,
    /// Variables on top of ours.
    pub env: Vec<(String, String)>,
    /// Files whose change means a restart.
    pub inputs: Vec<PathBuf>,
    /// The file of the network namespace to run in; ours if none.
    pub netns: Option<PathBuf>,
    /// Where its output goes.
    pub log: PathBuf,
}

/// What [`Service::ensure`] found or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, was healthy and is as wanted.
    Kept,
    /// It was not there.
    Started,
    /// It had died, was ill, or its configuration had changed.
    Restarted,
}

#[derive(Serialize, Deserialize)]
struct Record {
    pid: u32,
    start: u64,
    boot: String,
    fingerprint: String,
}

impl Service {
    /// A service without environment, inputs or network namespace.
    pub fn new(name: &str, program: &Path, logs: &Path) -> Self {
        let log = logs.join("run").join(format!("{name}.log"));
        let (name, program) = (name.to_owned(), program.to_owned());
        Self { name, program, args: Vec::new(), env: Vec::new(), inputs: Vec::new(), netns: None, log }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds `--name=value`.
    pub fn flag(self, name: &str, value: impl std::fmt::Display) -> Self {
        self.arg(format!("--{name}={value}"))
    }

    /// Adds `--name=file` and restarts the service when the file changes.
    pub fn file(mut self, name: &str, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        self.inputs.push(file.clone());
        self.flag(name, file.display())
    }

    /// Makes it run, as described and healthy, and says what that took.
    pub fn ensure(&self, step: &Step, limit: Duration, healthy: impl Fn() -> bool) -> Result<Outcome> {
        let fingerprint = self.fingerprint()?;
        let before = read(&self.name);
        if let Some(record) = &before {
            let same = record.fingerprint == fingerprint;
            if same && record.alive() && settles(&healthy) {
                return Ok(Outcome::Kept);
            }
            step.say(format!("{}: same configuration: {same}, alive: {}", self.name, record.alive()));
            stop(&self.name)?;
        } else {
            cgroup::end_orphans(&self.name)?;
        }
        step.blame(&self.log);
        let record = self.start(fingerprint)?;
        step.wait(&format!("{} to answer", self.name), limit, || {
            if !record.alive() {
                bail!("{} ended at once", self.name);
            }
            Ok(healthy().then_some(()))
        })?;
        Ok(if before.is_some() { Outcome::Restarted } else { Outcome::Started })
    }

    fn start(&self, fingerprint: String) -> Result<Record> {
        // The shell enters the cgroups and then becomes the program, so that the pid stays: setsid does not
        // fork for a process that leads no group, and nsenter does not without --fork.
        let enter: Vec<String> =
            cgroup::prepare(&self.name)?.iter().map(|procs| format!("echo $$ > {} && ", procs.display())).collect();
        let script = enter.concat() + "exec setsid \"$@\"";
        let mut words = vec!["-c".into(), script, "sh".into()];
        if let Some(netns) = &self.netns {
            words.extend(["nsenter".into(), format!("--net={}", netns.display())]);
        }
        words.push(self.program.to_string_lossy().into_owned());
        words.extend(self.args.iter().cloned());
        if let Some(dir) = self.log.parent() {
            fs::create_dir_all(dir)?;
        }
        let log = || -> Result<Stdio> {
            let file = OpenOptions::new().create(true).append(true).open(&self.log);
            Ok(file.with_context(|| format!("cannot write {}", self.log.display()))?.into())
        };
        let child = command("/bin/sh", words)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?)
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        let pid = child.id();
        let Some((_, start)) = stat(pid) else { bail!("{} ended at once", self.name) };
        let record = Record { pid, start, boot: boot(), fingerprint };
        files::write(&path(&self.name), &serde_json::to_string(&record)?)?;
        Ok(record)
    }

    fn fingerprint(&self) -> Result<String> {
        let mut hash = Sha256::new();
        let binary = fs::metadata(&self.program).with_context(|| format!("no program {}", self.program.display()))?;
        hash.update(format!("{} {} {:?}\n", self.program.display(), binary.len(), binary.modified()?));
        hash.update(format!("{:?}\n{:?}\n{:?}\n", self.args, self.env, self.netns));
        for input in &self.inputs {
            hash.update(fs::read(input).with_context(|| format!("{} needs {}", self.name, input.display()))?);
        }
        Ok(hex(&hash.finalize()))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("four bits are one digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A running program may be busy for a moment: only one that does not answer for three seconds is ill.
fn settles(healthy: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        if healthy() {
            return true;
        }
        thread::sleep(Duration::from_millis(200));
    }
    false
}

impl Record {
    fn alive(&self) -> bool {
        self.boot == boot() && stat(self.pid).is_some_and(|(state, start)| start == self.start && state != 'Z')
    }
}

/// The pid of a service that runs as it was started.
pub fn running(name: &str) -> Option<u32> {
    read(name).filter(Record::alive).map(|record| record.pid)
}

/// The names of all services that were started and not stopped.
pub fn recorded() -> Vec<String> {
    let Ok(entries) = fs::read_dir(run("processes")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

/// Asks a service to end, if it is still the process that was started, makes it end if it does not, and forgets it.
pub fn stop(name: &str) -> Result<()> {
    end(name, &[Signal::TERM, Signal::KILL])
}

/// As [`stop`], without asking: for a service whose state is thrown away.
pub fn end_at_once(name: &str) -> Result<()> {
    end(name, &[Signal::KILL])
}

fn end(name: &str, signals: &[Signal]) -> Result<()> {
    let Some(record) = read(name) else { return Ok(()) };
    for signal in signals {
        if !record.alive() {
            break;
        }
        signal_same(&record, *signal);
        let began = Instant::now();
        while record.alive() && began.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(20));
        }
    }
    if record.alive() {
        bail!("{name} (pid {}) does not end, not even on SIGKILL", record.pid);
    }
    fs::remove_file(path(name)).with_context(|| format!("cannot forget {name}"))
}

/// Through a pidfd: once it is open and the start time is right, the pid cannot become another process's.
fn signal_same(record: &Record, signal: Signal) {
    let Some(pid) = i32::try_from(record.pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if record.alive() {
        // It may have ended in between, which is what we want.
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// Kills a process that was just seen in a cgroup of ours.
pub fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended in between, which is what we want.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn path(name: &str) -> PathBuf {
    run("processes").join(format!("{name}.json"))
}

fn read(name: &str) -> Option<Record> {
    serde_json::from_slice(&fs::read(path(name)).ok()?).ok()
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// State letter and start time of a process, the latter in ticks since boot.
fn stat(pid: u32) -> Option<(char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<(char, u64)> {
    // The name, in parentheses, may itself hold spaces and parentheses: the fields start after the last one.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_hide_the_start_time() {
        let line = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 99 1";
        assert_eq!(parse_stat(line), Some(('S', 123_456)));
    }

    #[test]
    fn this_process_is_alive_and_another_start_time_is_not_it() {
        let (_, start) = stat(std::process::id()).expect("this process has a stat file");
        let record = |start| Record { pid: std::process::id(), start, boot: boot(), fingerprint: String::new() };
        assert!(record(start).alive());
        assert!(!record(start + 1).alive());
    }
}
