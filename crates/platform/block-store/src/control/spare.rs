//! Blocks of freed temporary data that keep their memory for the next ones, and give it up before eviction begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_types::{Error, PAGES_PER_BLOCK, Result};

use super::Reservation;
use crate::core::Core;
use crate::table::TierKind;

/// Whole blocks of the DRAM tier that belonged to temporary data and are still backed by memory, for the next ones: fresh memory
/// costs about as much as what is written to it. They count as used, and go before anything is evicted.
#[derive(Default)]
pub(crate) struct Spares {
    /// First pages, with the time since when; the one used last is at the end.
    blocks: VecDeque<(Instant, u64)>,
}

impl Core {
    /// Keeps the memory of a block whose addresses and room nobody else has.
    pub fn keep_spare(&self, start: u64) {
        self.spares.lock().blocks.push_back((forebay_runtime::now(), start));
        // Whoever found nothing to evict finds this.
        self.dram.unstick();
    }

    /// A block with memory, addresses and room, for someone who writes over all of it.
    pub fn take_spare(&self) -> Option<u64> {
        Some(self.spares.lock().blocks.pop_back()?.1)
    }

    /// Gives back what was kept longest; false when there is none.
    pub fn give_up_spare(&self) -> bool {
        self.give_up(Duration::ZERO)
    }

    /// Gives back what nobody has used for `idle`.
    pub fn trim_spares(&self, idle: Duration) {
        while self.give_up(idle) {}
    }

    fn give_up(&self, idle: Duration) -> bool {
        let oldest = {
            let mut spares = self.spares.lock();
            let is_idle = spares.blocks.front().is_some_and(|(since, _)| since.elapsed() >= idle);
            if is_idle { spares.blocks.pop_front() } else { None }
        };
        let Some((_, start)) = oldest else { return false };
        let pages = u64::from(PAGES_PER_BLOCK);
        self.arena.punch(start, pages);
        self.dram.addresses.lock().release(start, pages);
        self.dram.release(pages);
        true
    }

    /// Room and addresses for a whole block, and whether it has no memory yet. `Retry` when everything else is pinned or kept, or
    /// addresses have run out.
    pub fn make_block(self: &Arc<Self>, sum_pages: u64) -> Result<(u64, Reservation, bool)> {
        let pages = u64::from(PAGES_PER_BLOCK);
        if let Some(start) = self.take_spare() {
            let mut reservation = self.make_room(TierKind::Dram, sum_pages).inspect_err(|_| self.keep_spare(start))?;
            reservation.take_over(pages);
            return Ok((start, reservation, false));
        }
        let reservation = self.make_room(TierKind::Dram, pages + sum_pages)?;
        loop {
            let allocated = self.dram.addresses.lock().allocate(pages);
            if let Some(start) = allocated {
                return Ok((start, reservation, true));
            }
            if !self.evict_block(TierKind::Dram) {
                return Err(Error::retry("the DRAM tier has no addresses left and all of it is pinned or kept"));
            }
        }
    }
}
