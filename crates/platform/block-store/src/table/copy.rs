//! One tier's side of a segment's entry.

use forebay_eviction::Uses;

use super::Claims;
use super::presence::Presence;

/// What one tier has of a segment.
#[derive(Debug, Default)]
pub(crate) struct TierCopy {
    /// First page of the extent in the tier's addresses; none while it has no extent.
    pub extent: Option<u64>,
    /// Pages that are there and readable.
    pub presence: Presence,
    /// Pages that someone writes to, or gives back; none of them is readable.
    pub claims: Claims,
    /// A bit for each block that the tier's eviction policy has an entry of, whether or not anything is left of it.
    pub listed: u64,
    /// Uses that the policy has not spent yet.
    pub uses: Uses,
}
