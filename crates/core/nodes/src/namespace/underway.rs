//! What other workers are about to give up, and this one has not got yet.

use crate::node::Node;
use crate::terms::DirId;

/// A node that another worker is about to give up.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) rename: u128,
    /// The worker that has it until then.
    pub(crate) source: u64,
    pub(crate) node: Node,
}

/// A container that another worker is about to give up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// What it is there.
    pub(crate) old: DirId,
    pub(crate) source: u64,
    /// Of what its name was when it began to come.
    pub(crate) parent: DirId,
    pub(crate) is_whole: bool,
}
