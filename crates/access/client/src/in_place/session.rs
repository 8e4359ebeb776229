//! A connection to a worker of this host.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, WorkerInfo, decode_from, encode};
use forebay_runtime::time::timeout;
use forebay_transport::{Address, Answer, Connection, Security};
use forebay_types::{Error, ErrorKind, Result, WorkerId};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::mapping::Mapping;
use super::{Outbox, Writing};

/// A Unix connection to a worker of this host, with the worker's DRAM tier when it lets this process have it. Lives as
/// long as any pin of it: the connection closes with the last one.
pub(crate) struct Session {
    pub(crate) worker: WorkerId,
    pub(crate) connection: Connection,
    pub(crate) mapping: Option<Mapping>,
    /// Since the first block that this process wrote in place.
    pub(crate) writing: OnceLock<Writing>,
    pub(crate) outbox: Arc<Outbox>,
    /// Bytes under pins that are kept for the next read, and their limit.
    pub(super) kept: AtomicU64,
    kept_max: u64,
    _task: AbortOnDropHandle<()>,
}

/// A worker lets half of its DRAM tier be pinned. One client keeps less than that for later reads, so that other
/// clients, and bytes that are in use, find room.
fn kept_max(dram_bytes: u64) -> u64 {
    dram_bytes / 8 * 3
}

impl Session {
    /// Connects and maps the tier; `when_lost` is called once the connection has ended.
    pub(crate) async fn connect(
        worker: &WorkerInfo,
        socket: &Path,
        security: &Security,
        deadline: Duration,
        when_lost: impl FnOnce() + Send + 'static,
    ) -> Result<Arc<Self>> {
        let late = || Error::retry(format!("worker {}: {} does not answer", worker.id, socket.display()));
        let address = Address::Unix(socket.to_path_buf());
        let connection = timeout(deadline, Connection::nearest(&address, security)).await.map_err(|_| late())??;
        let mapping = match timeout(deadline, attach(&connection)).await.map_err(|_| late())? {
            Ok(mapping) => Some(mapping),
            Err(error) if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Invalid) => {
                debug!(worker = %worker.id, %error, "no reading in place, copies over the unix socket instead");
                None
            }
            Err(error) => return Err(error.context(format!("worker {}", worker.id))),
        };
        let outbox = Arc::new(Outbox::default());
        let task = {
            let (outbox, connection, worker) = (Arc::clone(&outbox), connection.clone(), worker.id);
            forebay_runtime::spawn(async move {
                outbox.run(connection).await;
                debug!(%worker, "unix connection lost, its pins are not used any more");
                when_lost();
            })
        };
        Ok(Arc::new(Self {
            worker: worker.id,
            connection,
            mapping,
            writing: OnceLock::new(),
            outbox,
            kept: AtomicU64::new(0),
            kept_max: kept_max(worker.dram_bytes),
            _task: AbortOnDropHandle::new(task),
        }))
    }

    /// Has small calls go by shared memory from now on, if the worker has any for this.
    pub(crate) async fn open_ring(&self, deadline: Duration) {
        let asked = self.connection.call(encode(&DataRequest::Ring), Vec::new());
        let opened = match timeout(deadline, asked).await {
            Ok(Ok(Answer { version, meta, descriptor: Some(descriptor), .. }))
                if matches!(decode_from(version, &meta), Ok(DataReply::Done)) =>
            {
                self.connection.use_ring(descriptor)
            }
            Ok(Ok(_)) | Err(_) => Err(Error::retry("the worker has none")),
            Ok(Err(error)) => Err(error),
        };
        if let Err(error) = opened {
            debug!(worker = %self.worker, %error, "no ring, small calls go over the unix socket");
        }
    }

    /// Whether its pins may still be used.
    pub(crate) fn stands(&self) -> bool {
        !self.connection.is_closed()
    }

    /// Whether enough is kept here for its worker to miss it.
    pub(crate) fn keeps_much(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > self.kept_max / 2
    }

    pub(super) fn keeps_too_much(&self) -> bool {
        self.kept.load(Ordering::Relaxed) > self.kept_max
    }
}

async fn attach(connection: &Connection) -> Result<Mapping> {
    let answer = connection.call(encode(&DataRequest::Attach), Vec::new()).await?;
    match (decode_from(answer.version, &answer.meta)?, answer.descriptor) {
        (DataReply::Attached { arena_bytes }, Some(descriptor)) => Mapping::new(descriptor, arena_bytes),
        (DataReply::Failed { kind, message }, _) => Err(Error::new(kind, message)),
        _ => Err(Error::invalid("the worker gave no descriptor of its tier: run one version of forebay")),
    }
}
