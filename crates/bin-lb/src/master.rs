//! HAProxy's master command line: one connection per command, and readers for the few answers we need.
//!
//! Seen with 2.2, 2.6, 3.0 and 3.2. What differs between them is in the columns of `show proc` and in the answer to
//! `reload` (nothing before 2.7, `Success=0|1` and the log since), so columns are found by their names.

use std::{collections::BTreeMap, io, net::IpAddr, path::PathBuf, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use crate::{config::MARK, contract::BackendState, error::Error, health};

/// How long a worker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the master may take to load a configuration (2.7 and later answer only then).
const RELOAD_PATIENCE: Duration = Duration::from_mins(1);

/// The master's socket.
#[derive(Clone, Debug)]
pub struct Master {
    socket: PathBuf,
}

/// What `show proc` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// How often the master was reloaded.
    pub reloads: u64,
    /// As HAProxy prints it.
    pub version: String,
    /// Worker and how many reloads ago it was started, the youngest first.
    pub workers: Vec<Process>,
}

/// One worker of `show proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id in HAProxy's container.
    pub pid: u32,
    /// Reloads since its start; 0 is what the last reload brought up.
    pub age: u64,
}

/// A server as a worker knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// Its backend.
    pub backend: String,
    /// Its name in the configuration.
    pub name: String,
    /// Where it is: the host name if the configuration gives one, else the address.
    pub place: Place,
    /// Sessions on it now, with those that wait for it.
    pub sessions: u64,
}

/// Host name or address of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An address written as such in the configuration.
    Address(IpAddr),
    /// A host name, or a form we do not know (`unix@...`).
    Name(String),
}

impl Place {
    /// Reads an address, or keeps the text.
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Place::Name(text.to_owned()), Place::Address)
    }
}

/// How `reload` was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// The new configuration is served (2.7 and later).
    Success,
    /// It is not, and this is the log (2.7 and later).
    Failure(String),
    /// This version does not say.
    Silent,
}

impl Master {
    /// Talks to the master that listens on `socket`.
    pub fn new(socket: PathBuf) -> Self {
        Master { socket }
    }

    /// The processes.
    pub async fn processes(&self) -> Result<Processes, Error> {
        let command = "show proc";
        processes(&self.ask(command, PATIENCE).await?)
            .ok_or(Error::Answer { command: command.to_owned(), what: "the row of the master" })
    }

    /// Checksum of the configuration that worker `pid` runs; none when it has no mark, so was not written by us.
    pub async fn mark(&self, pid: u32) -> Result<Option<String>, Error> {
        let command = format!("@!{pid} show env {MARK}");
        let answer = self.ask(&command, PATIENCE).await?;
        match mark(&answer) {
            None if answer.trim().is_empty() => Err(Error::Answer { command, what: "anything (the worker is gone)" }),
            mark => Ok(mark),
        }
    }

    /// The servers of worker `pid` with their sessions.
    pub async fn servers(&self, pid: u32) -> Result<Vec<Server>, Error> {
        let command = format!("@!{pid} show servers state");
        let state = self.ask(&command, PATIENCE).await?;
        let counts = self.ask(&format!("@!{pid} show stat -1 4 -1"), PATIENCE).await?;
        let Some((mut servers, counted)) = servers(&state, &counts) else {
            return Err(Error::Answer { command, what: "the table of servers" });
        };
        if !counted {
            let all = self.ask(&format!("@!{pid} show sess"), PATIENCE).await?;
            for server in &mut servers {
                server.sessions = sessions_of(&all, &server.backend, &server.name).map(|_| 1).sum();
            }
        }
        Ok(servers)
    }

    /// How the servers of worker `pid` are, as its checks found.
    pub async fn health(&self, pid: u32) -> Result<Vec<BackendState>, Error> {
        let command = format!("@!{pid} show stat -1 4 -1");
        health::read(&self.ask(&command, PATIENCE).await?)
            .ok_or(Error::Answer { command, what: "the table of servers" })
    }

    /// Shuts the sessions of `server` in worker `pid`. One by one: `shutdown sessions server` is refused in an old
    /// worker, whose proxies are stopped, and that is where the sessions of leaving servers are.
    pub async fn cut(&self, pid: u32, backend: &str, server: &str) -> Result<(), Error> {
        let all = self.ask(&format!("@!{pid} show sess"), PATIENCE).await?;
        for id in sessions_of(&all, backend, server) {
            self.ask(&format!("@!{pid} shutdown session {id}"), PATIENCE).await?;
        }
        Ok(())
    }

    /// Makes the master read its configuration anew.
    pub async fn reload(&self) -> Result<Reload, Error> {
        Ok(reload(&self.ask("reload", RELOAD_PATIENCE).await?))
    }

    async fn ask(&self, command: &str, patience: Duration) -> Result<String, Error> {
        let talk = async {
            let mut socket = UnixStream::connect(&self.socket).await?;
            socket.write_all(format!("{command}\n").as_bytes()).await?;
            socket.shutdown().await?;
            let mut answer = Vec::new();
            match socket.read_to_end(&mut answer).await {
                // A master that starts anew to reload (before 2.7) may reset the connection.
                Err(source) if source.kind() != io::ErrorKind::ConnectionReset => Err(source),
                _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
            }
        };
        let answer = timeout(patience, talk).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        answer.map_err(|source| Error::Master { command: command.to_owned(), source })
    }
}

fn processes(answer: &str) -> Option<Processes> {
    // The column `<relative PID>` of 2.2 to 2.4 is written with a blank, so only the columns after it shift: count them
    // from the row's type instead: [relative] reloads [failed: n] uptime version.
    let relative = answer.lines().next()?.contains("<relative PID>");
    let mut found = Processes::default();
    let mut master = false;
    for line in answer.lines().filter(|line| !line.starts_with('#')) {
        let line = line.replace("[was: ", "[was:");
        let mut words = line.split_whitespace();
        let (Some(pid), Some(kind)) = (words.next(), words.next()) else { continue };
        if relative {
            words.next();
        }
        let (Ok(pid), Some(Ok(age))) = (pid.parse(), words.next().map(str::parse)) else { continue };
        match kind {
            "master" => {
                master = true;
                found.reloads = age;
                words.next_back().unwrap_or_default().clone_into(&mut found.version);
            }
            "worker" => found.workers.push(Process { pid, age }),
            _ => {}
        }
    }
    found.workers.sort_by_key(|worker| worker.age);
    master.then_some(found)
}

fn mark(answer: &str) -> Option<String> {
    let value = answer.lines().find_map(|line| line.strip_prefix(MARK)?.strip_prefix('='))?;
    Some(value.trim().to_owned())
}

/// The servers, and whether all were counted: up to 2.3 the counts of an old worker lack those of its stopped backends,
/// that is all of them.
fn servers(state: &str, counts: &str) -> Option<(Vec<Server>, bool)> {
    let sessions = sessions(counts)?;
    let mut lines = state.lines().skip_while(|line| !line.starts_with("# "));
    let header: Vec<&str> = lines.next()?.trim_start_matches("# ").split(' ').collect();
    let column = |name: &str| header.iter().position(|title| *title == name);
    let (backend, name) = (column("be_name")?, column("srv_name")?);
    let (address, host) = (column("srv_addr")?, column("srv_fqdn")?);
    let mut counted = true;
    let mut read = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let field = |at: usize| fields.get(at).copied();
        let (backend, name) = (field(backend)?.to_owned(), field(name)?.to_owned());
        let place = match field(host)? {
            "-" => Place::parse(field(address)?),
            host => Place::Name(host.to_owned()),
        };
        // The master's own proxy shows the workers as servers up to 2.4.
        if backend == "MASTER" {
            return None;
        }
        let sessions = sessions.get(&(backend.clone(), name.clone())).copied();
        counted &= sessions.is_some();
        Some(Server { backend, name, place, sessions: sessions.unwrap_or(0) })
    };
    let servers = lines.filter_map(&mut read).collect();
    Some((servers, counted))
}

/// Sessions per backend and server, from the CSV of `show stat`.
fn sessions(counts: &str) -> Option<BTreeMap<(String, String), u64>> {
    let mut lines = counts.lines().skip_while(|line| !line.starts_with("# "));
    let header: Vec<&str> = lines.next()?.trim_start_matches("# ").split(',').collect();
    let column = |name: &str| header.iter().position(|title| *title == name);
    let (proxy, server, current, queued) = (column("pxname")?, column("svname")?, column("scur")?, column("qcur")?);
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let key = ((*fields.get(proxy)?).to_owned(), (*fields.get(server)?).to_owned());
        Some((key, number(current) + number(queued)))
    };
    Some(lines.filter(|line| !line.trim().is_empty()).filter_map(read).collect())
}

/// The ids in `show sess` of the sessions that are on `server`.
fn sessions_of<'a>(all: &'a str, backend: &str, server: &str) -> impl Iterator<Item = &'a str> {
    let (backend, server) = (format!("be={backend}"), format!("srv={server}"));
    all.lines().filter_map(move |line| {
        let (id, about) = line.split_once(": ")?;
        let about: Vec<&str> = about.split(' ').collect();
        (about.contains(&backend.as_str()) && about.contains(&server.as_str())).then_some(id)
    })
}

fn reload(answer: &str) -> Reload {
    match answer.lines().next().map(str::trim) {
        Some("Success=1") => Reload::Success,
        Some("Success=0") => Reload::Failure(answer.lines().skip(1).collect::<Vec<_>>().join("\n")),
        _ => Reload::Silent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_2_2_with_relative_ids() {
        let answer = "\
#<PID>          <type>          <relative PID>  <reloads>       <uptime>        <version>
13640           master          0               3               0d00h00m02s     2.2.9-2+deb11u6
# workers
13921           worker          1               0               0d00h00m00s     2.2.9-2+deb11u6
# old workers
13643           worker          [was: 1]        2               0d00h00m02s     2.2.9-2+deb11u6
# programs
";
        let workers = vec![Process { pid: 13921, age: 0 }, Process { pid: 13643, age: 2 }];
        let version = "2.2.9-2+deb11u6".to_owned();
        assert_eq!(processes(answer), Some(Processes { reloads: 3, version, workers }));
    }

    #[test]
    fn processes_of_2_6_after_a_refused_reload() {
        let answer = "\
#<PID>          <type>          <reloads>       <uptime>        <version>
5151            master          1 [failed: 1]   0d00h00m03s     2.6.12-1+deb12u4
# workers
5154            worker          1               0d00h00m03s     2.6.12-1+deb12u4
# programs
77              program         0               0d00h00m03s     -
";
        let (version, workers) = ("2.6.12-1+deb12u4".to_owned(), vec![Process { pid: 5154, age: 1 }]);
        assert_eq!(processes(answer), Some(Processes { reloads: 1, version, workers }));
        assert_eq!(processes("Unknown command"), None);
    }

    #[test]
    fn servers_with_sessions_and_host_names() {
        let state = "1\n\
            # be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_fqdn srv_port\n\
            2 b 1 s1 10.0.0.1 0 0 - 1\n\
            2 b 2 s2 2001:db8:0::1 0 1 - 1\n\
            2 b 3 s3 10.0.0.3 0 0 node.example 1\n\
            4 MASTER 1 cur-1 - 2 0 - 0\n";
        let counts = "# pxname,svname,qcur,qmax,scur\nb,s1,1,0,2\nb,s2,0,0,0\n";
        let server = |name: &str, place: &str, sessions| Server {
            backend: "b".to_owned(),
            name: name.to_owned(),
            place: Place::parse(place),
            sessions,
        };
        assert_eq!(
            servers(state, counts),
            Some((
                vec![server("s1", "10.0.0.1", 3), server("s2", "2001:db8::1", 0), server("s3", "node.example", 0)],
                false,
            )),
            "s3 has no count"
        );
        let (_, counted) = servers(state, &format!("{counts}b,s3,0,0,0\n")).unwrap();
        assert!(counted);
        assert_eq!(servers("", counts), None, "a worker that is gone answers nothing");
    }

    #[test]
    fn sessions_are_found_by_backend_and_server() {
        let all = "0x1a: proto=tcpv4 src=127.0.0.1:9 fe=api be=api srv=node-1 ts=04\n\
                   0x2b: proto=tcpv4 src=127.0.0.1:9 fe=api be=api srv=node-10 ts=04\n\
                   0x3c: proto=tcpv4 src=127.0.0.1:9 fe=api be=web srv=node-1 ts=04\n";
        assert_eq!(sessions_of(all, "api", "node-1").collect::<Vec<_>>(), ["0x1a"]);
    }

    #[test]
    fn the_mark_of_a_worker_and_the_answer_to_reload() {
        assert_eq!(mark("SLIPWAY_CONFIG=abc\n\n"), Some("abc".to_owned()));
        assert_eq!(mark("Variable not found\n"), None);
        assert_eq!(reload(""), Reload::Silent);
        assert_eq!(reload("Success=1\n--\n[NOTICE] x\n"), Reload::Success);
        assert_eq!(reload("Success=0\n--\n[ALERT] x\n"), Reload::Failure("--\n[ALERT] x".to_owned()));
    }
}
