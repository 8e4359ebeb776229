//! Which of the shards here get more layers, and which give some: `core/navigation`, by the queues as they are.

use std::sync::Arc;
use std::time::Duration;

use forebay_navigation::{Curve, Plan, Replica, Settings, ShardId, Snapshot, plan};
use forebay_types::Result;

use super::Shards;
use super::budget::Budget;
use super::served::Served;

/// Files of a shard are no more than so much larger than its level says.
const HEADS_BYTES: u64 = 64 << 10;

/// Pins of datasets that were deleted are found so often.
const PINS_CHECKED_EVERY: Duration = Duration::from_secs(3600);

/// Goes on for ever: a plan each period.
pub(crate) async fn navigate(shards: Arc<Shards>, period: Duration) {
    let settings = Settings::every(period.as_secs_f64());
    let (mut before, mut budget) = (Plan::default(), Budget::new(shards.origin.store.clone()));
    let mut pins_checked = None;
    loop {
        forebay_runtime::time::sleep(period).await;
        let now = forebay_runtime::now();
        if pins_checked.is_none_or(|checked| now.saturating_duration_since(checked) >= PINS_CHECKED_EVERY) {
            shards.check_pins();
            pins_checked = Some(now);
        }
        match shards.navigate_once(&settings, &before, &mut budget).await {
            Ok(plan) => before = plan,
            Err(error) => tracing::warn!(%error, "shards stay as they are"),
        }
    }
}

impl Shards {
    async fn navigate_once(self: &Arc<Self>, settings: &Settings, before: &Plan, budget: &mut Budget) -> Result<Plan> {
        let served = self.by_number();
        let curves = served.iter().map(|(_, served)| served.dial.curve()).collect::<Result<Vec<Curve>>>()?;
        let replicas =
            served.iter().zip(&curves).map(|((shard, served), curve)| served.dial.replica(*shard, curve, served.lanes.steps()));
        let replicas: Vec<_> = replicas.collect();
        let of_served: Vec<u128> = served.iter().map(|(_, served)| served.id).collect();
        let own_bytes = self.kept.room_of(&of_served);
        let offered = budget.offer(settings.period_secs, self.origin.meters(), &replicas, before, own_bytes)?;
        // What no plan takes away.
        let bases: u64 = replicas.iter().map(|replica| replica.curve.bytes(replica.least())).sum();
        let there: u64 = replicas.iter().map(Replica::bytes).sum();
        // With nothing lent all that is there stays, also where the bound was lowered.
        let least = if budget.lent() == 0 { there.max(bases) } else { bases };
        let decide = |lent: u64| {
            let room_bytes = own_bytes.saturating_add(lent).max(least);
            plan(settings, &Snapshot { replicas: &replicas, room_bytes }, before)
        };
        let mut decided = decide(offered)?;
        let wanted = decided.bytes.saturating_sub(own_bytes);
        let borrowed = wanted.saturating_add(HEADS_BYTES * replicas.len() as u64).min(offered.max(wanted));
        if wanted > budget.lent() && !budget.borrow(borrowed).await {
            decided = decide(budget.lent())?;
        }
        self.kept.lend(budget.lent());
        for ((decision, replica), (_, served)) in decided.decisions.iter().zip(&replicas).zip(&served) {
            served.dial.explain(budget.told(&decision.reason, replica, before, settings.period_secs));
            if decision.moves() {
                tracing::info!(folder = %served.part.folder, shard = served.part.number, from = decision.from, to = decision.to,
                    reason = %decision.reason, "layers");
                self.keep_at(served, decision.to);
            }
        }
        let is_built = decided.decisions.iter().zip(&replicas).all(|(decision, replica)| decision.to <= replica.level);
        let wanted = if is_built { decided.bytes.saturating_sub(own_bytes) } else { budget.lent() };
        budget.settle(self.kept.settle(wanted, budget.lent()));
        let settled = decided.decisions.iter().zip(&replicas).zip(&served);
        let settled = settled
            .filter(|((decision, replica), _)| !decision.moves() && !replica.is_building() && !replica.frozen && decision.to > 0);
        self.steer(settled.map(|(_, (_, served))| Arc::clone(served)).collect()).await;
        Ok(decided)
    }

    /// The shards that are open, by the numbers that plans know them by.
    fn by_number(&self) -> Vec<(ShardId, Arc<Served>)> {
        let served = self.served.lock();
        let mut all: Vec<_> = served.values().map(|served| (ShardId(served.id as u64), Arc::clone(served))).collect();
        drop(served);
        all.sort_by_key(|(shard, _)| *shard);
        // Two whose hashes begin alike: the second one stays as it is.
        all.dedup_by_key(|(shard, _)| *shard);
        all
    }
}
