//! Room of the disk tier that is lent to files beside it.

use std::sync::Arc;

use forebay_types::{Owner, PAGE_BYTES, Result};

use crate::core::Core;
use crate::table::{DiskNo, Place};

/// The store's own folder, beside which such files lie.
const OWN: Place = Place::Disk(DiskNo(0));

/// Room of the disk tier that files of shards take: the tier's part on their disk and they never take more together than the tier may. Counted as
/// [`Owner::Shard`]'s, and given back with the value.
pub struct Lent {
    core: Arc<Core>,
    pages: u64,
}

impl Lent {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, pages: 0 }
    }

    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    /// What the disk tier may take on the disk that lends, in bytes.
    pub fn tier_bytes(&self) -> u64 {
        self.core.tier(OWN).capacity_bytes()
    }

    /// Makes it at least so much, evicting what it takes, while its caller's thread waits. `Retry`, and as much as before, when the rest of
    /// the tier is pinned or kept.
    pub fn grow(&mut self, bytes: u64) -> Result<()> {
        let more = bytes.div_ceil(PAGE_BYTES).saturating_sub(self.pages);
        if more == 0 {
            return Ok(());
        }
        let mut room = self.core.make_room(OWN, more)?;
        // From here on it is this value's to give back.
        room.spend(more);
        self.core.tier(OWN).account.lend(Owner::Shard, more);
        self.pages += more;
        Ok(())
    }

    /// Makes it at most so much: the tier has the rest again.
    pub fn shrink(&mut self, bytes: u64) {
        let less = self.pages.saturating_sub(bytes.div_ceil(PAGE_BYTES));
        if less == 0 {
            return;
        }
        let tier = self.core.tier(OWN);
        tier.account.take_back(Owner::Shard, less);
        tier.release(less);
        self.pages -= less;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{ErrorKind, PageRun, SegmentId};

    use crate::{BlockStore, SegmentSpec, StoreSettings};

    use super::*;

    const MIB: u64 = 1 << 20;

    async fn fill(store: &BlockStore, segment: u128, keep: bool) {
        let spec = SegmentSpec { id: SegmentId(segment), bytes: MIB as u32, owner: Owner::Cache, keep };
        let mut fill = store.begin_fill(spec, PageRun::new(0, 256)).unwrap();
        fill.write(0, &vec![segment as u8; MIB as usize]).unwrap();
        fill.finish().unwrap();
        store.flush().await;
    }

    fn on_disk(store: &BlockStore) -> usize {
        (1..=12u128).filter(|segment| store.held(SegmentId(*segment)).disk_bytes > 0).count()
    }

    #[tokio::test]
    async fn what_is_lent_takes_the_room_of_cached_blocks_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 16 * MIB).with_disk(9 * MIB)).unwrap();
        for segment in 1..=8 {
            fill(&store, segment, false).await;
        }
        assert_eq!(on_disk(&store), 8);
        let mut lent = store.lend().unwrap();
        lent.grow(4 * MIB).unwrap();
        let disk = store.usage().disk;
        assert_eq!((lent.bytes(), disk.bytes_of(Owner::Shard)), (4 * MIB, 4 * MIB));
        assert!(disk.used_bytes <= disk.capacity_bytes && disk.own_bytes() == 4 * MIB, "{disk:?}");
        assert_eq!(store.core.disks[0].room().most, 5 * 256, "what blocks may have beside it");
        let left = on_disk(&store);
        assert!((3..=5).contains(&left), "{left} blocks beside what is lent");
        lent.shrink(MIB);
        assert_eq!(store.usage().disk.bytes_of(Owner::Shard), MIB);
        drop(lent);
        let disk = store.usage().disk;
        assert_eq!(disk.bytes_of(Owner::Shard), 0);
        for segment in 9..=12 {
            fill(&store, segment, false).await;
        }
        assert!(on_disk(&store) >= left + 3, "the tier has its room again");
        store.close().await;
    }

    #[tokio::test]
    async fn what_is_kept_is_not_lent() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 16 * MIB).with_disk(4 * MIB)).unwrap();
        for segment in 1..=2 {
            fill(&store, segment, true).await;
        }
        let mut lent = store.lend().unwrap();
        lent.grow(MIB).unwrap();
        assert_eq!(lent.grow(3 * MIB).unwrap_err().kind(), ErrorKind::Retry);
        assert_eq!((lent.bytes(), on_disk(&store)), (MIB, 2), "as before");
        assert_eq!(lent.grow(64 * MIB).unwrap_err().kind(), ErrorKind::Retry, "more than the tier has");
        store.close().await;
    }

    #[test]
    fn there_is_nothing_to_lend_without_a_disk_tier() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 * MIB)).unwrap();
        assert!(store.lend().is_none());
        assert_eq!(store.regret(), crate::Regret::default());
    }
}
