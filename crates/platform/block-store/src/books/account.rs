//! Whose the pages of a tier are, how many of them are kept and pinned: counted as they come and go, never by a walk.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_types::{Owner, PAGE_BYTES};

/// What a tier's pages are counted by. All in pages.
#[derive(Debug, Default)]
pub(crate) struct Account {
    by_owner: [AtomicU64; 4],
    kept: AtomicU64,
    pinned: AtomicU64,
    /// Blocks of which the tier has any page.
    blocks: AtomicU64,
}

pub(crate) const OWNERS: [Owner; 4] = [Owner::Cache, Owner::Temporary, Owner::Shard, Owner::Form];

impl Account {
    pub fn add(&self, owner: Owner, pages: u32, keep: bool, pinned: bool) {
        self.by_owner[index(owner)].fetch_add(u64::from(pages), Relaxed);
        if keep {
            self.kept.fetch_add(u64::from(pages), Relaxed);
        }
        if pinned {
            self.pinned.fetch_add(u64::from(pages), Relaxed);
        }
    }

    pub fn subtract(&self, owner: Owner, pages: u32, keep: bool, pinned: bool) {
        self.by_owner[index(owner)].fetch_sub(u64::from(pages), Relaxed);
        if keep {
            self.kept.fetch_sub(u64::from(pages), Relaxed);
        }
        if pinned {
            self.pinned.fetch_sub(u64::from(pages), Relaxed);
        }
    }

    /// Counts pages as kept from now on, or not.
    pub fn set_kept(&self, pages: u64, keep: bool) {
        if keep {
            self.kept.fetch_add(pages, Relaxed);
        } else {
            self.kept.fetch_sub(pages, Relaxed);
        }
    }

    /// Counts pages as pinned from now on, or not.
    pub fn set_pinned(&self, pages: u32, pinned: bool) {
        if pinned {
            self.pinned.fetch_add(u64::from(pages), Relaxed);
        } else {
            self.pinned.fetch_sub(u64::from(pages), Relaxed);
        }
    }

    /// Counts room that files beside the tier take, in pages.
    pub fn lend(&self, owner: Owner, pages: u64) {
        self.by_owner[index(owner)].fetch_add(pages, Relaxed);
    }

    /// The same the other way.
    pub fn take_back(&self, owner: Owner, pages: u64) {
        let before = self.by_owner[index(owner)].fetch_sub(pages, Relaxed);
        assert!(before >= pages, "{pages} pages taken back of {before}");
    }

    pub fn add_block(&self) {
        self.blocks.fetch_add(1, Relaxed);
    }

    pub fn drop_block(&self) {
        self.blocks.fetch_sub(1, Relaxed);
    }

    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    pub fn kept_pages(&self) -> u64 {
        self.kept.load(Relaxed)
    }

    pub fn kept_bytes(&self) -> u64 {
        self.kept.load(Relaxed) * PAGE_BYTES
    }

    pub fn pinned_bytes(&self) -> u64 {
        self.pinned.load(Relaxed) * PAGE_BYTES
    }

    pub fn bytes_of(&self, owner: Owner) -> u64 {
        self.by_owner[index(owner)].load(Relaxed) * PAGE_BYTES
    }
}

/// Where an owner stands among [`OWNERS`], which is its number on disk too.
pub(crate) fn index(owner: Owner) -> usize {
    match owner {
        Owner::Cache => 0,
        Owner::Temporary => 1,
        Owner::Shard => 2,
        Owner::Form => 3,
    }
}
