//! The task that makes plans one at a time, so that a slow one holds up nothing that is asked meanwhile.

use std::sync::Arc;

use forebay_transport::unix_now;
use forebay_types::Error;
use tokio::sync::mpsc;
use tracing::{debug, error};

use super::shared::Shared;
use crate::decide::{Event, Problem};

/// Makes one plan after the other beside everything else: a large one takes seconds.
pub(crate) async fn plan(shared: Arc<Shared>, mut problems: mpsc::Receiver<Box<Problem>>) -> Error {
    while let Some(problem) = problems.recv().await {
        let today = unix_now();
        let made = forebay_runtime::spawn_blocking(move || {
            let began = forebay_runtime::now();
            (problem.solve(today), began.elapsed())
        });
        match made.await {
            Ok((outcome, took)) => {
                debug!(?took, "plan made");
                shared.decide(Event::Planned(Box::new(outcome), took));
            }
            // The plan of before stands.
            Err(error) => error!(%error, "no plan was made"),
        }
    }
    Error::closed("the coordinator was shut down")
}
