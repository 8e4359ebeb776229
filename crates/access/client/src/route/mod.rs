//! Who is asked for what.
//!
//! Owns: the view of the cluster and its routing table, what is known of the workers beside (who failed, how long their queues
//! are, where a schedule wants reads to go), and asking one worker after the other until an answer stands.
//!
//! Never does: know what is asked, or go to shared storage when no worker answers, which `read` does.
//!
//! Start with [`Routes::at_holders`] and [`Routes::at_home`].

mod at_all_workers;
mod attempt;
mod failures;
mod holders;
mod known;
mod places;
mod queues;
mod silence;
mod told;
mod view;

use std::sync::Arc;

use forebay_types::{Error, ForebayPath, Mount, OperationId, PAGE_BYTES, Result, SegmentId, WorkerId};
use tokio_util::task::AbortOnDropHandle;

pub(crate) use attempt::NoAnswer;
pub(crate) use known::Known;
pub(crate) use places::{Kept, Of};
pub(crate) use silence::Unanswered;

use crate::connect::{Connections, Control, Link};
use crate::settings::ClientSettings;
use failures::Failures;
use places::Places;
use queues::Queues;
use silence::Late;
use view::ViewKeeper;

/// The ways to the workers. All rooms above share them, and the tasks that keep them up end with the last one.
pub(crate) struct Routes {
    pub(crate) view: Arc<ViewKeeper>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) failures: Failures,
    pub(crate) places: Places,
    queues: Queues,
    late: Late,
    _following: AbortOnDropHandle<()>,
}

impl Routes {
    /// Takes the coordinator's view, and follows it from then on.
    pub(crate) async fn connect(settings: &ClientSettings, control: Arc<Control>) -> Result<Self> {
        let view = Arc::new(ViewKeeper::new(control));
        view.poll().await?;
        let connections = Arc::new(Connections::new(settings.clone()));
        let following = Arc::clone(&view).run(settings.view_poll, Arc::clone(&connections));
        Ok(Self {
            view,
            connections,
            failures: Failures::default(),
            places: Places::default(),
            queues: Queues::default(),
            late: Late::default(),
            _following: AbortOnDropHandle::new(forebay_runtime::spawn(following)),
        })
    }

    /// The mount that a path names.
    pub(crate) async fn mount(&self, path: &ForebayPath) -> Result<Arc<Mount>> {
        self.view.mount(path.mount()).await
    }

    /// A way to a worker of the view; `Retry` with what `gone` says when it is in it no more.
    pub(crate) async fn link_to(&self, worker: WorkerId, gone: impl FnOnce(WorkerId) -> Error) -> Result<Link> {
        let info = self.view.known().worker(worker).cloned().ok_or_else(|| gone(worker))?;
        self.connections.link(&info).await
    }

    /// The worker that this operation was told to ask for this byte of a segment, unless it failed a moment ago.
    pub(crate) fn place_of(&self, operation: OperationId, segment: SegmentId, start: u32) -> Option<WorkerId> {
        self.places
            .of(operation, segment, (u64::from(start) / PAGE_BYTES) as u32)
            .filter(|worker| !self.failures.is_shunned(*worker))
    }
}
