//! What workers tell of themselves, and what calls to them tell.

use std::time::Duration;

use forebay_protocol::{DataReply, DataRequest, Hint};
use forebay_types::WorkerId;

use super::Routes;
use crate::connect::{Failure, Link, ask};

/// How long a worker may take to say that it is there.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// A worker that was heard of within this is there.
const HEARD_WITHIN_US: u64 = 100_000;

impl Routes {
    /// A worker said how it stands.
    pub(crate) fn heard(&self, worker: WorkerId, hint: Hint) {
        self.queues.heard(worker, hint);
        self.view.heard_of(hint.routes);
    }

    /// A call to a worker has failed: others are asked before it, and the view is asked for soon.
    pub(crate) fn lost(&self, worker: WorkerId) {
        self.failures.failed(worker);
        self.view.surprised();
    }

    /// Makes sure that a worker is there before something is asked of it that can't be asked twice: one that was stopped keeps
    /// its connections, and would do it when it goes on.
    pub(crate) async fn is_there(&self, link: &Link) -> Result<(), Failure> {
        if self.queues.is_fresh(link.worker, HEARD_WITHIN_US) {
            return Ok(());
        }
        self.says_so(link, ANSWER_WITHIN).await
    }

    /// Asks a worker whether it is there, whatever was heard of it.
    pub(super) async fn says_so(&self, link: &Link, within: Duration) -> Result<(), Failure> {
        match ask(link, &DataRequest::Queue, within).await {
            Ok(DataReply::Queue(hint)) => {
                self.queues.told(link.worker, hint);
                Ok(())
            }
            Ok(_) | Err(Failure::Answered(_)) => Ok(()),
            Err(Failure::Unreached(error) | Failure::Lost(error)) => Err(Failure::Unreached(error)),
        }
    }
}
