//! Room of the disk tier that shards may have beside their own: `core/navigation` weighs their layers against cached blocks.

use forebay_block_store::{BlockStore, Lent};
use forebay_navigation::{Lending, Plan, Reason, Replica, layers, lend};
use forebay_types::{Result, format_bytes};

use crate::signals::{Margin, Meters, Seen};

/// Share of the disk tier's part on that disk that it may lend: blocks serve everyone, layers only those who ask shards.
const SHARE: f64 = 0.5;

/// What the disk tier lends, and why it lends no more.
pub(super) struct Budget {
    store: BlockStore,
    /// None without a part of the disk tier beside the shards' files.
    lent: Option<Lent>,
    /// What each byte more of the cache would save.
    margin: Margin,
}

impl Budget {
    pub(super) fn new(store: BlockStore) -> Self {
        let lent = store.lend();
        Self { store, lent, margin: Margin::default() }
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
        self.margin.look(Seen::of_disk(&self.store, meters));
        let least: u64 = replicas.iter().map(|replica| replica.curve.bytes(replica.least())).sum();
        let lending = Lending {
            own_bytes: own_bytes.saturating_sub(least),
            most_bytes: (self.lent.as_ref().map_or(0, Lent::tier_bytes) as f64 * SHARE) as u64,
            lent_bytes: self.lent(),
            cache_saves: self.margin.saves,
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
                let [layer, cache] = [of_layer(), self.margin.saves].map(|saved| saved * 1e6 * f64::from(1 << 20));
                format!("{reason}: a MiB more saves {layer:.1} us a second here, and {cache:.1} in the cache")
            }
            (Reason::Grew, Some(lent)) if lent.bytes() > 0 => {
                format!("{reason}: the disk tier lends {} to shards, which save more with it", format_bytes(lent.bytes()))
            }
            _ => reason.to_string(),
        }
    }
}
