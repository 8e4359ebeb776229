//! What is copied first, and from where.

use std::cmp::Reverse;

use forebay_types::WorkerId;

use super::CopySource;
use super::damage::Survivor;

/// The order in which shards that have lost replicas are repaired, smallest first: fewest whole replicas left, then most requests
/// waiting.
///
/// ```
/// use forebay_navigation::urgency;
/// assert!(urgency(0, 0) < urgency(1, 90));
/// assert!(urgency(1, 90) < urgency(1, 7));
/// ```
pub fn urgency(whole: usize, waiting: u64) -> (usize, Reverse<u64>) {
    (whole, Reverse(waiting))
}

/// Where a shard is copied from, the best first, each tried when those before it failed: the smallest replica that is left, of
/// equal ones that of the worker with less to do by `load`; shared storage at the end. Nothing is copied from what is no whole
/// replica.
///
/// The smallest replica has the fewest layers to answer with, and is asked least where replicas are chosen by what they answer
/// ([`choose`](crate::choose)): what a copy takes of its worker costs its readers least. All that goes over is the base, which is the
/// same in all replicas (BlowFish, section 5.1).
pub fn sources(survivors: &[Survivor], load: impl Fn(WorkerId) -> u64) -> Vec<CopySource> {
    let mut whole: Vec<&Survivor> = survivors.iter().filter(|survivor| survivor.is_whole).collect();
    whole.sort_by_key(|survivor| (survivor.bytes, load(survivor.worker), survivor.worker));
    let workers = whole.iter().map(|survivor| CopySource::Worker(survivor.worker));
    let sources: Vec<_> = workers.chain([CopySource::SharedStorage]).collect();
    debug_assert_eq!(sources.len(), whole.len() + 1, "each whole replica, and shared storage");
    sources
}
