//! What else of a cluster is shown where there is one: it comes when it has started, after the coordinator.

use std::sync::{Arc, OnceLock};

use crate::{Loads, Scheduler, Statements, Workshop};

/// Doors to what this crate does not know; each is open from when it is set. Clones are the same.
#[derive(Clone, Default)]
pub struct Doors {
    /// The scheduler of distributed SQL.
    pub scheduler: Arc<OnceLock<Arc<dyn Scheduler>>>,
    /// What brings data into the tiers.
    pub loads: Arc<OnceLock<Arc<dyn Loads>>>,
    /// What runs statements.
    pub statements: Arc<OnceLock<Arc<dyn Statements>>>,
    /// What datasets of shards are made anew with.
    pub workshop: Arc<OnceLock<Workshop>>,
}
