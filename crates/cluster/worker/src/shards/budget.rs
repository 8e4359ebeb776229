//! Room of the disk tier that shards may have beside their own: `core/navigation` weighs their layers against cached blocks.

use std::time::Instant;

use forebay_block_store::{BlockStore, Lent, Regret};
use forebay_navigation::{Lending, Plan, Reason, Replica, layers, lend, margin};
use forebay_types::{Result, format_bytes};

use crate::signals::{Meters, ServedFrom};

/// Share of the disk tier that it may lend: blocks serve everyone, layers only those who ask shards.
const SHARE: f64 = 0.5;
/// How much of what was known of the cache stays with a new measurement.
const KEEP: f64 = 0.8;

/// What the disk tier lends, and why it lends no more.
pub(super) struct Budget {
    store: BlockStore,
    /// None without a disk tier.
    lent: Option<Lent>,
    before: Option<Seen>,
    /// Seconds that each byte more of the cache would save in a second, aged.
    of_cache: f64,
}

/// What is known of the cache at one time.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    regret: Regret,
    /// Reads that shared storage was needed for, and microseconds of all of them.
    storage: (u64, u64),
    /// The same of those that came from the disk tier.
    disk: (u64, u64),
}

impl Budget {
    pub(super) fn new(store: BlockStore) -> Self {
        let lent = store.lend();
        Self { store, lent, before: None, of_cache: 0.0 }
    }

    /// Bytes that are lent.
    pub(super) fn lent(&self) -> u64 {
        self.lent.as_ref().map_or(0, Lent::bytes)
    }

    /// Bytes of the disk tier that the shards here may have in the next period, beside `own_bytes`: those that save more time as layers than
    /// as blocks, by what was asked until the plan `before`.
    pub(super) fn offer(
        &mut self,
        period_secs: f64,
        meters: &Meters,
        replicas: &[Replica<'_>],
        before: &Plan,
        own_bytes: u64,
    ) -> Result<u64> {
        if self.lent.is_none() {
            return Ok(0);
        }
        self.look(meters);
        let least: u64 = replicas.iter().map(|replica| replica.curve.bytes(0)).sum();
        let lending = Lending {
            own_bytes: own_bytes.saturating_sub(least),
            most_bytes: (self.store.usage().disk.capacity_bytes as f64 * SHARE) as u64,
            lent_bytes: self.lent(),
            cache_saves: self.of_cache,
        };
        lend(&lending, replicas.iter().map(|replica| layers(replica, before, period_secs)).collect())
    }

    /// Has the disk tier lend so much in all, which takes evicting; false where it can't.
    pub(super) async fn borrow(&mut self, bytes: u64) -> bool {
        let Some(mut lent) = self.lent.take() else { return false };
        let grown = forebay_runtime::spawn_blocking(move || {
            let grown = lent.grow(bytes);
            (lent, grown)
        });
        match grown.await {
            Ok((lent, grown)) => {
                if let Err(error) = &grown {
                    tracing::debug!(%error, "the disk tier lends no more to shards");
                }
                self.lent = Some(lent);
                grown.is_ok()
            }
            // It was given back with the thread.
            Err(error) => {
                tracing::warn!(%error, "making room for layers ended early");
                self.lent = self.store.lend();
                false
            }
        }
    }

    /// So much is needed of what is lent.
    pub(super) fn settle(&mut self, bytes: u64) {
        if let Some(lent) = &mut self.lent {
            lent.shrink(bytes);
        }
    }

    /// Why a replica moved or did not, with what a byte saves where that decided.
    pub(super) fn told(&self, reason: &Reason, replica: &Replica<'_>, before: &Plan, period_secs: f64) -> String {
        let of_layer = || {
            let next = layers(replica, before, period_secs).into_iter().find(|step| !step.is_held);
            next.map_or(0.0, |step| step.saved / step.bytes as f64)
        };
        match (reason, &self.lent) {
            (Reason::NoRoom | Reason::Crowded, Some(_)) => {
                let [layer, cache] = [of_layer(), self.of_cache].map(|saved| saved * 1e6 * f64::from(1 << 20));
                format!("{reason}: a MiB more saves {layer:.1} us a second here, and {cache:.1} in the cache")
            }
            (Reason::Grew, Some(lent)) if lent.bytes() > 0 => {
                format!("{reason}: the disk tier lends {} to shards, which save more with it", format_bytes(lent.bytes()))
            }
            _ => reason.to_string(),
        }
    }

    /// Measures what the cache would do with more room.
    fn look(&mut self, meters: &Meters) {
        let (storage, disk) = (meters.times(ServedFrom::Storage), meters.times(ServedFrom::Disk));
        let now = Seen { at: forebay_runtime::now(), regret: self.store.regret(), storage, disk };
        if let Some(before) = self.before.replace(now) {
            self.of_cache = self.of_cache * KEEP + saved_by_cache(&before, &now) * (1.0 - KEEP);
        }
    }
}

/// Seconds that each byte more of the disk tier would have saved in a second between two times: blocks that went and came back would have
/// been there, and each of them was waited for as long as a read of shared storage takes, and not as one of the disk.
fn saved_by_cache(before: &Seen, now: &Seen) -> f64 {
    let mean_secs = |before: (u64, u64), now: (u64, u64)| match now.0.saturating_sub(before.0) {
        0 => 0.0,
        reads => now.1.saturating_sub(before.1) as f64 / 1e6 / reads as f64,
    };
    let secs = (now.at - before.at).as_secs_f64();
    let returned = now.regret.returned.saturating_sub(before.regret.returned);
    let waited = mean_secs(before.storage, now.storage) - mean_secs(before.disk, now.disk);
    match secs > 0.0 {
        true => margin(returned as f64 / secs, waited, now.regret.remembered_bytes.max(1 << 20)),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_cache_is_worth_what_its_misses_cost() {
        let at = forebay_runtime::now();
        let before = Seen { at, regret: Regret::default(), storage: (10, 1_000_000), disk: (5, 5_000) };
        let regret = Regret { returned: 20, remembered_bytes: 100 * MIB };
        // Four reads of 51 ms, and two of 1 ms.
        let now = Seen { at: at + Duration::from_secs(10), regret, storage: (14, 1_204_000), disk: (7, 7_000) };
        let saved = saved_by_cache(&before, &now);
        assert!((saved * 100.0 * MIB as f64 - 0.1).abs() < 1e-9, "2 blocks a second, 50 ms each: {saved}");
        assert_eq!(saved_by_cache(&before, &Seen { regret: Regret { returned: 0, ..regret }, ..now }), 0.0);
        assert_eq!(saved_by_cache(&before, &Seen { storage: before.storage, ..now }), 0.0, "nothing is known of what it costs");
    }
}
