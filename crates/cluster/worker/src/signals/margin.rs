//! What a byte more of a tier would save: by it room is given to what is no copy of shared storage.

use std::time::Instant;

use forebay_block_store::{BlockStore, Regret};
use forebay_navigation::margin;

use super::meters::{Meters, ServedFrom};

/// How much of what was known stays with a new measurement of ten seconds; less with one of longer.
const KEEP: f64 = 0.8;

/// The margin of a tier, aged.
#[derive(Default)]
pub(crate) struct Margin {
    before: Option<Seen>,
    /// Seconds that each byte more of the tier saves in a second, as far as is known.
    pub(crate) saves: f64,
    /// Seconds that all blocks of the tier save in a second: reads that find their bytes in it, times what they would wait longer.
    pub(crate) saves_in_all: f64,
    /// What a read beyond it waits longer, by the last one that was.
    waits_secs: f64,
}

/// What is known of a tier at one time.
#[derive(Clone, Copy)]
pub(crate) struct Seen {
    at: Instant,
    regret: Regret,
    /// Reads that found their bytes beyond it, and microseconds of all of them.
    missed: (u64, u64),
    /// The same of those that found them in it.
    held: (u64, u64),
}

impl Seen {
    /// The disk tier: behind it is shared storage.
    pub(crate) fn of_disk(store: &BlockStore, meters: &Meters) -> Self {
        let (missed, held) = (meters.times(ServedFrom::Storage), meters.times(ServedFrom::Disk));
        Self { at: forebay_runtime::now(), regret: store.regret(), missed, held }
    }

    /// Blocks of the DRAM tier: behind it are the disk tier and shared storage. Reads of columns are none of blocks: so many there were,
    /// and so many microseconds they took.
    pub(crate) fn of_dram(store: &BlockStore, meters: &Meters, columns: (u64, u64)) -> Self {
        let [disk, storage] = [ServedFrom::Disk, ServedFrom::Storage].map(|served| meters.times(served));
        let missed = (disk.0 + storage.0, disk.1.saturating_add(storage.1));
        let dram = meters.times(ServedFrom::Dram);
        let held = (dram.0.saturating_sub(columns.0), dram.1.saturating_sub(columns.1));
        Self { at: forebay_runtime::now(), regret: store.dram_regret(), missed, held }
    }
}

impl Margin {
    /// Takes a look at the tier into account.
    pub(crate) fn look(&mut self, now: Seen) {
        if let Some(before) = self.before.replace(now) {
            let secs = now.at.saturating_duration_since(before.at).as_secs_f64();
            let keep = KEEP.powf(secs / 10.0);
            self.saves = self.saves * keep + between(&before, &now) * (1.0 - keep);
            if now.missed.0 > before.missed.0 {
                self.waits_secs = waited(&before, &now).max(0.0);
            }
            if secs > 0.0 {
                let held = now.held.0.saturating_sub(before.held.0) as f64;
                self.saves_in_all = self.saves_in_all * keep + held / secs * self.waits_secs * (1.0 - keep);
            }
            debug_assert!(self.saves.is_finite() && self.saves_in_all.is_finite(), "a tier saves a time");
        }
    }
}

/// The same between two looks: blocks that went and came back would have been there, and each of them was waited for as long as a read
/// beyond the tier takes, and not as one of it.
fn between(before: &Seen, now: &Seen) -> f64 {
    let secs = (now.at - before.at).as_secs_f64();
    let returned = now.regret.returned.saturating_sub(before.regret.returned);
    let waited = waited(before, now);
    if secs > 0.0 { margin(returned as f64 / secs, waited, now.regret.remembered_bytes.max(1 << 20)) } else { 0.0 }
}

/// Seconds that a read beyond the tier took longer between two looks, on average.
fn waited(before: &Seen, now: &Seen) -> f64 {
    let mean_secs = |before: (u64, u64), now: (u64, u64)| match now.0.saturating_sub(before.0) {
        0 => 0.0,
        reads => now.1.saturating_sub(before.1) as f64 / 1e6 / reads as f64,
    };
    mean_secs(before.missed, now.missed) - mean_secs(before.held, now.held)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_block_store::StoreSettings;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn seen(at: Instant, returned: u64, missed: (u64, u64), held: (u64, u64)) -> Seen {
        Seen { at, regret: Regret { returned, remembered_bytes: 100 * MIB }, missed, held }
    }

    #[test]
    fn a_tier_is_worth_what_its_misses_cost() {
        let at = forebay_runtime::now();
        let before = seen(at, 0, (10, 1_000_000), (5, 5_000));
        // Four reads of 51 ms, and two of 1 ms.
        let later = |returned, missed| seen(at + Duration::from_secs(10), returned, missed, (7, 7_000));
        let saved = between(&before, &later(20, (14, 1_204_000)));
        assert!((saved * 100.0 * MIB as f64 - 0.1).abs() < 1e-9, "2 blocks a second, 50 ms each: {saved}");
        assert_eq!(between(&before, &later(0, (14, 1_204_000))), 0.0, "nothing came back");
        assert_eq!(between(&before, &later(20, before.missed)), 0.0, "nothing is known of what it costs");
    }

    #[test]
    fn a_tier_that_holds_all_that_is_read_is_worth_what_was_missed_last() {
        let at = forebay_runtime::now();
        let mut margin = Margin::default();
        let look = |secs: u64, missed, held| seen(at + Duration::from_secs(secs), 0, missed, held);
        margin.look(look(0, (0, 0), (0, 0)));
        // A hundred reads a second, and one beyond the tier that took 50 ms.
        margin.look(look(10, (1, 50_000), (1_000, 0)));
        assert!((margin.saves_in_all - 100.0 * 0.05 * 0.2).abs() < 1e-9, "{}", margin.saves_in_all);
        let known = margin.saves_in_all;
        margin.look(look(20, (1, 50_000), (2_000, 0)));
        assert!(margin.saves_in_all > known, "nothing was missed, and as much was found");
        assert_eq!(margin.saves, 0.0, "nothing was let go");
    }

    #[tokio::test]
    async fn reads_of_columns_are_not_taken_for_reads_of_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let store = BlockStore::open(StoreSettings::new(folder.path(), 4 * MIB)).unwrap();
        let meters = Meters::new();
        meters.took(None, ServedFrom::Dram, Duration::from_micros(300));
        meters.took(None, ServedFrom::Dram, Duration::from_micros(20));
        assert_eq!(Seen::of_dram(&store, &meters, (0, 0)).held, (2, 320));
        assert_eq!(Seen::of_dram(&store, &meters, (1, 300)).held, (1, 20), "one was of a column");
        store.close().await;
    }

    #[test]
    fn what_was_measured_is_forgotten_slowly() {
        let at = forebay_runtime::now();
        let mut margin = Margin::default();
        margin.look(seen(at, 0, (0, 0), (0, 0)));
        assert_eq!(margin.saves, 0.0, "one look tells nothing");
        margin.look(seen(at + Duration::from_secs(10), 20, (4, 200_000), (0, 0)));
        let first = margin.saves;
        assert!((first * 100.0 * MIB as f64 - 0.02).abs() < 1e-9, "a fifth of what was measured: {first}");
        margin.look(seen(at + Duration::from_secs(20), 20, (4, 200_000), (0, 0)));
        assert!((margin.saves - first * KEEP).abs() < 1e-18);
        let known = margin.saves;
        margin.look(seen(at + Duration::from_secs(40), 20, (4, 200_000), (0, 0)));
        assert!((margin.saves - known * KEEP * KEEP).abs() < 1e-18, "and sooner, the longer nothing came");
    }
}
