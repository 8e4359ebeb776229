//! Room for a layer where there is none: others give theirs.

use super::draft::{Draft, Entry};
use super::outcome::Reason;
use super::signal::Signal;
use crate::settings::Settings;
use crate::shard::ShardId;

/// Layers that are given up for one at most: where they are that much smaller, the exchange isn't worth its work.
const GIFTS_MAX: usize = 16;

/// Those who may give, and what they could not give.
pub(super) struct Exchange {
    /// The shortest wait first, by average and then as it is now.
    givers: Vec<usize>,
    /// So many bytes could not be freed, and what can be freed only becomes less.
    refused_bytes: u64,
}

impl Exchange {
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let mut givers: Vec<usize> = (0..draft.entries.len()).filter(|at| is_idle(draft, *at)).collect();
        let waits = |at: usize| (draft.entries[at].reading.wait_us, draft.entries[at].reading.wait_now_us);
        givers.sort_by(|a, b| {
            let ((average, now), (other_average, other_now)) = (waits(*a), waits(*b));
            average.total_cmp(&other_average).then(now.total_cmp(&other_now))
        });
        Self { givers, refused_bytes: u64::MAX }
    }

    /// Has others drop layers until `taker` can have `level`; who gave, or none if they can't give enough, and then nobody gives.
    ///
    /// The layers come from the replicas whose average and present queue are the lowest (BlowFish, section 4), if both are below
    /// the lower threshold and what is left bears their load; without the last they would come back to ask for it.
    pub(super) fn make_room(&mut self, draft: &mut Draft<'_>, taker: usize, level: u32) -> Option<Vec<ShardId>> {
        let missing = draft.missing(taker, level);
        let Some(gifts) = (missing < self.refused_bytes).then(|| self.gifts(draft, missing)).flatten() else {
            self.refused_bytes = self.refused_bytes.min(missing);
            return None;
        };
        let to = draft.shard(taker);
        gifts.iter().for_each(|(giver, at)| draft.lower(*giver, *at, Reason::Gave(to)));
        let mut shards: Vec<ShardId> = gifts.iter().map(|(giver, _)| draft.shard(*giver)).collect();
        shards.dedup();
        Some(shards)
    }

    /// Who drops to which level, layer by layer, to free `missing` bytes.
    fn gifts(&self, draft: &Draft<'_>, mut missing: u64) -> Option<Vec<(usize, u32)>> {
        let mut gifts = Vec::new();
        for giver in &self.givers {
            let entry = &draft.entries[*giver];
            let mut at = entry.level;
            while missing > 0 && gifts.len() < GIFTS_MAX && bears(draft.settings, entry, at) {
                missing = missing.saturating_sub(entry.bytes_at(at) - entry.bytes_at(at - 1));
                at -= 1;
                gifts.push((*giver, at));
            }
        }
        (missing == 0).then_some(gifts)
    }
}

/// Whether next to nothing waits, on average and now; whoever waits too long, and takes, is never among these.
fn is_idle(draft: &Draft<'_>, at: usize) -> bool {
    let (entry, lower) = (&draft.entries[at], draft.settings.lower_us());
    let known = !entry.signals(Signal::Building) && !entry.signals(Signal::New);
    known && entry.has_spare() && entry.reading.wait_us < lower && entry.reading.wait_now_us < lower
}

/// Whether one layer less than `level` would do for its load.
fn bears(settings: &Settings, entry: &Entry<'_>, level: u32) -> bool {
    level > entry.replica.lowest && entry.load_at(settings, level - 1) <= settings.give_load
}
