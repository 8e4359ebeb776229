//! Reads that need no waiting: the worker is in this process, and has all of it.

use forebay_placement::holder;
use forebay_protocol::{AtHand, Handed};
use forebay_types::{RouteKey, SEGMENT_BYTES, WorkerId};

use super::{Reads, start_of};
use crate::route::Known;

impl Reads {
    /// An object of which the worker that would be asked first has all that is wanted, in this process.
    pub(crate) fn at_hand(&self, wanted: &AtHand) -> Option<Handed> {
        let known = self.routes.view.known();
        let worker = self.first_holder(wanted, &known)?;
        if self.routes.failures.is_shunned(worker) {
            return None;
        }
        let session = self.routes.connections.session(known.worker(worker)?)?;
        let handed = session.connection.at_hand(wanted)?;
        if wanted.range.is_some() {
            self.counters.at_hand(handed.bytes.len() as u64);
        }
        Some(handed)
    }

    /// The worker that is asked first: the home for what is known of an object, for its bytes the only one of this host among
    /// those that the routing table names, where it names any.
    fn first_holder(&self, wanted: &AtHand, known: &Known) -> Option<WorkerId> {
        let start = wanted.range.map_or(0, start_of);
        let route = RouteKey::of(wanted.mount, &wanted.key, u32::try_from(start / SEGMENT_BYTES).ok()?);
        let Some(line) = known.routes.holders(route).filter(|_| wanted.range.is_some()) else {
            return holder(route, &known.workers);
        };
        let mut near = None;
        for (worker, _) in line.iter() {
            // One that is gone is looked into by who asks as usual.
            if self.routes.connections.is_beside(known.worker(*worker)?) && near.replace(*worker).is_some() {
                return None;
            }
        }
        near
    }
}
