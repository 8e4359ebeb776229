//! Freed temporary data leaves its memory to the next, and gives it up before eviction begins.

use std::sync::Arc;
use std::time::Duration;

use forebay_types::{Error, PAGES_PER_BLOCK, Result};

use super::{Core, Reservation};
use crate::table::Place;

impl Core {
    /// Keeps the memory of a block whose addresses and room nobody else has.
    pub fn keep_spare(&self, start: u64) {
        self.spares.lock().put(start);
        // Whoever found nothing to evict finds this.
        self.dram.unstick();
    }

    /// A block with memory, addresses and room, for someone who writes over all of it.
    pub fn take_spare(&self) -> Option<u64> {
        self.spares.lock().take()
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
        let oldest = self.spares.lock().take_idle(idle);
        let Some(start) = oldest else { return false };
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
            let mut reservation = self.make_room(Place::Dram, sum_pages).inspect_err(|_| self.keep_spare(start))?;
            reservation.take_over(pages);
            return Ok((start, reservation, false));
        }
        let reservation = self.make_room(Place::Dram, pages + sum_pages)?;
        loop {
            let allocated = self.dram.addresses.lock().allocate(pages);
            if let Some(start) = allocated {
                return Ok((start, reservation, true));
            }
            if !self.evict_block(Place::Dram) {
                return Err(Error::retry("the DRAM tier has no addresses left and all of it is pinned or kept"));
            }
        }
    }
}
