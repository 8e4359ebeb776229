//! Changes that were made past the workers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use forebay_protocol::{ControlReply, ControlRequest, DataReply, DataRequest, WorkerInfo};
use forebay_runtime::time::{sleep, timeout};
use forebay_types::{Error, ForebayPath, MountId, Result, WorkerId};
use futures::future::join_all;

use super::Writes;
use crate::connect::ask;

/// How long a worker may take to hear of a change, and to say that it is there.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// How long it may take until all have heard: a worker that is gone is lost one lease later.
const ALL_WITHIN: Duration = Duration::from_secs(20);
/// Time between two looks whether a worker has forgotten.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same where nobody can tell yet.
const PAUSE: Duration = Duration::from_millis(200);

impl Writes {
    /// An object was written or deleted past the workers: what they know of it is old.
    pub(crate) async fn changed(&self, path: &ForebayPath) -> Result<()> {
        let mount = self.routes.mount(path).await?;
        let request = DataRequest::Changed { mount: mount.id, key: path.key().clone(), info: None };
        self.tell_everyone(mount.id, &request).await.map_err(|error| error.context(path))
    }

    /// Tells all workers of a change that was made past them. Back when none of them can answer from what it knew before;
    /// `Retry` when that is not certain.
    ///
    /// The view may be old. A worker that hears of changes knows all others that do, so the answers say which view names them.
    async fn tell_everyone(&self, mount: MountId, request: &DataRequest) -> Result<()> {
        let telling = async {
            let mut told = HashSet::new();
            let mut newest = 0;
            loop {
                let known = self.routes.view.known_arc();
                let left: Vec<_> = known.all().filter(|info| !told.contains(&info.id)).cloned().collect();
                let views = join_all(left.iter().map(|info| self.tell_one(info, mount, request))).await;
                told.extend(left.iter().map(|info| info.id));
                newest = views.into_iter().fold(newest, u64::max);
                if newest > 0 && known.view.version >= newest {
                    return;
                }
                let polled = self.routes.view.poll().await.is_ok();
                if polled && newest == 0 && self.routes.view.known().all().next().is_none() {
                    return;
                }
                if newest == 0 || !polled {
                    // None that was told knows all others now: one of them soon does, or a new one.
                    told.clear();
                    sleep(PAUSE).await;
                }
            }
        };
        timeout(ALL_WITHIN, telling).await.map_err(|_| {
            Error::retry("it is written, but not all workers have heard of it: some may answer with the old one for a while")
        })
    }

    /// Tells one worker, or makes it forget by the coordinator: the version of the view that it has, when that names all who
    /// hear of changes, else 0.
    async fn tell_one(&self, info: &Arc<WorkerInfo>, mount: MountId, request: &DataRequest) -> u64 {
        let telling = async {
            let link = self.routes.connections.link(info).await.ok()?;
            if let Ok(DataReply::Heard { view }) = ask(&link, request, ANSWER_WITHIN).await { Some(view) } else { None }
        };
        if let Ok(Some(view)) = timeout(ANSWER_WITHIN, telling).await {
            return view;
        }
        self.routes.lost(info.id);
        self.forgotten(mount, info.id).await;
        0
    }

    /// Back when a worker can't answer any more from what it knew when this was called.
    async fn forgotten(&self, mount: MountId, worker: WorkerId) {
        let mut number = None;
        loop {
            match self.control.ask(&ControlRequest::Unheard { mount, worker, number }.into(), self.control_deadline).await {
                Ok(ControlReply::Done) => return,
                Ok(ControlReply::Unheard { number: wanted }) => {
                    number = Some(wanted);
                    sleep(LOOK_EVERY).await;
                }
                // A new coordinator knows nothing of numbers from before.
                Ok(_) | Err(_) => {
                    number = None;
                    sleep(PAUSE).await;
                }
            }
        }
    }
}
