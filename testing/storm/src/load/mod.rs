//! What clients do while the storm is on, all of it taken down.

mod claimed;
mod doors;
mod folder;
mod http;
mod mixed;
mod objects;
mod records;
mod statements;

use std::io::{self, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use forebay_demo::S3Server;
use forebay_oracle::Violation;
use forebay_oracle::history::Recorder;
use forebay_oracle::load::Shared;
use forebay_shard_store::Acknowledged;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cluster::Cluster;

pub use claimed::{Part, claimant};
pub use folder::held_up;
pub use mixed::Mixed;
pub use objects::{Family, family};
pub use records::{Records, dataset};
pub use statements::{Statements, back};

/// How long what is under way may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Which of the loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Objects and temporary nodes, by all doors.
    Mixed,
    /// Records of a dataset of shards, whose changes are acknowledged so.
    Records(Acknowledged),
    /// SQL, in the process that asks and on executors.
    Statements,
}

/// A load that runs.
pub enum Load {
    /// See [`Kind::Mixed`].
    Mixed(Mixed),
    /// See [`Kind::Records`].
    Records(Records),
    /// See [`Kind::Statements`].
    Statements(Statements),
}

impl Load {
    /// Writes what is to be there before, then starts all clients, by a seed. What has to be built is built in the folder. Of several
    /// loads of a cluster, one after the other, each has a number of its own.
    pub async fn start(
        kind: Kind,
        cluster: &Cluster,
        store: &S3Server,
        folder: &Path,
        seed: u64,
        number: u32,
    ) -> io::Result<Self> {
        match kind {
            Kind::Mixed => Mixed::start(cluster, store, seed, number).await.map(Self::Mixed),
            Kind::Records(ack) => Records::start(cluster, folder, ack, seed, number).await.map(Self::Records),
            Kind::Statements => Statements::start(cluster, store, seed).await.map(Self::Statements),
        }
    }

    /// What is taken down.
    pub fn recorder(&self) -> &Recorder {
        match self {
            Self::Mixed(load) => load.recorder(),
            Self::Records(load) => load.recorder(),
            Self::Statements(load) => load.recorder(),
        }
    }

    /// Ends all clients, then looks at everything once more; what does not hold of answers that the history does not have.
    pub async fn end(self) -> io::Result<(Recorder, Vec<Violation>)> {
        match self {
            Self::Mixed(load) => load.end().await.map(|recorder| (recorder, Vec::new())),
            Self::Records(load) => load.end().await,
            Self::Statements(load) => load.end().await,
        }
    }
}

/// Ends all clients of a load.
async fn end(shared: &Shared, clients: &mut JoinSet<()>) -> io::Result<()> {
    shared.end();
    let ended = async { while clients.join_next().await.is_some() {} };
    timeout(ENDS_WITHIN, ended).await.map_err(|_| Error::other("clients do not end"))
}

/// What was taken down, once nobody takes anything down any more.
fn recorded(shared: Arc<Shared>) -> io::Result<Recorder> {
    Arc::into_inner(shared).map(|shared| shared.recorder).ok_or_else(|| Error::other("a client has not ended"))
}
