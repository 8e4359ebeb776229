//! The HTTP port of a process: what its roles show there, from when each has started.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_api::{Cluster, Http, HttpSettings, Readers, Readiness, Token, Workshop};
use forebay_client::{Client, ClientSettings};
use forebay_coordinator::Coordinator;
use forebay_data_folder::free_disk_bytes;
use forebay_flight::Connect;
use forebay_protocol::{ClusterStatus, Filled, PlacementStatus};
use forebay_transport::{Admission, Security, connections_max};
use forebay_types::Result;
use forebay_worker::Worker;

#[cfg(feature = "cluster")]
use super::cluster::ClusterRunning;
use super::doors::{ByClients, ByEngines};
use crate::output::time;
use crate::records::Formats;

/// The cluster of this process's coordinator.
struct Known(Arc<Coordinator>);

impl Cluster for Known {
    forebay_types::handed_on! {
        [0]
        fn status(&self) -> ClusterStatus;
        fn placement(&self, limit: usize) -> PlacementStatus;
        fn filled(&self, limit: usize) -> Filled;
    }

    fn tokens(&self) -> Vec<Token> {
        self.0.tokens().iter().map(|token| Token::of(token, time)).collect()
    }
}

/// The port, where there is one.
pub(crate) struct HttpPort {
    http: Option<Http>,
    readiness: Readiness,
}

impl HttpPort {
    /// Opens it before the roles are there: until they are, the process is alive and not ready.
    pub(crate) async fn open(
        address: Option<&str>,
        roles: Vec<&'static str>,
        security: &Security,
        metrics_are_open: bool,
    ) -> Result<Self> {
        let readiness = Readiness::of(roles);
        let Some(address) = address else { return Ok(Self { http: None, readiness }) };
        let (address, readers, tls) = (address.to_string(), Readers::new(readers(security)), security.tls.clone());
        let (shown, connections_max) = (readiness.clone(), connections_max());
        let settings = HttpSettings { address, tls, readers, metrics_are_open, readiness: shown, connections_max };
        Ok(Self { http: Some(Http::start(settings).await?), readiness })
    }

    /// The coordinator has started. Questions to datasets go to its workers; it is of the same process, and asked for them often.
    pub(crate) fn show_coordinator(&self, coordinator: &Arc<Coordinator>, security: &Security) {
        let Some(http) = &self.http else { return };
        let client = ClientSettings {
            security: security.clone(),
            view_poll: Duration::from_secs(1),
            ..ClientSettings::new(coordinator.address())
        };
        #[cfg(feature = "cluster")]
        http.show_scheduler(Arc::new(super::known_scheduler::KnownScheduler::new(client.clone())));
        http.show_loads(Arc::new(ByClients(client.clone())));
        http.show_cluster(Arc::new(Known(Arc::clone(coordinator))), client);
        let seen = Arc::clone(coordinator);
        self.readiness.started("coordinator", move || seen.check_ready());
    }

    /// Datasets of shards are made anew in this process, with files below `folder` meanwhile.
    pub(crate) fn show_workshop(&self, folder: &Path) -> Result<()> {
        if let Some(http) = &self.http {
            http.show_workshop(Workshop::open(Arc::new(Formats), folder.join("datasets"), free_disk_bytes)?);
        }
        Ok(())
    }

    /// Statements run on the engines of Flight SQL, which are given back to it.
    pub(crate) fn show_statements(&self, connect: Connect) -> Connect {
        if let Some(http) = &self.http {
            http.show_statements(Arc::new(ByEngines(Arc::clone(&connect))));
        }
        connect
    }

    /// All workers have started.
    pub(crate) fn show_workers(&self, workers: Vec<Arc<Worker>>) {
        let Some(http) = self.http.as_ref().filter(|_| !workers.is_empty()) else { return };
        let seen = workers.clone();
        http.show_storage(move || seen.iter().map(|worker| (worker.id(), worker.storage())).collect());
        self.readiness.started("worker", move || workers.iter().try_for_each(|worker| worker.check_ready()));
    }

    /// Scheduler and executors have started, as far as there are any here.
    #[cfg(feature = "cluster")]
    pub(crate) fn show_cluster(&self, running: &ClusterRunning) {
        let Some(http) = &self.http else { return };
        if let Some(numbers) = running.scheduling() {
            http.show_scheduling(numbers);
        }
        if let Some(numbers) = running.executing() {
            http.show_executors(numbers);
        }
        running.roles().for_each(|role| self.show_client_of(role, &running.client));
    }

    /// What serves over this client has started.
    pub(crate) fn show_client_of(&self, role: &'static str, client: &Client) {
        if self.http.is_some() {
            let client = client.clone();
            self.readiness.started(role, move || client.check_coordinator());
        }
    }

    /// Where it listens, as a URL with `/` at its end.
    pub(crate) fn url(&self) -> Option<String> {
        self.http.as_ref().map(Http::url)
    }

    /// Answers what was asked already, for at most a second, then ends.
    pub(crate) async fn shutdown(self) {
        if let Some(http) = self.http {
            http.shutdown().await;
        }
    }
}

/// Who may read metrics: who is let in, and who shows what this process shows itself.
fn readers(security: &Security) -> Vec<Arc<Admission>> {
    vec![Arc::clone(&security.admits), Arc::new(Admission::of(&security.shows))]
}
