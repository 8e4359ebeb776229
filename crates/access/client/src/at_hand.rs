use forebay_placement::holder;
use forebay_protocol::{AtHand, Handed, RangeSpec};
use forebay_types::{Mount, RouteKey, SEGMENT_BYTES, WorkerId};

use crate::client::Client;
use crate::core::Core;
use crate::view::Known;

/// Reads that need no waiting: the worker is in this process, and has all of it.
impl Client {
    /// The mount of that name in the view as it is.
    pub fn known_mount(&self, name: &str) -> Option<std::sync::Arc<Mount>> {
        self.core.view.known().mount_named(name).cloned()
    }

    /// An object of which the worker that would be asked first has all that is wanted, in this process. None when it has to be
    /// asked, or another one: nothing was begun then.
    pub fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        let core = &self.core;
        let known = core.view.known();
        let worker = core.first_holder(wanted, &known)?;
        if core.failures.is_shunned(worker) {
            return None;
        }
        let session = core.connections.session(known.worker(worker)?)?;
        let handed = session.connection().at_hand(wanted)?;
        if wanted.range.is_some() {
            core.counters.at_hand(handed.bytes.len() as u64);
        }
        Some(handed)
    }
}

impl Core {
    /// The worker that is asked first: the home for what is known of an object, for its bytes the only one of this host among
    /// those that the routing table names, where it names any.
    fn first_holder(&self, wanted: &AtHand, known: &Known) -> Option<WorkerId> {
        let start = match wanted.range {
            Some(RangeSpec::Bounded { start, .. } | RangeSpec::From { start }) => start,
            Some(RangeSpec::Suffix { .. }) | None => 0,
        };
        let route = RouteKey::of(wanted.mount, &wanted.key, u32::try_from(start / SEGMENT_BYTES).ok()?);
        let Some(line) = known.routes.holders(route).filter(|_| wanted.range.is_some()) else {
            return holder(route, &known.workers);
        };
        let mut near = None;
        for (worker, _) in line.iter() {
            // One that is gone is looked into by who asks as usual.
            if self.connections.is_beside(known.worker(*worker)?) && near.replace(*worker).is_some() {
                return None;
            }
        }
        near
    }
}
