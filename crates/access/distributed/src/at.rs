//! The scheduler's address as those who ask it know it, followed to where the coordinator says that it came back.

use std::sync::Arc;

use forebay_client::{Client, Wait};
use forebay_transport::{Guarded, Security};
use forebay_types::Result;
use parking_lot::Mutex;

use crate::control::{ClusterState, SchedulerControl};
use crate::ports::Ways;

/// Where the scheduler is, as far as that is known: one that is gone may come back elsewhere.
#[derive(Clone)]
pub(crate) struct At {
    now: Arc<Mutex<(String, SchedulerControl)>>,
    ways: Ways,
    security: Security,
    /// Asks the coordinator where it is; none where its address was given.
    finds: Option<Client>,
    wait: Wait,
}

impl At {
    pub(crate) fn new(scheduler: &str, ways: &Ways, security: &Security, finds: Option<Client>, wait: Wait) -> Result<Self> {
        let control = SchedulerControl::at(scheduler, ways.endpoint(scheduler)?, ways);
        let now = Arc::new(Mutex::new((scheduler.to_string(), control)));
        Ok(Self { now, ways: ways.clone(), security: security.clone(), finds, wait })
    }

    /// `host:port` of the scheduler.
    pub(crate) fn address(&self) -> String {
        self.now.lock().0.clone()
    }

    /// Questions to it.
    pub(crate) fn control(&self) -> SchedulerControl {
        self.now.lock().1.clone()
    }

    /// Its cluster, once it answers.
    pub(crate) async fn answers(&self) -> Result<ClusterState> {
        let what = format!("the scheduler at {}", self.address());
        self.wait.until(&what, || self.ask()).await
    }

    async fn ask(&self) -> Result<ClusterState> {
        self.follow().await?;
        // Says whether it is there, and whether it lets us in, in words of ours: all that the other way knows is that it ended.
        Guarded::connect(&self.address(), &self.security).await.map_err(|error| {
            error.context("the scheduler does not answer: start it with `forebay up --cluster N` or `forebay scheduler`")
        })?;
        self.control().cluster().await
    }

    /// Goes where the coordinator knows a scheduler to be. What it does not know, or can't say now, changes nothing.
    async fn follow(&self) -> Result<()> {
        let Some(client) = &self.finds else { return Ok(()) };
        let found = match client.scheduler().await {
            Ok(Some(found)) if found != self.address() => found,
            _ => return Ok(()),
        };
        let control = SchedulerControl::at(&found, self.ways.endpoint(&found)?, &self.ways);
        *self.now.lock() = (found, control);
        Ok(())
    }
}
