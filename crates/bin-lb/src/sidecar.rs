//! The sidecar's turn: observe, decide, carry out, report.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::{
    config::Shared,
    contract::Status,
    error::Error,
    errors::{Errors, reason},
    master::{Master, Process, Reload},
    report::{Facts, status},
    turn::{Plan, Running, Seen, Sha, Want, Worker, plan},
    watch,
};

/// A reload must have come to an end after this long.
const LOADED_WITHIN: Duration = Duration::from_mins(1);
/// A master that cannot be reached for this long during a reload has died.
const DEAD_AFTER: Duration = Duration::from_secs(5);
/// How often the end of a reload is looked for.
const GLANCE: Duration = Duration::from_millis(50);
/// HAProxy that is away for this long after a new configuration was written does not start with it.
const STARTS_WITHIN: Duration = Duration::from_secs(15);
/// A refused configuration is tried again after this long, then after twice as long, ...
const FIRST_PAUSE: Duration = Duration::from_mins(1);
/// ... but at least this often: what it lacked (a name that resolves, say) may have come.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// Loads in one turn: candidate, accepted, last good one, and the look that finds nothing left to do.
const ROUNDS: usize = 4;
/// Lines of HAProxy that are kept to explain a failure.
const LINES: usize = 200;

/// The sidecar of one HAProxy.
#[derive(Debug)]
pub struct Sidecar {
    volume: PathBuf,
    shared: Shared,
    master: Master,
    errors: Errors,
    /// What HAProxy printed since a configuration was last written.
    said: VecDeque<String>,
    want: Option<watch::Want>,
    refused: BTreeMap<Sha, Refusal>,
    away_since: Option<Instant>,
}

#[derive(Debug)]
struct Refusal {
    message: String,
    pause: Duration,
    until: Instant,
}

/// How a reload ended.
enum Loaded {
    Yes,
    Refused(String),
}

impl Sidecar {
    /// Serves what is mounted at `volume` through the directory `shared`.
    pub fn new(volume: impl Into<PathBuf>, shared: impl Into<PathBuf>) -> Self {
        let shared = Shared::new(shared);
        Sidecar {
            volume: volume.into(),
            master: Master::new(shared.socket()),
            errors: Errors::follow(shared.errors()),
            shared,
            said: VecDeque::new(),
            want: None,
            refused: BTreeMap::new(),
            away_since: None,
        }
    }

    /// The command line of the HAProxy it looks after.
    pub fn master(&self) -> Master {
        self.master.clone()
    }

    /// Puts a first configuration where HAProxy finds it: the accepted one. The last good one of this pod may be from
    /// before its node was restarted, and name servers that were released since; it is taken only when HAProxy does not
    /// start with the accepted one.
    pub fn init(&self) -> Result<(), Error> {
        self.shared.write(&watch::read(&self.volume)?.accepted)
    }

    /// One turn. Failures are in the status.
    pub async fn turn(&mut self) -> Status {
        let mut error = self.read_want().err();
        let Some(want) = self.want.clone() else {
            return Status { error: error.map(|error| error.to_string()), ..Status::default() };
        };
        let wish = Want {
            accepted: want.accepted.sha.clone(),
            candidate: want.candidate.as_ref().map(|config| config.sha.clone()),
            leaving: want.leaving.clone(),
        };
        self.refused.retain(|sha, _| *sha == wish.accepted || wish.candidate.as_ref() == Some(sha));
        let mut facts = Facts::default();
        for _ in 0..ROUNDS {
            let round = self.round(&want, &wish, &mut facts).await;
            let at_rest = matches!(round, Ok(true));
            error = error.or(round.err());
            if at_rest || error.is_some() {
                break;
            }
        }
        let refused = self.refused.iter().map(|(sha, refusal)| (sha.clone(), refusal.message.clone())).collect();
        let away = facts.running.is_none().then(|| match reason(self.said.iter().map(String::as_str)) {
            Some(reason) => format!("HAProxy does not run: {reason}"),
            None => "HAProxy does not run".to_owned(),
        });
        status(&wish, &facts, &refused, error.map(|error| error.to_string()).or(away))
    }

    /// Looks, decides, acts. True when nothing had to be loaded.
    async fn round(&mut self, want: &watch::Want, wish: &Want, facts: &mut Facts) -> Result<bool, Error> {
        self.listen();
        *facts = self.look(!wish.leaving.is_empty()).await?;
        let good = self.shared.last_good()?;
        let now = Instant::now();
        let seen = Seen {
            on_disk: self.shared.on_disk()?,
            good: good.as_ref().map(|good| good.sha.clone()),
            refused: self
                .refused
                .iter()
                .filter(|(_, refusal)| refusal.until > now)
                .map(|(sha, _)| sha.clone())
                .collect(),
            running: facts.running.clone(),
            will_not_start: self.away_since.is_some_and(|since| now - since >= STARTS_WITHIN),
        };
        let Plan { keep_good, give_up, write, reload, cut } = plan(wish, &seen);
        if keep_good {
            self.shared.keep_good()?;
        }
        for cut in cut {
            info!(worker = cut.pid, backend = cut.backend, server = cut.server, "server is gone: sessions shut");
            self.master.cut(cut.pid, &cut.backend, &cut.server).await?;
        }
        let rest = give_up.is_none() && write.is_none() && reload.is_none();
        if let Some(sha) = give_up {
            let said = reason(self.said.iter().map(String::as_str));
            self.refuse(sha, said.unwrap_or_else(|| "HAProxy does not start with it".to_owned()));
            return Ok(rest);
        }
        if let Some(sha) = write {
            let configs = [want.candidate.as_ref(), Some(&want.accepted), good.as_ref()];
            if let Some(config) = configs.into_iter().flatten().find(|config| config.sha == sha) {
                self.shared.write(config)?;
                self.said.clear();
                self.away_since = self.away_since.map(|_| now);
            }
        }
        if let Some(sha) = reload {
            match self.reload(&sha).await? {
                Loaded::Yes => {
                    info!(configuration = sha, "served");
                    self.refused.remove(&sha);
                }
                Loaded::Refused(message) => self.refuse(sha, message),
            }
        }
        Ok(rest)
    }

    fn read_want(&mut self) -> Result<(), Error> {
        self.want = Some(watch::read(&self.volume)?);
        Ok(())
    }

    /// Passes HAProxy's words on to our log, so that they are found there too.
    fn listen(&mut self) {
        for line in self.errors.new_lines() {
            info!(target: "haproxy", "{line}");
            self.said.push_back(line);
        }
        self.said.drain(..self.said.len().saturating_sub(LINES));
    }

    fn refuse(&mut self, sha: Sha, message: String) {
        warn!(configuration = sha, message, "refused by HAProxy");
        let pause = self.refused.get(&sha).map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
        self.refused.insert(sha, Refusal { message, pause, until: Instant::now() + pause });
    }

    /// The processes and what they serve; their servers only if somebody may leave.
    async fn look(&mut self, leaving: bool) -> Result<Facts, Error> {
        let processes = match self.master.processes().await {
            Ok(processes) => processes,
            Err(Error::Master { source, .. }) if away(&source) => {
                self.away_since.get_or_insert_with(Instant::now);
                return Ok(Facts::default());
            }
            Err(error) => return Err(error),
        };
        self.away_since = None;
        let Some((youngest, others)) = processes.workers.split_first() else { return Ok(Facts::default()) };
        let ask = leaving || !others.is_empty();
        let current = self.worker(*youngest, ask).await;
        let mut old = Vec::new();
        for worker in others {
            old.push(self.worker(*worker, ask).await);
        }
        // A worker that ended between the two questions has no sessions: look who is still there.
        let still: BTreeSet<u32> = if ask {
            self.master.processes().await?.workers.iter().map(|worker| worker.pid).collect()
        } else {
            processes.workers.iter().map(|worker| worker.pid).collect()
        };
        old.retain(|worker| still.contains(&worker.pid));
        let running = Running { current, stale: youngest.age > 0, old };
        Ok(Facts { running: Some(running), version: Some(processes.version) })
    }

    async fn worker(&self, Process { pid, age: _ }: Process, ask: bool) -> Worker {
        let serving = self.master.mark(pid).await.ok().flatten();
        let servers = if ask { self.master.servers(pid).await.ok() } else { None };
        Worker { pid, serving, servers }
    }

    /// Reloads and waits until a worker shows `sha`, or none came up.
    async fn reload(&mut self, sha: &Sha) -> Result<Loaded, Error> {
        let before = self.master.processes().await?.reloads;
        if let Reload::Failure(log) = self.master.reload().await? {
            self.listen();
            return Ok(Loaded::Refused(reason(log.lines()).unwrap_or_else(|| "HAProxy does not say why".to_owned())));
        }
        let start = Instant::now();
        let mut heard = start;
        while start.elapsed() < LOADED_WITHIN {
            match self.master.processes().await {
                Ok(processes) if processes.reloads != before => {
                    heard = Instant::now();
                    let Some(fresh) = processes.workers.first().filter(|worker| worker.age == 0) else {
                        self.listen();
                        let said = reason(self.said.iter().map(String::as_str));
                        let where_else = "HAProxy refused it; the log of its container says why";
                        return Ok(Loaded::Refused(said.unwrap_or_else(|| where_else.to_owned())));
                    };
                    match self.master.mark(fresh.pid).await {
                        Ok(Some(mark)) if mark == *sha => return Ok(Loaded::Yes),
                        Ok(_) => {
                            return Ok(Loaded::Refused("HAProxy does not read the file written for it".to_owned()));
                        }
                        Err(_) => {}
                    }
                }
                Ok(_) => heard = Instant::now(),
                Err(error) if heard.elapsed() > DEAD_AFTER => return Err(error),
                Err(_) => {}
            }
            sleep(GLANCE).await;
        }
        Ok(Loaded::Refused(format!("HAProxy did not serve it within {} s", LOADED_WITHIN.as_secs())))
    }
}

/// Whether the master is not there, rather than slow.
fn away(source: &std::io::Error) -> bool {
    matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused)
}
