//! The configuration: one TOML file, `FOREBAY_*` variables, flags, in that order.

mod gateway;
mod security;
mod settings;
mod show;
mod sources;
mod variables;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_coordinator::PlacementSettings;
use forebay_transport::{Address, Security};

use crate::exit::{Failure, Outcome};
use crate::roles::SqlPart;
pub(crate) use security::scope_of;
use settings::Settings;

/// The effective configuration, validated.
pub(crate) struct Config {
    settings: Settings,
    sources: sources::Sources,
    security: Security,
    data_dir: PathBuf,
    dram_bytes: u64,
    disk_bytes: u64,
}

impl Config {
    /// Reads file and variables, puts the flags over them, and checks what can be checked without a network.
    pub(crate) fn load(file: Option<&Path>, flags: &impl serde::Serialize) -> Outcome<Self> {
        let sources = sources::Sources::read(file, flags)?;
        let settings = sources.settings()?;
        let data_dir = settings.data_dir.relative();
        let dram_bytes = settings.dram.map_or_else(forebay_data_folder::default_dram_bytes, |size| size.0);
        let disk_bytes = settings.disk.map_or_else(|| forebay_data_folder::default_disk_bytes(&data_dir), |size| size.0);
        let security = security::of_client(&settings, &data_dir)?;
        Ok(Self { settings, sources, security, data_dir, dram_bytes, disk_bytes })
    }

    /// Where clients and workers find the coordinator.
    pub(crate) fn coordinator(&self) -> Address {
        Address::Tcp(self.settings.coordinator.clone())
    }

    /// The same as text, for messages.
    pub(crate) fn coordinator_text(&self) -> &str {
        &self.settings.coordinator
    }

    /// Where the scheduler of distributed SQL is, when there is one.
    pub(crate) fn scheduler(&self) -> Option<&str> {
        self.settings.scheduler.as_deref()
    }

    /// How long a coordinator or a scheduler that is away is waited for.
    pub(crate) fn wait(&self) -> Duration {
        self.settings.wait.0
    }

    /// Where the scheduler listens.
    #[cfg(feature = "cluster")]
    pub(crate) fn scheduler_listen(&self) -> Outcome<&str> {
        self.listen("scheduler-listen", &self.settings.scheduler_listen)
    }

    /// Where an executor hands results out.
    #[cfg(feature = "cluster")]
    pub(crate) fn executor_listen(&self) -> Outcome<&str> {
        self.listen("executor-listen", &self.settings.executor_listen)
    }

    /// Tasks that one of so many executors runs at once.
    #[cfg(feature = "cluster")]
    pub(crate) fn slots(&self, executors: usize) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.settings.slots.map_or((cores / executors.max(1)).max(1), |slots| usize::from(slots.0))
    }

    /// Whether jobs of one priority share the slots, instead of going one after the other.
    #[cfg(feature = "cluster")]
    pub(crate) fn is_fair(&self) -> bool {
        self.settings.job_order == settings::JobOrder::Fair
    }

    /// Whether the input of tasks is brought before they start.
    #[cfg(feature = "cluster")]
    pub(crate) fn data_scheduler(&self) -> bool {
        self.settings.data_scheduler
    }

    /// Where what passes between the stages of a job lies.
    #[cfg(feature = "cluster")]
    pub(crate) fn shuffle(&self) -> forebay_distributed::Shuffle {
        use forebay_client::StorageClass;
        use forebay_distributed::Shuffle;
        match (self.settings.shuffle, self.settings.shuffle_storage_class) {
            (settings::ShufflePlace::Files, _) => Shuffle::Files,
            (settings::ShufflePlace::Nodes, settings::NodeClass::Dram) => Shuffle::Nodes(StorageClass::Dram),
            (settings::ShufflePlace::Nodes, settings::NodeClass::Disk) => Shuffle::Nodes(StorageClass::Disk),
        }
    }

    /// Where the coordinator listens.
    pub(crate) fn coordinator_listen(&self) -> Outcome<&str> {
        self.listen("coordinator-listen", self.settings.coordinator_listen.as_deref().unwrap_or(&self.settings.coordinator))
    }

    /// Where the worker's data plane listens.
    pub(crate) fn worker_listen(&self) -> Outcome<&str> {
        self.listen("worker-listen", &self.settings.worker_listen)
    }

    /// Where `/metrics` and `/healthz` are; none when switched off.
    pub(crate) fn http(&self, role_port: u16) -> Outcome<Option<String>> {
        match self.settings.http.as_str() {
            "off" => Ok(None),
            "auto" => Ok(Some(format!("127.0.0.1:{role_port}"))),
            address => self.listen("http", address).map(|address| Some(address.to_string())),
        }
    }

    /// Whether metrics are shown to who shows nothing.
    pub(crate) fn metrics_anonymous(&self) -> bool {
        self.settings.metrics_anonymous
    }

    /// Where Flight SQL listens; none when switched off.
    pub(crate) fn flight(&self) -> Outcome<Option<&str>> {
        if self.settings.flight == "off" { Ok(None) } else { self.listen("flight", &self.settings.flight).map(Some) }
    }

    /// What clients are told to reach the worker at.
    pub(crate) fn advertise(&self) -> Option<&str> {
        self.settings.advertise.as_deref()
    }

    /// Where the worker is; its host when not said.
    pub(crate) fn location(&self) -> Option<&str> {
        self.settings.location.as_ref().map(|label| label.0.as_str())
    }

    /// What commands show where they connect, and TLS.
    pub(crate) fn security(&self) -> &Security {
        &self.security
    }

    /// What a coordinator, and all that runs beside it in its process, shows and lets in.
    pub(crate) fn coordinator_security(&self) -> Outcome<Security> {
        security::of_coordinator(&self.settings, &self.data_dir)
    }

    /// Whether the secret of the coordinator may come to be there: it is to run on this machine, and has not been started.
    pub(crate) fn waits_for_secret(&self) -> bool {
        let host = self.settings.coordinator.rsplit_once(':').map_or("", |(host, _)| host);
        is_loopback(host) && !security::names_member(&self.settings)
    }

    /// What a worker, a scheduler or an executor shows and lets in.
    pub(crate) fn member_security(&self) -> Outcome<Security> {
        security::of_member(&self.settings, &self.data_dir)
    }

    /// The data folder.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The metadata database's URL.
    pub(crate) fn metadata_url(&self) -> String {
        match &self.settings.metadata {
            Some(url) => url.clone(),
            None => forebay_data_folder::DataFolder::metadata_url(&self.data_dir),
        }
    }

    /// Capacity of the DRAM tier in bytes.
    pub(crate) fn dram_bytes(&self) -> u64 {
        self.dram_bytes
    }

    /// Capacity of the disk tier in bytes; 0 for none.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Whether the DRAM tier is read in place by processes of this host.
    pub(crate) fn in_place(&self) -> bool {
        self.settings.in_place
    }

    /// How long a worker counts as live.
    pub(crate) fn lease(&self) -> Duration {
        self.settings.lease.0
    }

    /// How replicas follow popularity.
    pub(crate) fn placement(&self) -> PlacementSettings {
        let settings = &self.settings;
        PlacementSettings {
            policy: settings.placement.0,
            slack: settings.slack.0,
            budget: settings.budget.0,
            storage_share: settings.storage_share.0,
            window: settings.window.0,
            poll: settings.poll.0,
        }
    }

    /// Share of a worker's storage from which it collects garbage.
    pub(crate) fn storage_share(&self) -> f64 {
        self.settings.storage_share.0
    }

    /// Share of the tiers that temporary nodes may take.
    pub(crate) fn temporary_share(&self) -> f64 {
        self.settings.temporary_share.0
    }

    /// Whether statements are remembered on this account.
    pub(crate) fn query_history(&self) -> bool {
        self.settings.query_history
    }

    /// How SQL of servers runs.
    pub(crate) fn sql(&self) -> SqlPart {
        let memory_bytes = self.settings.sql_memory.map_or_else(forebay_data_folder::default_dram_bytes, |size| size.0);
        let spill_bytes = self.settings.sql_spill.map_or(memory_bytes.saturating_mul(4), |size| size.0);
        let file_roots = self.settings.file_roots.as_ref().map(|folders| folders.0.clone()).unwrap_or_default();
        SqlPart { memory_bytes, spill_bytes, file_roots, direct_stores: self.settings.direct_stores }
    }

    /// What the worker sends at most, in bytes a second.
    pub(crate) fn serve_bytes_per_sec(&self) -> Option<u64> {
        self.settings.serve_bandwidth.map(|rate| rate.bytes_per_sec())
    }

    /// What is logged, where the configuration says so.
    pub(crate) fn log(&self) -> Option<&str> {
        self.settings.log.as_deref()
    }

    /// Where it is written down who changed what, and who was refused.
    pub(crate) fn audit_log(&self) -> Option<PathBuf> {
        self.settings.audit_log.as_ref().map(figment::value::magic::RelativePathBuf::relative)
    }

    /// An address to listen at: `host:port`, and with a secret in the configuration when the host isn't this one alone.
    fn listen<'a>(&self, key: &str, address: &'a str) -> Outcome<&'a str> {
        let wrong = |what: &str| Failure::Usage(format!("--{key} {address}: {what}"));
        let Some((host, port)) = address.rsplit_once(':') else {
            return Err(wrong("write it as HOST:PORT, as in 127.0.0.1:7400"));
        };
        if port.parse::<u16>().is_err() {
            return Err(wrong("the port must be a number from 0 to 65535"));
        }
        if !is_loopback(host) && !security::is_configured(&self.settings) {
            return Err(wrong(
                "nobody beyond this machine could come in: set FOREBAY_CLUSTER_SECRET or cluster-secret-file on every process of the cluster, or FOREBAY_TOKEN on the coordinator",
            ));
        }
        Ok(address)
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
