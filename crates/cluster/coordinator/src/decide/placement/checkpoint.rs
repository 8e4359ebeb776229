//! Popularity and routes as bytes for the database, so that a new coordinator need not begin cold (Getafix, section 4.5).

use forebay_placement::Popularity;
use forebay_protocol::{decode, encode};
use forebay_types::{Error, ObjectVersion, WorkerId};
use serde::{Deserialize, Serialize};

use super::Placement;
use super::replicas::{Replica, ReplicaState};

/// Bytes of each part at most: the database takes 64 MiB.
const BYTES_MAX: usize = 48 << 20;
/// Bytes of an entry beside its texts and workers, about.
const ENTRY_BYTES: usize = 48;
/// Begins the part with the names; another layout has another number.
const LAYOUT: u8 = 1;

/// What a coordinator keeps of placement for the next one: popularity, and which segments are routed where. Who holds what
/// the workers say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) window: u64,
    /// [`Popularity::encode`].
    pub(crate) popularity: Vec<u8>,
    /// Names and routes.
    pub(crate) routes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    version: ObjectVersion,
    index: u32,
    planned: Vec<(WorkerId, u32)>,
    routed: Vec<(WorkerId, u32)>,
}

impl Checkpoint {
    pub(super) fn of(placement: &Placement) -> Self {
        let window = placement.popularity.window();
        let mut all: Vec<_> = placement.segments.iter().map(|(key, it)| (it.heat.at(window), key, it)).collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut bytes = 0;
        let kept = all.into_iter().map_while(|(_, key, it)| {
            let routed = if placement.routes.names(*key) { it.routed.clone() } else { Vec::new() };
            let texts = it.version.key.as_str().len() + it.version.tag.as_str().len();
            bytes += ENTRY_BYTES + texts + 16 * (it.planned.len() + routed.len());
            let (version, planned) = (it.version.clone(), it.planned.clone());
            (bytes <= BYTES_MAX).then_some(Kept { version, index: it.index, planned, routed })
        });
        let kept: Vec<Kept> = kept.collect();
        Self {
            window: placement.period.number,
            popularity: placement.popularity.encode(BYTES_MAX),
            routes: encode(&(LAYOUT, kept)).to_vec(),
        }
    }
}

impl Placement {
    /// Goes on from a checkpoint; windows are numbered anew. Workers that are presumed to live are presumed to hold what was
    /// routed to them.
    pub(crate) fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let (layout, kept): (u8, Vec<Kept>) = decode(&checkpoint.routes)?;
        if layout != LAYOUT {
            return Err(Error::invalid(format!("the checkpoint of placement has layout {layout}, this is {LAYOUT}")));
        }
        let before = Popularity::decode(&checkpoint.popularity)?;
        self.popularity = Popularity::new(self.period.number);
        for (segment, usage) in before.segments() {
            self.popularity.add(self.period.number, segment, usage);
        }
        for Kept { version, index, planned, routed } in kept {
            let key = self.track(&version, index);
            let workers = &self.workers;
            let tracked = self.segments.get_mut(&key).expect("it is tracked");
            let routed: Vec<_> = routed.into_iter().filter(|(worker, _)| workers.contains(worker)).collect();
            let held = Replica { state: ReplicaState::Held, held_bytes: tracked.bytes() };
            tracked.replicas.clear();
            routed.iter().for_each(|(worker, _)| tracked.replicas.insert(*worker, held));
            tracked.planned = planned;
            if !routed.is_empty() {
                tracked.routed = routed;
            }
            self.reroute(std::time::Duration::ZERO, key);
        }
        Ok(())
    }
}
