//! A PostgreSQL server of the test's own: a new cluster in a temporary folder, on a free port, gone at the end.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The password of the server's only user.
pub const PASSWORD: &str = "s3cret-of-the-test";

/// A running server; stopped when dropped.
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
}

impl PostgresServer {
    /// Makes a cluster and starts its server. Panics, and says how to install it, when PostgreSQL is not there.
    pub fn start() -> Self {
        let programs = find_programs().expect(
            "PostgreSQL is not installed, and this test needs a real one: run `make test-deps` (apt-get install postgresql)",
        );
        let folder = tempfile::Builder::new().prefix("forebay-pg").tempdir_in("/tmp").expect("a folder below /tmp");
        if let Some((uid, gid)) = server_user() {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).expect("root may give folders away");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
        let server = Self { folder, programs, port };
        let password_file = server.folder.path().join("password");
        std::fs::write(&password_file, PASSWORD).expect("the folder is writable");
        let data = server.data();
        server.run(
            "initdb",
            [
                "-D".as_ref(),
                data.as_os_str(),
                "-U".as_ref(),
                "bay".as_ref(),
                "-A".as_ref(),
                "scram-sha-256".as_ref(),
                "-E".as_ref(),
                "UTF8".as_ref(),
                "--locale=C".as_ref(),
                "--no-sync".as_ref(),
                "--pwfile".as_ref(),
                password_file.as_os_str(),
            ],
        );
        server.resume();
        server
    }

    /// The URL of a new, empty database.
    pub fn database(&self, name: &str) -> String {
        self.createdb(&["-E", "UTF8", name]);
        self.url(name)
    }

    pub fn createdb(&self, arguments: &[&str]) {
        let port = self.port.to_string();
        let connect = ["-h", "127.0.0.1", "-p", &port, "-U", "bay", "-T", "template0"];
        self.run("createdb", connect.iter().chain(arguments));
    }

    /// The URL of a database, with the password.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://bay:{PASSWORD}@127.0.0.1:{}/{name}", self.port)
    }

    pub fn crash(&self) {
        self.run("pg_ctl", ["-D".as_ref(), self.data().as_os_str(), "-m".as_ref(), "immediate".as_ref(), "stop".as_ref()]);
    }

    /// Starts the server again, on the same port.
    pub fn resume(&self) {
        let options = format!("-p {} -k {} -c listen_addresses=127.0.0.1 -c fsync=off", self.port, self.folder.path().display());
        let log = self.folder.path().join("log");
        self.run(
            "pg_ctl",
            [
                "-D".as_ref(),
                self.data().as_os_str(),
                "-o".as_ref(),
                options.as_ref(),
                "-l".as_ref(),
                log.as_os_str(),
                "-w".as_ref(),
                "start".as_ref(),
            ],
        );
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path()).env("PGPASSWORD", PASSWORD).stdin(Stdio::null());
        // A server does not run as root.
        if let Some((uid, gid)) = server_user() {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn run<A: Into<OsString> + AsRef<std::ffi::OsStr>>(&self, program: &str, arguments: impl IntoIterator<Item = A>) {
        // To a file: the server goes on and would keep a pipe open.
        let said = self.folder.path().join(format!("{program}.out"));
        let out = std::fs::File::create(&said).expect("the folder is writable");
        let err = out.try_clone().expect("descriptors are left");
        let status = self.command(program).args(arguments).stdout(out).stderr(err).status().expect("the program runs");
        assert!(status.success(), "{program} failed: {}", std::fs::read_to_string(said).unwrap_or_default());
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let mut stop = self.command("pg_ctl");
        stop.arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]);
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// The newest of /usr/lib/postgresql/*/bin, else the first folder of PATH with the programs.
fn find_programs() -> Option<PathBuf> {
    let complete = |folder: &Path| ["initdb", "pg_ctl", "createdb"].iter().all(|program| folder.join(program).exists());
    let version = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|folders| folders.flatten().map(|folder| folder.path()).collect())
        .unwrap_or_default();
    installed.sort_by_key(version);
    let mut candidates: Vec<PathBuf> = installed.into_iter().rev().map(|folder| folder.join("bin")).collect();
    candidates.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    candidates.into_iter().find(|folder| complete(folder))
}

/// Whom the server runs as when the test runs as root: user postgres.
fn server_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("a list of users");
    let user = users.lines().find(|line| line.starts_with("postgres:")).expect("the package makes user postgres");
    let mut fields = user.split(':').skip(2).map(|field| field.parse::<u32>().expect("a number"));
    Some((fields.next().expect("a user id"), fields.next().expect("a group id")))
}
