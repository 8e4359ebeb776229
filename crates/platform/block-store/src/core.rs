use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use forebay_types::{PAGE_BYTES, Result};

use crate::control::Tier;
use crate::data::{Arena, SUMS_PER_PAGE, SumGroups};
use crate::settings::StoreSettings;
use crate::table::{Table, TierKind};

/// Addresses of a tier at least, in bytes, so that small tiers don't run out of them.
const ADDRESS_BYTES_MIN: u64 = 1 << 40;
/// Addresses for each byte of capacity.
const ADDRESSES_PER_BYTE: u64 = 64;

/// Everything that fills, pins and the store's own threads share.
pub(crate) struct Core {
    pub settings: StoreSettings,
    pub table: Table,
    pub arena: Arena,
    pub dram: Tier,
    pub dram_sums: SumGroups,
    pub closed: AtomicBool,
}

impl Core {
    pub fn new(settings: StoreSettings) -> Result<Self> {
        let addresses = (settings.dram_bytes.saturating_mul(ADDRESSES_PER_BYTE)).max(ADDRESS_BYTES_MIN) / PAGE_BYTES;
        let addresses = addresses.next_multiple_of(SUMS_PER_PAGE);
        Ok(Self {
            table: Table::new(),
            arena: Arena::new(addresses, 0)?,
            dram: Tier::new(TierKind::Dram, settings.dram_bytes / PAGE_BYTES, addresses),
            dram_sums: SumGroups::new(addresses),
            closed: AtomicBool::new(false),
            settings,
        })
    }

    pub fn tier(&self, kind: TierKind) -> &Tier {
        match kind {
            TierKind::Dram => &self.dram,
            TierKind::Disk => unreachable!(),
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }
}

impl Core {
    /// Gives pages of a tier back, with the pages of checksums that go out of use by that; returns how many in all.
    pub fn punch(&self, tier: TierKind, start: u64, len: u64) -> u64 {
        debug_assert_eq!(tier, TierKind::Dram);
        self.arena.punch(start, len);
        len + self.dram_sums.remove(start, len, |group| self.arena.punch_sums(group))
    }
}
