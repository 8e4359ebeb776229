//! What flights are carried out with.

use std::sync::Arc;
use std::time::Duration;

use forebay_block_store::BlockStore;

use super::claims::Claims;
use super::elsewhere::Elsewhere;
use crate::signals::Signals;
use crate::versions::Versions;

/// What transfers work with.
pub(crate) struct Means {
    pub(crate) store: BlockStore,
    pub(crate) versions: Arc<Versions>,
    pub(crate) signals: Arc<Signals>,
    pub(crate) elsewhere: Elsewhere,
    pub(crate) claims: Arc<Claims>,
    /// So long readers wait for the last byte of a large object, by which all of it is judged.
    pub(crate) judged_within: Duration,
}
