//! How much is told of what a scan may read.

/// How much is told of what a scan may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What it most likely reads: for who brings it ahead, to whom a byte too many is worse than one that is read on demand.
    Likely,
    /// All that it may read.
    Whole,
}
