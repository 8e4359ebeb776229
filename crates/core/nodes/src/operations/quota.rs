//! What is asked of a container's quota.

use serde::{Deserialize, Serialize};

use crate::namespace::Namespace;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// What a container's files and values have, and may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes of the files and values that are directly in it.
    pub bytes: u64,
    /// So many at most.
    pub quota: Option<u64>,
}

impl Namespace {
    /// From now on the container's files and values have so many bytes at most; with none as many as there is room for. What is there
    /// stays, also when that is more. `Invalid` when the container holds containers: their nodes may be with other workers, so that
    /// nobody could count them before each put.
    pub fn set_quota(&mut self, dir: DirId, quota: Option<u64>) -> NodeResult<()> {
        let table = self.open_table(dir)?;
        let invalid = |message: &str| Err(NodeError::new(NodeErrorKind::Invalid, message));
        if quota.is_some() {
            if dir == ROOT {
                return invalid("/tmp has no quota of its own: temporary-share bounds it");
            }
            let arriving = self.arriving.iter().filter(|((to, _), _)| *to == dir).map(|(_, arriving)| &arriving.node);
            if table.nodes.values().chain(arriving).any(|node| node.container().is_some()) {
                return invalid("it holds containers: a container with a quota holds files and values only, give each its own");
            }
        }
        self.whole(|names| names.step_quota(dir, quota));
        Ok(())
    }

    /// What a container's files and values have, and may have.
    pub fn usage(&self, dir: DirId) -> NodeResult<Usage> {
        let table = self.table(dir)?;
        Ok(Usage { bytes: table.used, quota: table.quota })
    }
}
