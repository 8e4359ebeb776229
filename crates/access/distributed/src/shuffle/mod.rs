//! What passes between the stages of a job, in temporary nodes instead of files of executors.
//!
//! `engine` is what Ballista asks for a stage; `stage` runs it: `split` sorts rows by their reducers, `outputs` makes them
//! blocks in nodes, and `spare` files of this executor where there is no room. `read` is the leaf of the stages that read
//! them, over `fetch` where they are in nodes and `files` where they are not, `handed` out by other executors; `losses` says what must be made again, and `broadcast` keeps what all tasks of an executor read.
//! `place` says where in the namespace.

mod broadcast;
mod engine;
mod fetch;
mod files;
mod handed;
mod losses;
mod outputs;
mod place;
mod read;
mod spare;
mod split;
mod stage;
mod times;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::JobId;
use forebay_client::{CreateOptions, NodeError, NodeErrorKind, NodeResult, NodeType, Nodes, StorageClass};
use forebay_types::{Error, WorkerId};
use parking_lot::Mutex;

use broadcast::Broadcasts;
pub(crate) use engine::Engine;
#[cfg(test)]
pub(crate) use files::tests::output;
pub(crate) use files::{Files, Told, all};
pub(crate) use handed::WHOLE_FILE;
pub(crate) use losses::each as each_loss;
pub(crate) use place::{ROOT, is_in_nodes, is_job_name, job_path, rows_of};
pub use times::ShuffleTimes;
pub(crate) use times::{Times, WRITE_TIMES};

/// Containers that are remembered to be there; then all are forgotten.
const MADE_MAX: usize = 100_000;

/// How often what is kept is looked at.
const TRIM: Duration = Duration::from_secs(5);
/// How long a task does not ask for room after another one found none.
const FULL_FOR: Duration = Duration::from_secs(5);

/// Where what passes between stages lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shuffle {
    /// In files of the executors, handed out over Arrow Flight: Ballista's own.
    #[default]
    Files,
    /// In temporary nodes of this storage class.
    Nodes(StorageClass),
}

/// What all stages of an executor share.
pub(crate) struct Shared {
    nodes: Nodes,
    /// The worker beside, which gets the blocks.
    beside: Option<WorkerId>,
    /// Results between stages that are not in nodes lie here.
    folder: PathBuf,
    files: Files,
    made: Mutex<HashSet<String>>,
    full: Mutex<Full>,
    broadcasts: Broadcasts,
}

/// What keeps tasks from writing to nodes.
#[derive(Default)]
struct Full {
    /// There is no room, for a while.
    since: Option<Instant>,
    /// Stages whose names are lost.
    stages: HashSet<(JobId, usize)>,
}

forebay_types::shown!(Shared);

impl Shared {
    pub(crate) fn new(nodes: Nodes, beside: Option<WorkerId>, folder: PathBuf, files: Files) -> Arc<Self> {
        Arc::new(Self {
            nodes,
            beside,
            folder,
            files,
            made: Mutex::default(),
            full: Mutex::default(),
            broadcasts: Broadcasts::default(),
        })
    }

    /// Lets go of what is kept for tasks that do not come, until it is dropped.
    pub(crate) async fn keep_trim(self: Arc<Self>) {
        loop {
            forebay_runtime::time::sleep(TRIM).await;
            self.broadcasts.trim();
        }
    }

    /// Makes a container, unless it is known to be there.
    async fn make(&self, path: &str, kind: NodeType) -> NodeResult<()> {
        if self.made.lock().contains(path) {
            return Ok(());
        }
        match self.nodes.create(path, CreateOptions::new(kind)).await {
            Err(error) if error.kind != NodeErrorKind::Exists => return Err(error),
            _ => {}
        }
        let mut made = self.made.lock();
        if made.len() >= MADE_MAX {
            made.clear();
        }
        made.insert(path.to_string());
        assert!(made.len() <= MADE_MAX, "{} containers are remembered", made.len());
        Ok(())
    }

    /// An output could not be written.
    fn note_full(&self, job: &JobId, stage: usize, error: &NodeError) {
        tracing::warn!(%job, stage, %error, "what passes between stages goes to files: give workers more memory or disk, or temporary-share a larger part, or set shuffle to files");
        let mut full = self.full.lock();
        match error.kind {
            NodeErrorKind::NoSpace => full.since = Some(forebay_runtime::now()),
            _ => {
                if full.stages.len() >= MADE_MAX {
                    full.stages.clear();
                }
                full.stages.insert((job.clone(), stage));
                assert!(full.stages.len() <= MADE_MAX, "{} stages are remembered", full.stages.len());
            }
        }
    }

    /// Whether tasks of a stage better use files from the beginning.
    fn is_full(&self, job: &JobId, stage: usize) -> bool {
        let full = self.full.lock();
        full.since.is_some_and(|since| since.elapsed() < FULL_FOR) || full.stages.contains(&(job.clone(), stage))
    }
}

/// As the engine's error.
fn failed(error: Error) -> datafusion::error::DataFusionError {
    datafusion::error::DataFusionError::External(Box::new(error))
}
