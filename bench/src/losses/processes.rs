//! The cluster that is killed: each role a process of the binary, ended and started again where it was.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_bench_harness::free_address;
use forebay_types::{Error, Result, ResultExt};

/// How long a cluster may take to answer its first question.
const UP_WITHIN: Duration = Duration::from_secs(60);
/// A worker's DRAM tier, and its disk tier.
const TIERS: [&str; 4] = ["--dram", "256MiB", "--disk", "512MiB"];

/// What a process of the cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Coordinator,
    Scheduler,
    Worker(usize),
    Executor(usize),
}

/// A cluster of real processes: a coordinator, a scheduler, and workers with an executor each, all at ports that they keep.
pub(super) struct Processes {
    binary: PathBuf,
    home: PathBuf,
    coordinator: String,
    running: Vec<(Role, Vec<String>, Child)>,
}

impl Processes {
    /// Starts so many workers and executors, with `data` mounted as `/lake`.
    pub(super) fn start(binary: &Path, home: &Path, workers: usize, data: &Path) -> Result<Self> {
        let coordinator = free_address()?.to_string();
        let (binary, home) = (binary.to_path_buf(), home.to_path_buf());
        let mut all = Self { binary, home, coordinator: coordinator.clone(), running: Vec::new() };
        all.add(Role::Coordinator, &["coordinator", "--coordinator-listen", &coordinator, "--data-dir", "coordinator"])?;
        all.until_answers(&["status", "--json"])?;
        all.ask(&["mount", "add", "lake", &format!("file://{}", data.display())])?;
        for ix in 0..workers {
            let (listen, folder) = (free_address()?.to_string(), format!("worker-{ix}"));
            let flags = ["worker", "--coordinator", &coordinator, "--worker-listen", &listen, "--data-dir", &folder];
            all.add(Role::Worker(ix), &[&flags[..], &TIERS].concat())?;
        }
        let listen = free_address()?.to_string();
        all.add(
            Role::Scheduler,
            &["scheduler", "--coordinator", &coordinator, "--scheduler-listen", &listen, "--data-dir", "scheduler"],
        )?;
        all.until_answers(&["jobs", "--json"])?;
        for ix in 0..workers {
            let (listen, folder) = (free_address()?.to_string(), format!("executor-{ix}"));
            let flags = ["executor", "--coordinator", &coordinator, "--executor-listen", &listen, "--data-dir", &folder];
            all.add(Role::Executor(ix), &[&flags[..], &["--slots", "2"]].concat())?;
        }
        Ok(all)
    }

    /// Kills it as a crash would, at once.
    pub(super) fn kill(&mut self, role: Role) -> Result<()> {
        let (_, _, child) = self.find(role)?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    pub(super) fn restart(&mut self, role: Role) -> Result<()> {
        let arguments = self.find(role)?.1.clone();
        let child = self.spawn(role, &arguments)?;
        self.find(role)?.2 = child;
        Ok(())
    }

    /// Runs a command to its end; its output.
    pub(super) fn ask(&self, arguments: &[&str]) -> Result<String> {
        let output = self.maker()(arguments).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::internal(format!("forebay {}: {said}", arguments.join(" "))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes commands that ask this cluster, also when this is elsewhere.
    pub(super) fn maker(&self) -> impl Fn(&[&str]) -> Command + Send + 'static {
        let (binary, home, coordinator) = (self.binary.clone(), self.home.clone(), self.coordinator.clone());
        move |arguments| {
            let mut command = command(&binary, &home, arguments);
            command.args(["--coordinator", &coordinator]);
            command
        }
    }

    fn add(&mut self, role: Role, arguments: &[&str]) -> Result<()> {
        let arguments: Vec<String> = arguments.iter().chain(&["--http", "off"]).map(ToString::to_string).collect();
        let child = self.spawn(role, &arguments)?;
        self.running.push((role, arguments, child));
        Ok(())
    }

    /// Its log goes on in the file that it has below the home.
    fn spawn(&self, role: Role, arguments: &[String]) -> Result<Child> {
        let path = self.home.join(format!("{role:?}.log").to_lowercase());
        let log = File::options().create(true).append(true).open(&path).context(|| path.display())?;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Ok(command(&self.binary, &self.home, &arguments).stdout(Stdio::null()).stderr(log).spawn()?)
    }

    fn find(&mut self, role: Role) -> Result<&mut (Role, Vec<String>, Child)> {
        let found = self.running.iter_mut().find(|(of, ..)| *of == role);
        found.ok_or_else(|| Error::internal(format!("there is no {role:?}")))
    }

    fn until_answers(&self, arguments: &[&str]) -> Result<()> {
        let began = Instant::now();
        loop {
            match self.ask(arguments) {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > UP_WITHIN => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for (_, _, child) in &mut self.running {
            // It may have been killed already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command(binary: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FOREBAY_") {
            command.env_remove(&name);
        }
    }
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME").current_dir(home);
    // However little a query reads.
    command.env("FOREBAY_DISTRIBUTE_FROM", "0B");
    command.args(arguments).stdin(Stdio::null());
    command
}
