//! The client and the engine behind a connection, made at first use and anew in each process that a fork or a pickle makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use forebay_client::{Address, Client, ClientSettings, Credential, Security};
use forebay_data_folder::owner_secret_of;
use forebay_sql::{Engine, EngineMemory, EngineSettings};
use forebay_transport::TlsSettings;
use forebay_types::{Error, Result};

use crate::process::{InProcess, computing};

/// How to reach a cluster.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) token: Option<Arc<str>>,
    pub(crate) tls: Option<TlsSettings>,
    pub(crate) in_place: bool,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) partitions: Option<usize>,
}

/// A connection of this process.
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) engine: Engine,
}

/// The connection to a cluster: made at first use, and once more in each process that comes from a fork or a pickle.
pub(crate) struct Lazy {
    pub(crate) place: Place,
    live: ArcSwapOption<InProcess<Arc<Live>>>,
    /// The cluster was stopped with its client.
    is_over: AtomicBool,
}

impl Lazy {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, live: ArcSwapOption::empty(), is_over: AtomicBool::new(false) }
    }

    /// The connection, if this process has one.
    pub(crate) fn current(&self) -> Option<Arc<Live>> {
        let live = self.live.load();
        live.as_ref().and_then(|live| live.get().ok()).map(Arc::clone)
    }

    /// The connection. `Closed` when there will be none.
    pub(crate) async fn get(&self) -> Result<Arc<Live>> {
        if self.is_over.load(Ordering::Relaxed) {
            let address = &self.place.address;
            return Err(Error::closed(format!(
                "the cluster at {address} was stopped by close(): start another one with forebay.up()"
            )));
        }
        if let Some(live) = self.current() {
            return Ok(live);
        }
        let live = Arc::new(self.place.connect().await?);
        // Two threads that come first together have one each, which costs a connection and nothing else.
        self.live.store(Some(Arc::new(InProcess::new(Arc::clone(&live)))));
        Ok(live)
    }

    /// Lets go of the connection, `for_good` where the cluster stops with it; what was read stays readable.
    pub(crate) fn close(&self, for_good: bool) {
        self.is_over.fetch_or(for_good, Ordering::Relaxed);
        self.live.store(None);
    }
}

impl Place {
    async fn connect(&self) -> Result<Live> {
        let shows = match &self.token {
            Some(token) => Some(Credential::token(token)?),
            // The user's own cluster, where it runs on this machine.
            None => self.owner_secret()?.map(|secret| Credential::owner(&secret)).transpose()?,
        };
        let settings = ClientSettings {
            security: Security { shows, admits: Arc::default(), tls: self.tls.clone(), ..Security::default() },
            in_place: self.in_place,
            connect_timeout: Duration::from_secs(5),
            ..ClientSettings::new(Address::Tcp(self.address.clone()))
        };
        let client = Client::connect(settings).await?;
        // Whoever waits for a statement hears Ctrl-C, however long the statement gives way to nobody.
        let computing = Some(computing()?);
        let engine = EngineSettings {
            memory: EngineMemory::of_bytes(self.memory_bytes),
            target_partitions: self.partitions,
            computing,
            ..EngineSettings::default()
        };
        Ok(Live { engine: Engine::over_client(client.clone(), engine), client })
    }

    /// The owner's secret, where one of the coordinators that are named runs on this machine as this user.
    fn owner_secret(&self) -> Result<Option<String>> {
        for place in self.address.split(',') {
            if let Some(secret) = owner_secret_of(place.trim())? {
                return Ok(Some(secret));
            }
        }
        Ok(None)
    }
}
