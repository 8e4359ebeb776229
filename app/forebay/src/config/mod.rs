//! The configuration: one TOML file, `FOREBAY_*` variables, flags, in that order.
//!
//! Owns: what settings there are ([`table`]), how each is written ([`value`], [`types`]) and where ([`sources`]).
//! Never does: anything by a setting; roles and commands get typed values.
//! Start with: `table.rs`. A new setting is a row there, and what reads its field here.

mod check;
mod disks;
mod gateway;
#[cfg(test)]
mod page;
mod security;
mod setting;
mod show;
mod sources;
mod table;
mod types;
mod value;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_coordinator::PlacementSettings;
use forebay_data_folder::default_disk_bytes;
use forebay_transport::{Address, Security};

use crate::exit::{Failure, Outcome};
pub(crate) use security::scope_of;
pub(crate) use setting::{Flag, Setting};
use table::Settings;
pub(crate) use table::TABLE;
pub(crate) use types::LogFormat;
#[cfg(feature = "cluster")]
use types::ShufflePlace;
use types::{Address as HostPort, Http, OrOff};
pub(crate) use value::Written;

/// The effective configuration, validated.
pub(crate) struct Config {
    /// As it is written; what below has a method needs more than that.
    pub(crate) settings: Settings,
    sources: sources::Sources,
    /// What commands show where they connect, and TLS.
    pub(crate) security: Security,
}

impl Config {
    /// Reads file and variables, puts the flags over them, and checks what can be checked without a network.
    pub(crate) fn load(file: Option<&Path>, flags: Vec<(&'static Setting, Written)>) -> Outcome<Self> {
        let sources = sources::Sources::read(TABLE, file, flags)?;
        let settings = Settings::read(&sources)?;
        check::check(&settings, &sources)?;
        let security = security::of_client(&settings)?;
        let config = Self { settings, sources, security };
        let placement = config.placement().validate();
        placement.map_err(|error| Failure::Usage(format!("configuration of replicas: {}", error.message())))?;
        Ok(config)
    }

    /// Where clients and workers find the coordinator.
    pub(crate) fn coordinator(&self) -> Address {
        Address::Tcp(self.settings.coordinator.0.clone())
    }

    /// Where the scheduler of distributed SQL is, or `off`, when that is said.
    pub(crate) fn scheduler(&self) -> Option<&str> {
        self.settings.scheduler.as_ref().map(|scheduler| scheduler.on().map_or("off", |address| &address.0))
    }

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

    /// Where what passes between the stages of a job lies.
    #[cfg(feature = "cluster")]
    pub(crate) fn shuffle(&self) -> forebay_distributed::Shuffle {
        match self.settings.shuffle {
            ShufflePlace::Files => forebay_distributed::Shuffle::Files,
            ShufflePlace::Nodes => forebay_distributed::Shuffle::Nodes(self.settings.shuffle_storage_class),
        }
    }

    pub(crate) fn coordinator_listen(&self) -> Outcome<&str> {
        self.listen("coordinator-listen", &self.settings.coordinator_listen)
    }

    pub(crate) fn worker_listen(&self) -> Outcome<&str> {
        self.listen("worker-listen", &self.settings.worker_listen)
    }

    /// Where `/metrics`, `/healthz` and `/readyz` are; none when switched off.
    pub(crate) fn http(&self, role_port: u16) -> Outcome<Option<String>> {
        match &self.settings.http {
            Http::Auto => Ok(Some(format!("127.0.0.1:{role_port}"))),
            Http::Said(OrOff::Off) => Ok(None),
            Http::Said(OrOff::On(address)) => self.listen("http", address).map(|address| Some(address.to_string())),
        }
    }

    /// Where Flight SQL listens; none when switched off.
    pub(crate) fn flight(&self) -> Outcome<Option<&str>> {
        self.settings.flight.on().map(|address| self.listen("flight", address)).transpose()
    }

    /// What a coordinator, and all that runs beside it in its process, shows and lets in.
    pub(crate) fn coordinator_security(&self) -> Outcome<Security> {
        security::of_coordinator(&self.settings)
    }

    /// Whether the secret of the coordinator may come to be there: it is to run on this machine, and has not been started.
    pub(crate) fn waits_for_secret(&self) -> bool {
        let is_here = |place: &str| place.rsplit_once(':').is_some_and(|(host, _)| is_loopback(host));
        self.settings.coordinator.each().any(is_here) && !security::names_member(&self.settings)
    }

    /// What a worker, a scheduler or an executor shows and lets in.
    pub(crate) fn member_security(&self) -> Outcome<Security> {
        security::of_member(&self.settings)
    }

    /// Folders of the disk tier on other disks, each with its capacity in bytes.
    pub(crate) fn disk_folders(&self) -> Vec<(PathBuf, u64)> {
        let Some(folders) = &self.settings.disk_folders else { return Vec::new() };
        let each = folders.0.iter();
        each.map(|(folder, size)| (folder.clone(), size.map_or_else(|| default_disk_bytes(folder), |size| size.0))).collect()
    }

    /// How replicas follow popularity.
    pub(crate) fn placement(&self) -> PlacementSettings {
        let settings = &self.settings;
        PlacementSettings {
            policy: settings.placement.on().copied(),
            weigh: settings.weigh,
            slack: settings.slack.0,
            budget: settings.budget.0,
            storage_share: settings.storage_share.0,
            window: settings.window,
            poll: settings.poll,
        }
    }

    /// How long a statement is waited for, at least, to be told to the log; none for none.
    pub(crate) fn slow_query(&self) -> Option<Duration> {
        Some(self.settings.slow_query).filter(|from| !from.is_zero())
    }

    /// The collector that traces of a process of these roles go to, if any.
    pub(crate) fn collector(&self, roles: &str) -> Option<forebay_trace::Collector> {
        let endpoint = self.settings.otlp_endpoint.as_ref()?.0.clone();
        Some(forebay_trace::Collector { endpoint, share: self.settings.otlp_share.0, roles: roles.to_string() })
    }

    /// An address to listen at; with a secret in the configuration when the host isn't this one alone.
    fn listen<'a>(&self, key: &str, HostPort(address): &'a HostPort) -> Outcome<&'a str> {
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        if is_loopback(host) || security::is_configured(&self.settings) {
            return Ok(address);
        }
        Err(self.sources.wrong(
            key,
            &format!(
                "at {address} nobody beyond this machine could come in: set FOREBAY_CLUSTER_SECRET or cluster-secret-file on every \
                 process of the cluster, or FOREBAY_TOKEN on the coordinator"
            ),
        ))
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
