//! What of a tier is taken and by whom, which addresses are free, and who goes next: counted, without a look at any byte.

mod account;
mod allocate;
mod spares;
mod spread;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use forebay_eviction::S3Fifo;
use forebay_types::PAGE_BYTES;
use parking_lot::Mutex;

use crate::table::BlockRef;

pub(crate) use account::{Account, OWNERS, index};
pub(crate) use allocate::Addresses;
pub(crate) use spares::Spares;
pub(crate) use spread::{DiskRoom, choose};

/// The books of one tier: its addresses, how much of it is taken and by whom, and who goes next.
pub(crate) struct Tier {
    /// In pages.
    pub capacity: u64,
    /// Pages that are there, promised to someone, or hold checksums.
    used: AtomicU64,
    pub account: Account,
    pub addresses: Mutex<Addresses>,
    pub policy: Mutex<S3Fifo<BlockRef>>,
    /// Grows whenever something changes that may make a block evictable.
    changes: AtomicU64,
    /// `changes` when the policy last found nothing to evict: as long as they are equal, asking again would be in vain.
    stuck_at: AtomicU64,
}

impl Tier {
    /// A tier of `capacity` pages in `addresses` pages of address space.
    pub fn new(capacity: u64, addresses: u64) -> Self {
        Self {
            capacity,
            used: AtomicU64::new(0),
            account: Account::default(),
            addresses: Mutex::new(Addresses::new(addresses)),
            policy: Mutex::default(),
            changes: AtomicU64::new(0),
            stuck_at: AtomicU64::new(u64::MAX),
        }
    }

    /// Takes room for `pages` more pages, if there is.
    pub fn try_reserve(&self, pages: u64) -> bool {
        let more = |used: u64| used.checked_add(pages).filter(|used| *used <= self.capacity);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Takes room whether or not there is any, as recovery does before it evicts.
    pub fn force_reserve(&self, pages: u64) {
        self.used.fetch_add(pages, Relaxed);
    }

    pub fn release(&self, pages: u64) {
        if pages > 0 {
            let before = self.used.fetch_sub(pages, Relaxed);
            assert!(before >= pages, "{pages} pages given back of {before}");
            self.unstick();
        }
    }

    pub fn is_overfull(&self) -> bool {
        self.used.load(Relaxed) > self.capacity
    }

    /// Something changed that may make a block evictable.
    pub fn unstick(&self) {
        self.changes.fetch_add(1, SeqCst);
    }

    pub fn is_stuck(&self) -> bool {
        self.stuck_at.load(SeqCst) == self.changes.load(SeqCst)
    }

    /// To be handed to [`Self::stick`] if a search that begins now finds nothing.
    pub fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    pub fn stick(&self, changes: u64) {
        self.stuck_at.store(changes, SeqCst);
    }

    pub fn capacity_bytes(&self) -> u64 {
        self.capacity * PAGE_BYTES
    }

    pub fn free_pages(&self) -> u64 {
        self.capacity.saturating_sub(self.used.load(Relaxed))
    }

    pub fn used_bytes(&self) -> u64 {
        self.used.load(Relaxed) * PAGE_BYTES
    }

    pub fn heap_bytes(&self) -> usize {
        self.policy.lock().heap_bytes() + self.addresses.lock().heap_bytes()
    }
}
