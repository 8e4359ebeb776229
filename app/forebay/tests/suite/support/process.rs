//! Roles of the built binary as processes of a test, on free ports, killed when the test lets go of them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::run::{after, command};

/// Every port of `up`, wherever there is one.
const FREE_PORTS: [[&str; 2]; 4] = [
    ["--coordinator-listen", "127.0.0.1:0"],
    ["--worker-listen", "127.0.0.1:0"],
    ["--http", "127.0.0.1:0"],
    ["--flight", "127.0.0.1:0"],
];

/// A running role: `up`, `coordinator` or `worker`. Killed when dropped.
pub struct Role {
    child: Child,
    /// What it listens at, by the words that it prints: `coordinator`, `worker`, `metrics`.
    told: Vec<(String, String)>,
    stderr: Arc<Mutex<String>>,
}

impl Role {
    /// Starts everything in one process, on free ports, and waits until it is up.
    #[track_caller]
    pub fn up(home: &Path) -> Self {
        Self::up_with(home, &[])
    }

    #[track_caller]
    pub fn up_with(home: &Path, flags: &[&str]) -> Self {
        Self::up_of(home, &[&["--dram", "256MiB", "--disk", "512MiB"], flags].concat())
    }

    /// The same with tiers as these flags say.
    #[track_caller]
    pub fn up_of(home: &Path, flags: &[&str]) -> Self {
        Self::start(home, &[&["up"], FREE_PORTS.as_flattened(), flags].concat())
    }

    #[track_caller]
    pub fn coordinator(home: &Path, address: &str) -> Self {
        Self::start(home, &["coordinator", "--coordinator-listen", address, "--http", "127.0.0.1:0", "--data-dir", "coordinator"])
    }

    /// Starts a worker, in a data folder of its own.
    #[track_caller]
    pub fn worker(home: &Path, folder: &str, coordinator: &str) -> Self {
        let place =
            ["--worker-listen", "127.0.0.1:0", "--http", "off", "--data-dir", folder, "--dram", "256MiB", "--disk", "512MiB"];
        Self::start(home, &[&["worker", "--coordinator", coordinator], &place[..]].concat())
    }

    /// Starts it and waits until it says that it is up.
    #[track_caller]
    pub fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut command = command(home);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::spawn(command)
    }

    /// Starts `up` after a line of shell, which sets what a process inherits.
    #[track_caller]
    pub fn up_after(home: &Path, line: &str) -> Self {
        let mut plain = command(home);
        plain.arg("up").args(FREE_PORTS.as_flattened());
        let mut shell = after(line, &plain);
        shell.stdin(Stdio::null());
        Self::spawn(shell)
    }

    #[track_caller]
    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (mut errors, stderr) = (child.stderr.take().unwrap(), Arc::new(Mutex::new(String::new())));
        let log = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = errors.read(&mut bytes) {
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = Vec::new();
        let mut up = false;
        // What is printed in one piece ends with a line that says nothing, or with the address of a worker or an executor.
        while let Some(Ok(line)) = lines.next() {
            up |= line.contains(" is up");
            let words: Vec<_> = line.split_whitespace().map(str::to_string).collect();
            if let [name, place, ..] = words.as_slice() {
                told.push((name.clone(), place.clone()));
            }
            let is_last = |role: &str| line.starts_with(&format!("  {role}")) && command.get_args().any(|flag| flag == role);
            if line.is_empty() || (up && (is_last("worker") || is_last("executor"))) {
                break;
            }
        }
        if !up {
            let status = child.wait().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            panic!("{command:?} ended with {status}: {}", stderr.lock().unwrap());
        }
        // The rest is read so that writing it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, told, stderr }
    }

    /// Where the coordinator listens.
    #[track_caller]
    pub fn address(&self) -> String {
        self.place("coordinator")
    }

    /// An address that it printed.
    #[track_caller]
    pub fn place(&self, name: &str) -> String {
        let place = self.told.iter().find(|(told, _)| told == name);
        place.unwrap_or_else(|| panic!("it does not say {name}: {:?}", self.told)).1.clone()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Kills it for good, at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal, or several at once, with blanks between.
    #[track_caller]
    pub fn signal(&self, names: &str) {
        let each: Vec<_> = names.split(' ').map(|name| format!("kill -{name} {}", self.child.id())).collect();
        assert!(Command::new("sh").args(["-c", &each.join(" && ")]).status().unwrap().success());
    }

    #[track_caller]
    pub fn wait(mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nothing listens at for now.
pub fn free_port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
