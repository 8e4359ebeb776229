//! What is asked of a container's quota.

use serde::{Deserialize, Serialize};

use crate::namespace::Namespace;
use crate::terms::{DirId, NodeError, NodeErrorKind, NodeResult, ROOT};

/// What is in a container, and may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Bytes of the files and values in it; with a quota with those in containers in it, else of its own only.
    pub bytes: u64,
    /// So many at most.
    pub quota: Option<u64>,
}

impl Namespace {
    /// From now on the files and values in the container, and in containers in it, have so many bytes at most; with none as many as there
    /// is room for. What is there stays, also when that is more. `Invalid` when it holds containers that are with other workers: nobody
    /// could count those before each put. Containers that are made in it from now on are to be made here.
    pub fn set_quota(&mut self, dir: DirId, quota: Option<u64>) -> NodeResult<()> {
        self.open_table(dir)?;
        if quota.is_some() {
            if dir == ROOT {
                let message = "/tmp has no quota of its own: temporary-share bounds it";
                return Err(NodeError::new(NodeErrorKind::Invalid, message));
            }
            self.check_whole(dir)?;
        }
        self.whole(|names| names.step_quota(dir, quota));
        Ok(())
    }

    /// What is in a container, and may be.
    pub fn usage(&self, dir: DirId) -> NodeResult<Usage> {
        let table = self.table(dir)?;
        let bytes = if table.quota.is_some() { self.used_in(dir) } else { table.used };
        Ok(Usage { bytes, quota: table.quota })
    }
}
