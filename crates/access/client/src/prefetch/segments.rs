//! Where the segments of a version are, and who is asked for them: for people who want to know why.

use std::slice::from_ref;

use forebay_protocol::Held;
use forebay_types::{ObjectVersion, Result, RouteKey, WorkerId, segment_bytes};

use super::Prefetches;

/// Where one segment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPlace {
    /// Its place in the object.
    pub index: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Its holders by the routing table and the part of its reads that goes to each, in percent. Empty where hashing says who it is.
    pub routed: Vec<(WorkerId, u64)>,
    /// Who is asked by hashing; none when there are no workers.
    pub hashed: Option<WorkerId>,
    /// What workers hold of it; those that hold nothing are not named.
    pub held: Vec<(WorkerId, Held)>,
}

impl Prefetches {
    /// Where a version's segments are, in their order. `Retry` when a worker can't be asked.
    pub(crate) async fn segment_places(&self, version: &ObjectVersion) -> Result<Vec<SegmentPlace>> {
        let ids = self.segments(from_ref(version))?;
        let known = self.routes.view.known_arc();
        let place = |index: u32| {
            let route = RouteKey::of(version.mount, &version.key, index);
            SegmentPlace {
                index,
                bytes: segment_bytes(version.size, index),
                routed: known.routes.holders(route).map(|holders| percent(holders)).unwrap_or_default(),
                hashed: self.routes.failures.order(route, &known.workers).first().copied(),
                held: Vec::new(),
            }
        };
        let mut places: Vec<_> = (0..ids.len() as u32).map(place).collect();
        for (worker, held_there) in self.held_at_each(&ids).await? {
            for (place, held) in places.iter_mut().zip(held_there) {
                if held.bytes > 0 {
                    place.held.push((worker, held));
                }
            }
        }
        Ok(places)
    }
}

/// The part of each in the sum of their weights.
fn percent(holders: &[(WorkerId, u32)]) -> Vec<(WorkerId, u64)> {
    let all: u64 = holders.iter().map(|(_, weight)| u64::from(*weight)).sum();
    holders.iter().map(|(worker, weight)| (*worker, u64::from(*weight) * 100 / all.max(1))).collect()
}
