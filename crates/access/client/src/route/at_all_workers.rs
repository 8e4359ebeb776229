//! Asking all workers.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, Kind};
use forebay_runtime::time::timeout;
use forebay_types::{Error, Result, WorkerId};
use futures::stream::{self, StreamExt};

use super::Routes;
use crate::connect::{Failure, ask};

/// Workers asked at once.
const WORKERS_AT_ONCE: usize = 32;
/// Workers of whose queues is asked, and how long each may take to say.
const QUEUES_MAX: usize = 1_024;
const QUEUE_WITHIN: Duration = Duration::from_millis(500);

impl Routes {
    /// Asks every worker of the view, each in order; the replies by worker. What one could not be asked is `Retry`,
    /// after all others were. One of the release before that does not know these requests is asked `before` in their place.
    pub(crate) async fn at_all_workers(
        &self,
        requests: &[DataRequest],
        before: &[DataRequest],
    ) -> Result<BTreeMap<WorkerId, Vec<DataReply>>> {
        let known = self.view.known_arc();
        let deadline = self.connections.read_deadline();
        let workers: Vec<_> = known.workers.iter().filter_map(|id| known.worker(*id).cloned()).collect();
        let asked = stream::iter(workers).map(|info| async move {
            let info = &info;
            let link = self.connections.link(info).await.inspect_err(|_| self.failures.failed(info.id))?;
            let version = link.connection.version();
            let is_known = requests.iter().all(|request| request.since() <= version);
            let requests = if is_known { requests } else { before };
            let mut replies = Vec::with_capacity(requests.len());
            for request in requests {
                replies.push(ask(&link, request, deadline).await.map_err(Failure::into_error)?);
            }
            Ok::<_, Error>((info.id, replies))
        });
        let mut asked = asked.buffer_unordered(WORKERS_AT_ONCE);
        let mut by_worker = BTreeMap::new();
        let mut failed = None;
        while let Some(answer) = asked.next().await {
            match answer {
                Ok((worker, replies)) => {
                    by_worker.insert(worker, replies);
                }
                Err(error) => {
                    self.view.surprised();
                    failed = Some(error);
                }
            }
        }
        if let Some(error) = failed { Err(error.context("not done at every worker")) } else { Ok(by_worker) }
    }

    /// Reads under way at each worker. Those that don't say so at once are left out.
    pub(crate) async fn queue_lengths(&self) -> BTreeMap<WorkerId, u32> {
        let known = self.view.known_arc();
        let workers: Vec<_> = known.workers.iter().filter_map(|id| known.worker(*id).cloned()).take(QUEUES_MAX).collect();
        let count = workers.len();
        let asked = stream::iter(workers).map(|info| async move {
            let link = timeout(QUEUE_WITHIN, self.connections.link(&info)).await.ok()?.ok()?;
            match ask(&link, &DataRequest::Queue, QUEUE_WITHIN).await {
                Ok(DataReply::Queue(hint)) => Some((info.id, hint.queue)),
                _ => None,
            }
        });
        let told: BTreeMap<_, _> = asked.buffer_unordered(WORKERS_AT_ONCE).filter_map(std::future::ready).collect().await;
        debug_assert!(told.len() <= count, "a worker is asked once");
        told
    }
}
