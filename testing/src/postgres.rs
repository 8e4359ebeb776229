//! A PostgreSQL server of a test's own, which is stopped as by a crash and started again: a new cluster in a temporary folder, gone at the end.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Error, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The password of the only user of a server that wants one.
pub const POSTGRES_PASSWORD: &str = "s3cret-of-the-test";

/// A server; stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    wants_password: bool,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Postgres {
    /// Whether PostgreSQL is installed.
    pub fn is_installed() -> bool {
        programs().is_some()
    }

    /// Whether it has what makes a server that follows another one.
    pub fn may_be_followed() -> bool {
        programs().is_some_and(|folder| folder.join("pg_basebackup").exists())
    }

    /// Makes a cluster of its own and starts its server.
    pub fn start(address: SocketAddr) -> io::Result<Self> {
        Self::make(address, false)
    }

    /// The same on a free port, of a server that wants [`POSTGRES_PASSWORD`].
    ///
    /// # Panics
    /// When PostgreSQL is not installed, or does not come up.
    pub fn with_password() -> Self {
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        Self::make(address, true).expect("a test that needs a real PostgreSQL")
    }

    fn make(address: SocketAddr, wants_password: bool) -> io::Result<Self> {
        let programs = programs().ok_or_else(|| Error::other("PostgreSQL is not installed: make test-deps"))?;
        let server = Self { folder: folder()?, programs, wants_password, address };
        let (data, password) = (server.data(), server.folder.path().join("password"));
        std::fs::write(&password, POSTGRES_PASSWORD)?;
        let shown = if wants_password { "scram-sha-256" } else { "trust" };
        let flags = ["-U", "bay", "-A", shown, "-E", "UTF8", "--locale=C", "--no-sync", "--pwfile"];
        let flags = flags.iter().map(OsStr::new);
        server.run("initdb", flags.chain([password.as_os_str(), OsStr::new("-D"), data.as_os_str()]))?;
        server.resume()?;
        Ok(server)
    }

    /// The URL of a new, empty database.
    pub fn database(&self, name: &str) -> io::Result<String> {
        self.createdb(&["-E", "UTF8", name])?;
        Ok(self.url_of(name))
    }

    /// Makes a database with these arguments of `createdb`.
    pub fn createdb(&self, arguments: &[&str]) -> io::Result<()> {
        let (host, port) = (self.address.ip().to_string(), self.address.port().to_string());
        let connect = ["-h", &host, "-p", &port, "-U", "bay", "-T", "template0"];
        self.run("createdb", connect.iter().chain(arguments).map(OsStr::new))
    }

    /// Another server, which follows this one: what this one acknowledges from now on is there as well.
    pub fn followed(&self, address: SocketAddr) -> io::Result<Self> {
        let second = Self { folder: folder()?, programs: self.programs.clone(), wants_password: self.wants_password, address };
        let (data, host, port) = (second.data(), self.address.ip().to_string(), self.address.port().to_string());
        let flags = ["-h", &host, "-p", &port, "-U", "bay", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-D"];
        second.run("pg_basebackup", flags.iter().map(OsStr::new).chain([data.as_os_str()]))?;
        second.resume()?;
        let mut settings = File::options().append(true).open(self.data().join("postgresql.conf"))?;
        writeln!(settings, "synchronous_standby_names = '*'")?;
        let data = self.data();
        self.run("pg_ctl", ["-D".as_ref(), data.as_os_str(), "reload".as_ref()])?;
        Ok(second)
    }

    /// It follows nobody any more, and is written to.
    pub fn promote(&self) -> io::Result<()> {
        let data = self.data();
        self.run("pg_ctl", ["-w".as_ref(), "-D".as_ref(), data.as_os_str(), "promote".as_ref()])
    }

    /// The URL of one of its databases, with the password if it wants that.
    pub fn url_of(&self, name: &str) -> String {
        let password = if self.wants_password { format!(":{POSTGRES_PASSWORD}") } else { String::new() };
        format!("postgres://bay{password}@{}/{name}", self.address)
    }

    /// The URL of the database of whichever server is at an address, and wants no password.
    pub fn url_at(address: SocketAddr) -> String {
        format!("postgres://bay@{address}/postgres")
    }

    /// Stops it at once.
    pub fn crash(&self) -> io::Result<()> {
        let data = self.data();
        self.run("pg_ctl", ["-m".as_ref(), "immediate".as_ref(), "-w".as_ref(), "-D".as_ref(), data.as_os_str(), "stop".as_ref()])
    }

    /// Starts it again, at the same address.
    pub fn resume(&self) -> io::Result<()> {
        let (data, log) = (self.data(), self.folder.path().join("log"));
        let (port, folder) = (self.address.port(), self.folder.path().display());
        let options = format!("-p {port} -k {folder} -c listen_addresses={} -c fsync=off", self.address.ip());
        let flags = ["-D".as_ref(), data.as_os_str(), "-o".as_ref(), options.as_ref(), "-l".as_ref(), log.as_os_str()];
        self.run("pg_ctl", flags.into_iter().chain(["-w".as_ref(), "start".as_ref()]))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run<'a>(&self, program: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> io::Result<()> {
        // To a file: the server goes on and would keep a pipe open.
        let said = self.folder.path().join(format!("{program}.out"));
        let out = File::create(&said)?;
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.folder.path()).env("PGPASSWORD", POSTGRES_PASSWORD);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        if let Some((user, group)) = user()? {
            command.uid(user).gid(group);
        }
        match command.status()?.success() {
            true => Ok(()),
            false => Err(Error::other(format!("{program}: {}", std::fs::read_to_string(said).unwrap_or_default()))),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It may be stopped already.
        let _ = self.crash();
    }
}

/// A folder for a server's files.
fn folder() -> io::Result<tempfile::TempDir> {
    // The name of a socket in it has to be short.
    let folder = tempfile::Builder::new().prefix("forebay-pg").tempdir_in("/tmp")?;
    if let Some((user, group)) = user()? {
        std::os::unix::fs::chown(folder.path(), Some(user), Some(group))?;
    }
    Ok(folder)
}

/// The folder of its newest version.
fn programs() -> Option<PathBuf> {
    let is_complete = |folder: &PathBuf| ["initdb", "pg_ctl"].iter().all(|program| folder.join(program).exists());
    let version = |folder: &Path| folder.file_name()?.to_str()?.parse::<u32>().ok();
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed.map(|folder| folder.path()).max_by_key(|folder| version(folder)).map(|folder| folder.join("bin"));
    let on_path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    newest.into_iter().chain(on_path).find(is_complete)
}

/// Whom the server runs as when this runs as root, which it refuses: user postgres.
fn user() -> io::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut numbers = line.unwrap_or_default().split(':').skip(2).map(|field| field.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(user), Some(group)) => Ok(Some((user, group))),
        _ => Err(Error::other("there is no user postgres: make test-deps")),
    }
}
