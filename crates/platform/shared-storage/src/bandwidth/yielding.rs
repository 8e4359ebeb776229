//! Prefetch beside demand where no bound sees to it: two reads of it at a time, so that demand has most of the link.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Prefetch reads that go on while demand reads are under way: enough that the link doesn't idle when demand waits for a
/// first byte, few enough that demand gets most of it.
const PREFETCH_BESIDE_DEMAND: usize = 2;

/// Lets prefetch step back for demand where no bound does: the network's own sharing would give each read the same.
pub(crate) struct Yielding {
    demand: AtomicUsize,
    demand_ended: Notify,
    places: Semaphore,
}

impl Yielding {
    pub(crate) fn new() -> Arc<Self> {
        let places = Semaphore::new(PREFETCH_BESIDE_DEMAND);
        Arc::new(Self { demand: AtomicUsize::new(0), demand_ended: Notify::new(), places })
    }

    /// A demand read is under way until this is dropped.
    pub(crate) fn demand(self: &Arc<Self>) -> DemandGuard {
        self.demand.fetch_add(1, SeqCst);
        DemandGuard(Arc::clone(self))
    }

    /// Waits until a prefetch read may take its next bytes; hold what it returns until they have come.
    pub(crate) async fn prefetch_turn(&self) -> Option<SemaphorePermit<'_>> {
        let ended = self.demand_ended.notified();
        tokio::pin!(ended);
        // Listens before it looks, so that no end is missed.
        ended.as_mut().enable();
        if self.demand.load(SeqCst) == 0 {
            return None;
        }
        tokio::select! {
            place = self.places.acquire() => place.ok(),
            () = ended => None,
        }
    }
}

/// A demand read that is under way.
pub(crate) struct DemandGuard(Arc<Yielding>);

impl Drop for DemandGuard {
    fn drop(&mut self) {
        if self.0.demand.fetch_sub(1, SeqCst) == 1 {
            self.0.demand_ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn prefetch_steps_back_while_demand_reads() {
        let yielding = Yielding::new();
        assert!(yielding.prefetch_turn().await.is_none());
        let demand = yielding.demand();
        let places = [yielding.prefetch_turn().await, yielding.prefetch_turn().await];
        assert!(places.iter().all(Option::is_some));
        let third = yielding.prefetch_turn();
        tokio::pin!(third);
        assert!(futures::poll!(third.as_mut()).is_pending());
        drop(demand);
        assert!(third.await.is_none());
    }
}
