//! A cluster of the built binary: a coordinator, three workers and a gateway, each in a process of its own, over an S3 service
//! whose faults can be called.
//!
//! The third worker is reached, and reaches the coordinator, by links that can be cut; nobody reads it in place.

mod clock;
mod commands;
mod disk;
mod draining;
mod fuse;
mod group;
mod link;
mod metrics;
mod pair;
mod process;
mod sql;
mod standby;
mod upgrade;

use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use forebay_demo::{ACCESS_KEY, S3Server, S3Settings, SECRET_KEY};
pub use forebay_testing::Postgres;

pub use clock::Clock;
pub use commands::{Commands, Ran};
pub use disk::SmallDisk;
pub use fuse::{FailingDisk, Hanging, KEYS as FOLDER_KEYS, may_mount};
pub use group::Group;
pub use link::{Link, Way};
pub use metrics::metric;
pub use pair::Pair;
pub use process::{Process, Usage};
pub use sql::SqlRoles;
pub use standby::Standby;

/// Workers of a cluster, of which the last is behind links.
pub const WORKERS: usize = 3;
/// The worker that is behind links.
pub const LINKED: usize = WORKERS - 1;
/// The bucket that all mounts are in.
pub const BUCKET: &str = "storm";
/// The mount that is asked at each open, and the one that is not.
pub const FRESH: &str = "fresh";
/// See [`FRESH`].
pub const AGING: &str = "aging";
/// The mount of the folder that may hang.
pub const FOLDER: &str = "folder";
/// How long a version may be taken for the current one in [`AGING`], in seconds.
pub const TTL_SECS: u64 = 2;
/// What S3 clients of the gateway show.
pub const GATEWAY_KEY: (&str, &str) = ("storm", "the-secret-of-the-storm");

const CLUSTER_SECRET: &str = "the secret of the storm's processes";
const DRAM: &str = "24MiB";
const DISK: &str = "256MiB";

/// What a cluster is to have beside its processes.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Its metadata in PostgreSQL, else in SQLite.
    pub postgres: bool,
    /// A second coordinator that stands by, which wants them in PostgreSQL.
    pub standby: bool,
    /// Its metadata in two PostgreSQL servers.
    pub pair: bool,
    /// A small disk for the tiers of the first worker.
    pub small_disk: bool,
    /// Schedulers and executors.
    pub sql: bool,
    /// A mount of a folder that may hang.
    pub hanging: bool,
    /// A disk that may fail for the tiers of the first worker.
    pub failing_disk: bool,
    /// A time of the day of its own for each process.
    pub clocks: bool,
    /// A control group that its processes are in.
    pub group: Option<PathBuf>,
}

impl Wanted {
    /// What either wants.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            postgres: self.postgres || other.postgres,
            standby: self.standby || other.standby,
            pair: self.pair || other.pair,
            small_disk: self.small_disk || other.small_disk,
            sql: self.sql || other.sql,
            hanging: self.hanging || other.hanging,
            failing_disk: self.failing_disk || other.failing_disk,
            clocks: self.clocks || other.clocks,
            group: self.group.or(other.group),
        }
    }
}

/// What a cluster has beside its processes, where that is wanted.
#[derive(Debug)]
pub struct Beside {
    /// What runs SQL on several machines, where something does.
    pub sql: Option<SqlRoles>,
    /// The coordinator that stands by, where one does.
    pub standby: Option<Standby>,
    /// Metadata, where it is not in SQLite.
    pub postgres: Option<Postgres>,
    /// The same, where it is in two servers.
    pub pair: Option<Pair>,
    /// The first worker's, where it is a small one.
    pub disk: Option<SmallDisk>,
    /// The same, where it is one that may fail.
    pub failing: Option<FailingDisk>,
    /// A folder that may hang, where there is one.
    pub hanging: Option<Hanging>,
}

/// A running cluster. All of it ends when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    /// Decides.
    pub coordinator: Process,
    /// Serve.
    pub workers: Vec<Process>,
    /// One more, which is not started with the others.
    pub spare: Process,
    /// Where clients reach the workers, the spare one last.
    pub reached: Vec<SocketAddr>,
    /// Speaks S3.
    pub gateway: Process,
    /// From everybody to the last worker.
    pub to_worker: Link,
    /// From the last worker to the coordinator.
    pub to_coordinator: Link,
    /// What only some faults want.
    pub beside: Beside,
    /// Where S3 clients find the gateway.
    pub s3: SocketAddr,
    /// Where all others find the coordinator, or whichever of two leads: an address, or two with a comma.
    pub coordinators: String,
    folder: PathBuf,
    binary: PathBuf,
}

/// Shared storage, on a thread of this process.
pub fn store() -> io::Result<S3Server> {
    S3Server::start(S3Settings { buckets: vec![BUCKET.to_owned()], ..S3Settings::default() }).map_err(Error::other)
}

impl Cluster {
    /// Starts one in a folder and mounts the store.
    pub async fn start(binary: &Path, folder: &Path, store: &S3Server, wanted: Wanted) -> io::Result<Self> {
        let postgres = wanted.postgres.then(|| Postgres::start(free_address()?)).transpose()?;
        let pair = if wanted.pair { Some(Pair::start().await?) } else { None };
        let failing = wanted.failing_disk.then(|| FailingDisk::mount(folder)).transpose()?;
        let hanging = wanted.hanging.then(|| Hanging::mount(folder)).transpose()?;
        let disk = wanted.small_disk.then(|| SmallDisk::mount(folder)).transpose()?;
        let clocks =
            wanted.clocks.then(|| Clock::library().ok_or_else(|| Error::other("there is no libfaketime"))).transpose()?;
        let [address, s3] = [free_address()?, free_address()?];
        let second = wanted.standby.then(free_address).transpose()?;
        let coordinators = second.map_or_else(|| address.to_string(), |second| format!("{address},{second}"));
        let to_coordinator = Link::open(free_address()?, address).await?;
        let inner = free_address()?;
        let to_worker = Link::open(free_address()?, inner).await?;
        let role = |name: &str, arguments: &[String]| -> io::Result<Process> {
            let http = free_address()?;
            let own = disk.as_ref().map(SmallDisk::place).or_else(|| failing.as_ref().map(FailingDisk::place));
            let data = own.filter(|_| name == "worker-0").unwrap_or(folder).join(name);
            let own = [arguments, &[flag("http", http), flag("data-dir", data.display())]].concat();
            let process = Process::new(name, binary, folder, http, &own).within(wanted.group.as_deref());
            let process = with_environment(process, folder);
            if let Some(library) = &clocks { Ok(process.with_clock(Clock::make(library, folder, name)?)) } else { Ok(process) }
        };
        let url = postgres.as_ref().map(|server| server.url_of("postgres")).or_else(|| pair.as_ref().map(Pair::url));
        let leads = |name: &str, at: SocketAddr| {
            let arguments = ["coordinator".to_owned(), flag("coordinator-listen", at)].into_iter();
            role(name, &arguments.chain(url.as_ref().map(|url| flag("metadata", url))).collect::<Vec<_>>())
        };
        let coordinator = leads("coordinator", address)?;
        let standby = if let Some(at) = second { Some(Standby { process: leads("standby", at)?, address: at }) } else { None };
        let mut reached = Vec::new();
        let worker = |number: usize| -> io::Result<Process> {
            let mut arguments = vec!["worker".to_owned(), flag("dram", DRAM), flag("disk", DISK)];
            if number == LINKED {
                reached.push(to_worker.address);
                arguments.extend([flag("worker-listen", inner), flag("advertise", to_worker.address)]);
                arguments.extend([flag("coordinator", to_coordinator.address), "--no-in-place".to_owned()]);
            } else {
                reached.push(free_address()?);
                arguments.extend([flag("worker-listen", reached[number]), flag("coordinator", &coordinators)]);
            }
            role(&format!("worker-{number}"), &arguments)
        };
        let mut workers = (0..=WORKERS).map(worker).collect::<io::Result<Vec<_>>>()?;
        let spare = workers.pop().ok_or_else(|| Error::other("a cluster has workers"))?;
        let gateway = role("gateway", &["gateway".to_owned(), flag("coordinator", &coordinators), flag("s3", s3)])?;
        let sql = wanted.sql.then(|| SqlRoles::new(&coordinators, role)).transpose()?;
        let (folder, binary) = (folder.to_owned(), binary.to_owned());
        let mut cluster = Self {
            coordinator,
            workers,
            spare,
            reached,
            gateway,
            to_worker,
            to_coordinator,
            beside: Beside { sql, standby, postgres, pair, disk, failing, hanging },
            s3,
            coordinators,
            folder,
            binary,
        };
        cluster.begin(store)?;
        cluster.begin_sql().await?;
        Ok(cluster)
    }

    /// All processes.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        let sql = self.beside.sql.iter_mut().flat_map(SqlRoles::processes);
        let standby = self.beside.standby.iter_mut().map(|standby| &mut standby.process);
        [&mut self.coordinator, &mut self.gateway].into_iter().chain(&mut self.workers).chain(sql).chain(standby)
    }

    /// Commands to it.
    pub fn commands(&self) -> Commands {
        Commands::new(&self.binary, &self.folder, &self.coordinators)
    }

    /// What the owner of the cluster shows.
    pub fn owner_secret(&self) -> io::Result<String> {
        Ok(std::fs::read_to_string(self.folder.join("coordinator/owner.secret"))?.trim().to_owned())
    }

    /// Ends all processes in order.
    pub fn end(&mut self) -> io::Result<()> {
        self.gateway.end()?;
        self.beside.sql.iter_mut().try_for_each(SqlRoles::end)?;
        self.workers.iter_mut().try_for_each(Process::end)?;
        self.coordinator.end()?;
        self.beside.standby.iter_mut().try_for_each(|standby| standby.process.end())
    }

    fn begin(&mut self, store: &S3Server) -> io::Result<()> {
        self.coordinator.start()?;
        self.coordinator.wait_until_ready()?;
        if let Some(standby) = &mut self.beside.standby {
            standby.begin(&self.folder)?;
        }
        for worker in &mut self.workers {
            worker.start()?;
        }
        self.workers.iter_mut().try_for_each(Process::wait_until_ready)?;
        for (mount, rule) in [(FRESH, "always".to_owned()), (AGING, format!("ttl:{TTL_SECS}s"))] {
            let url = format!("s3://{BUCKET}/{mount}");
            self.command(&["mount", "add", mount, &url, "--endpoint", &store.endpoint(), "--validate", &rule])?;
        }
        if let Some(hanging) = &self.beside.hanging {
            let place = hanging.place().to_string_lossy().into_owned();
            self.command(&["mount", "add", FOLDER, &place, "--validate", "always"])?;
        }
        self.gateway.start()?;
        self.gateway.wait_until_ready()
    }

    /// Runs a command of the binary as the cluster's owner.
    fn command(&self, arguments: &[&str]) -> io::Result<()> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg(flag("coordinator", &self.coordinators)).current_dir(&self.folder).env_clear();
        let output = command.envs(environment(&self.folder)).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Error::other(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // A process that waits for it does not end, whatever it is sent.
        if let Some(hanging) = &self.beside.hanging {
            hanging.go_on();
        }
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

/// Nothing of this machine's own configuration, and the store's credentials.
fn environment(folder: &Path) -> Vec<(&'static str, String)> {
    let folder = folder.to_string_lossy().into_owned();
    vec![
        ("HOME", folder.clone()),
        ("XDG_RUNTIME_DIR", folder),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
    ]
}

fn with_environment(process: Process, folder: &Path) -> Process {
    let roles = [
        ("FOREBAY_CLUSTER_SECRET", CLUSTER_SECRET),
        ("FOREBAY_METRICS_ANONYMOUS", "true"),
        ("FOREBAY_S3_ACCESS_KEY", GATEWAY_KEY.0),
        ("FOREBAY_S3_SECRET_KEY", GATEWAY_KEY.1),
    ];
    let process = environment(folder).into_iter().fold(process, |process, (name, value)| process.with(name, &value));
    roles.into_iter().fold(process, |process, (name, value)| process.with(name, value))
}

/// Below the ports that systems give to connections of their own choice.
const FIRST_PORT: u16 = 18_000;
const LAST_PORT: u16 = 30_000;

static NEXT_PORT: AtomicU16 = AtomicU16::new(FIRST_PORT);

/// An address of this machine that nothing listens at for now; each is given out once.
fn free_address() -> io::Result<SocketAddr> {
    loop {
        let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
        if port > LAST_PORT {
            return Err(io::Error::other(format!("no port from {FIRST_PORT} to {LAST_PORT} is free")));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
}
