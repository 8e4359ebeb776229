//! One process of the binary, which is started again as it was.

use std::fs::OpenOptions;
use std::io::{self, Error};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde::Serialize;

use super::{Clock, metrics};

/// How long a process may take until it answers `/healthz`, or is ready, and until it has ended when it is told to.
const UP_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A role of the binary, with all that it is started with. Killed when dropped.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub name: String,
    binary: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
    /// Where it serves `/metrics`.
    pub http: SocketAddr,
    group: Option<PathBuf>,
    clock: Option<Clock>,
    child: Option<Child>,
}

/// What the system says that a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Its number: another one after each start.
    pub pid: i32,
    /// Memory that is no file's and that it shares with nobody, in bytes: all but the tiers, the program and what it has mapped.
    pub own_bytes: u64,
    /// Descriptors that it has open.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Process {
    /// A process that is not started yet. It serves `/metrics` and `/healthz` at `http`, and its log is `NAME.log` in the folder.
    pub fn new(name: &str, binary: &Path, folder: &Path, http: SocketAddr, arguments: &[String]) -> Self {
        let (name, binary, folder) = (name.to_owned(), binary.to_owned(), folder.to_owned());
        let (arguments, environment) = (arguments.to_vec(), Vec::new());
        Self { name, binary, arguments, environment, folder, http, group: None, clock: None, child: None }
    }

    /// Sets a variable of its environment, which has nothing of this process's own but the path of programs.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// From the next start on it has this time of the day.
    pub(super) fn with_clock(self, clock: Clock) -> Self {
        let mut process = clock.variables().into_iter().fold(self, |process, (name, value)| process.with(name, &value));
        process.clock = Some(clock);
        process
    }

    /// From the next start on it is in this control group, if in any.
    pub fn within(mut self, group: Option<&Path>) -> Self {
        self.group = group.map(Path::to_owned);
        self
    }

    /// From the next start on it is of another binary.
    pub fn set_binary(&mut self, binary: &Path) {
        binary.clone_into(&mut self.binary);
    }

    /// What it says.
    pub fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// Starts it, and does not wait for it to be up.
    pub fn start(&mut self) -> io::Result<()> {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let mut command = Command::new(&self.binary);
        command.args(&self.arguments).current_dir(&self.folder).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(command.spawn().map_err(|error| Error::other(format!("{}: {error}", self.binary.display())))?);
        match &self.group {
            Some(group) => std::fs::write(group.join("cgroup.procs"), self.pid()?.as_raw_nonzero().to_string()),
            None => Ok(()),
        }
    }

    /// Back when it answers that it is up: a process does so while it still starts, and a coordinator waits for its database.
    pub fn wait_until_up(&mut self) -> io::Result<()> {
        self.wait_until("/healthz")
    }

    /// Back when it says that it can be asked.
    pub fn wait_until_ready(&mut self) -> io::Result<()> {
        self.wait_until("/readyz")
    }

    fn wait_until(&mut self, path: &str) -> io::Result<()> {
        let began = Instant::now();
        while !metrics::says_yes(self.http, path) {
            if !self.runs() || began.elapsed() > UP_WITHIN {
                return Err(Error::other(format!("{} does not come up, see {}", self.name, self.log().display())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether there is such a process.
    pub fn runs(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        child.kill()?;
        child.wait().map(drop)
    }

    /// Starts it again if it has ended, and whether it had.
    pub fn revive(&mut self) -> io::Result<bool> {
        if self.runs() {
            return Ok(false);
        }
        self.child = None;
        self.start()?;
        Ok(true)
    }

    /// Ends it in order.
    pub fn end(&mut self) -> io::Result<()> {
        if self.runs() {
            self.signal(Signal::TERM)?;
        }
        let began = Instant::now();
        while self.runs() {
            if began.elapsed() > ENDS_WITHIN {
                self.kill()?;
                return Err(Error::other(format!("{} does not end, see {}", self.name, self.log().display())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.child = None;
        Ok(())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Sets its time of the day so many seconds ahead of the system's, behind it where that is negative.
    pub fn set_clock(&self, ahead_secs: i64) -> io::Result<()> {
        let no_clock = || Error::other(format!("{} has no clock of its own", self.name));
        let clock = self.clock.as_ref().ok_or_else(no_clock)?;
        let maps = std::fs::read_to_string(self.of_system("maps")?)?;
        clock.check(&maps).map_err(|error| Error::other(format!("{}: {error}", self.name)))?;
        clock.set(ahead_secs)
    }

    /// Lets it have no more of a resource than this; none for as much as it may.
    pub fn limit(&self, resource: Resource, most: Option<u64>) -> io::Result<()> {
        let pid = self.pid()?;
        let maximum = maximum_of(pid, resource)?;
        prlimit(Some(pid), resource, Rlimit { current: most.or(maximum), maximum })?;
        Ok(())
    }

    /// Descriptors that it has open.
    pub fn descriptors(&self) -> io::Result<u64> {
        Ok(std::fs::read_dir(self.of_system("fd")?)?.count() as u64)
    }

    /// Addresses that it has mapped, in bytes.
    pub fn address_bytes(&self) -> io::Result<u64> {
        self.status("VmSize:").map(|kib| kib << 10)
    }

    /// What it has.
    pub fn usage(&self) -> io::Result<Usage> {
        Ok(Usage {
            pid: self.pid()?.as_raw_nonzero().get(),
            own_bytes: self.status("RssAnon:")? << 10,
            descriptors: self.descriptors()?,
            threads: self.status("Threads:")?,
        })
    }

    /// A number that the system says of it, in KiB where it is of memory.
    fn status(&self, name: &str) -> io::Result<u64> {
        let status = std::fs::read_to_string(self.of_system("status")?)?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| Error::other(format!("the system does not say {name} of {}", self.name)))
    }

    fn pid(&self) -> io::Result<Pid> {
        let child = self.child.as_ref().ok_or_else(|| Error::other(format!("{} does not run", self.name)))?;
        Ok(Pid::from_child(child))
    }

    fn of_system(&self, file: &str) -> io::Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/{file}", self.pid()?.as_raw_nonzero())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.kill();
    }
}

/// The limit that a process may raise its own to; none where there is none.
fn maximum_of(pid: Pid, resource: Resource) -> io::Result<Option<u64>> {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero()))?;
    let name = match resource {
        Resource::Nofile => "Max open files",
        Resource::As => "Max address space",
        _ => return Err(Error::other("a limit that the storm does not set")),
    };
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()))
}
