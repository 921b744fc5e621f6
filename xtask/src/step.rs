//! Runs the steps of a command: one line each as it ends, with the time since the start, and a log of its own.

use std::{
    ffi::OsStr,
    fmt::Display,
    fs::{self, File, OpenOptions, Permissions},
    io::{IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};

/// Lines of a failed step's log that are shown.
const TAIL: usize = 30;
/// How often a step that takes long says so where there is no terminal to redraw.
const REMIND: Duration = Duration::from_secs(20);

/// The steps of one command.
pub struct Steps {
    started: Instant,
    logs: PathBuf,
    terminal: bool,
}

/// One step as it runs.
pub struct Step {
    log: PathBuf,
    file: Mutex<File>,
    state: Mutex<State>,
}

struct State {
    /// What is being done now, for people who wait.
    note: String,
    /// The log to show if the step fails.
    blame: PathBuf,
}

impl Steps {
    /// Steps that log into `logs`, which is made.
    pub fn new(logs: PathBuf) -> Result<Self> {
        private_folder(&logs)?;
        Ok(Self { started: Instant::now(), logs, terminal: std::io::stderr().is_terminal() })
    }

    /// Where the logs lie.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// Runs `work`; prints what it says it did. On failure prints the end of its log and where the rest is.
    pub fn run<D: Display>(&self, name: &str, work: impl FnOnce(&Step) -> Result<D>) -> Result<()> {
        self.value(name, |step| work(step).map(|done| ((), done)))
    }

    /// As [`Steps::run`], for a step that also returns something.
    pub fn value<T, D: Display>(&self, name: &str, work: impl FnOnce(&Step) -> Result<(T, D)>) -> Result<T> {
        private_folder(&self.logs)?; // `down` may have removed it since
        let step = Step::new(self.logs.join(format!("{}.log", name.replace([' ', '/'], "-"))))?;
        let began = Instant::now();
        let outcome = thread::scope(|scope| {
            let (done, ended) = mpsc::channel::<()>();
            let seen = &step;
            scope.spawn(move || self.report(name, seen, &ended));
            let outcome = work(&step);
            drop(done);
            outcome
        });
        match outcome {
            Ok((value, done)) => {
                self.line(&format!("{name}: {done}{}", own_time(began.elapsed())));
                Ok(value)
            }
            Err(error) => {
                self.line(&format!("{name}: FAILED{}", own_time(began.elapsed())));
                let blame = step.state().blame.clone();
                show_tail(&blame);
                Err(error.context(format!("step `{name}` failed; its log is {}", blame.display())))
            }
        }
    }

    /// Prints one line with the time.
    pub fn line(&self, text: &str) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        eprintln!("{clear}{} {text}", self.clock());
    }

    fn clock(&self) -> String {
        format!("[{:6.1}s]", self.started.elapsed().as_secs_f64())
    }

    /// Until the step ends: redraws its line on a terminal, elsewhere says now and then that it goes on.
    fn report(&self, name: &str, step: &Step, ended: &mpsc::Receiver<()>) {
        let pause = if self.terminal { Duration::from_millis(250) } else { REMIND };
        while let Err(mpsc::RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
            let note = step.state().note.clone();
            if self.terminal {
                eprint!("\r\x1b[K{} {name}: {note} …", self.clock());
            } else {
                eprintln!("{} {name}: {note} … (log: {})", self.clock(), step.log.display());
            }
        }
    }
}

impl Step {
    fn new(log: PathBuf) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let state = State { note: "running".into(), blame: log.clone() };
        Ok(Self { log, file: Mutex::new(file), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is being done now.
    pub fn note(&self, note: impl Display) {
        self.state().note = note.to_string();
        self.say(format!("-- {note}"));
    }

    /// Writes a line into the log.
    pub fn say(&self, text: impl Display) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not stop the step it is about.
        let _ = writeln!(file, "{text}");
    }

    /// Shows `log` instead of the step's own if the step fails: the log of the program it waits for.
    pub fn blame(&self, log: &Path) {
        log.clone_into(&mut self.state().blame);
    }

    /// Runs a program to its end, its output in the log.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        self.say(format!("$ {}", shown(command)));
        let log = || OpenOptions::new().append(true).open(&self.log).map(Stdio::from);
        let status = command
            .stdin(Stdio::null())
            .stdout(log()?)
            .stderr(log()?)
            .status()
            .with_context(|| cannot_start(command))?;
        if status.success() {
            return Ok(());
        }
        bail!("`{}` ended with {status}", shown(command))
    }

    /// Runs a program to its end and returns what it printed; its errors go to the log.
    pub fn output(&self, command: &mut Command) -> Result<String> {
        self.say(format!("$ {}", shown(command)));
        let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
        self.finish(command, &output)
    }

    /// Runs a program with `input` on its standard input and returns what it printed. The input is not logged.
    pub fn feed(&self, command: &mut Command, input: &str) -> Result<String> {
        self.say(format!("$ {} <<input", shown(command)));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| cannot_start(command))?;
        let mut stdin = child.stdin.take().ok_or_else(|| anyhow!("no pipe to `{}`", shown(command)))?;
        let written = thread::scope(|scope| {
            let writer = scope.spawn(move || stdin.write_all(input.as_bytes()));
            let output = child.wait_with_output();
            // A program may end without reading all: its exit status tells whether that was an error.
            let _ = writer.join();
            output
        });
        self.finish(command, &written?)
    }

    fn finish(&self, command: &Command, output: &std::process::Output) -> Result<String> {
        let errors = String::from_utf8_lossy(&output.stderr);
        if !errors.is_empty() {
            self.say(errors.trim_end());
        }
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        self.say(String::from_utf8_lossy(&output.stdout));
        let last = errors.lines().last().unwrap_or("it said nothing");
        bail!("`{}` ended with {}: {last}", shown(command), output.status)
    }

    /// Polls until `ready` returns something; `what` is said while waiting and in the error.
    pub fn wait<T>(&self, what: &str, limit: Duration, mut ready: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        self.note(format!("waiting for {what}"));
        let began = Instant::now();
        loop {
            if let Some(value) = ready()? {
                return Ok(value);
            }
            if began.elapsed() > limit {
                bail!("{what}: not so after {} s", limit.as_secs());
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

/// A program with arguments.
pub fn command<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`", command.get_program().to_string_lossy())
}

/// A command as one would type it. Secrets never are in it: they go by file or standard input.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// For its owner alone: programs may print what nobody else shall read.
fn private_folder(dir: &Path) -> Result<()> {
    let made = fs::create_dir_all(dir).and_then(|()| fs::set_permissions(dir, Permissions::from_mode(0o700)));
    made.with_context(|| format!("cannot make {}", dir.display()))
}

fn own_time(time: Duration) -> String {
    if time < Duration::from_secs(1) { String::new() } else { format!(" ({:.1}s)", time.as_secs_f64()) }
}

fn show_tail(log: &Path) {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL);
    if from > 0 {
        eprintln!("    | ... {from} lines before these in {}", log.display());
    }
    for line in &lines[from..] {
        eprintln!("    | {line}");
    }
}
