//! Which of the shards here get more layers, and which give some: `core/navigation`, by the queues as they are.

use std::sync::Arc;
use std::time::Duration;

use forebay_navigation::{Curve, Plan, Settings, ShardId, Snapshot, plan};
use forebay_types::Result;

use super::Shards;
use super::served::Served;

/// Goes on for ever: a plan each period.
pub(crate) async fn navigate(shards: Arc<Shards>, period: Duration) {
    let settings = settings(period);
    let mut before = Plan::default();
    loop {
        forebay_runtime::time::sleep(period).await;
        match shards.navigate_once(&settings, &before) {
            Ok(plan) => before = plan,
            Err(error) => tracing::warn!(%error, "shards stay as they are"),
        }
    }
}

/// The usual patience, in periods.
fn settings(period: Duration) -> Settings {
    let usual = Settings::default();
    let scale = period.as_secs_f64() / usual.period_secs;
    Settings {
        period_secs: period.as_secs_f64(),
        drain_secs: usual.drain_secs * scale,
        calm_secs: usual.calm_secs * scale,
        ..usual
    }
}

impl Shards {
    fn navigate_once(self: &Arc<Self>, settings: &Settings, before: &Plan) -> Result<Plan> {
        let served = self.by_number();
        let curves = served.iter().map(|(_, served)| served.dial.curve()).collect::<Result<Vec<Curve>>>()?;
        let replicas =
            served.iter().zip(&curves).map(|((shard, served), curve)| served.dial.replica(*shard, curve, served.lanes.queue()));
        let replicas: Vec<_> = replicas.collect();
        let of_served: Vec<u128> = served.iter().map(|(_, served)| served.id).collect();
        let room_bytes = self.kept.room_of(&of_served);
        let least: u64 = replicas.iter().map(|replica| replica.bytes().max(replica.curve.bytes(0))).sum();
        // Files are a little larger or smaller than their levels say: what is there already has room.
        let snapshot = Snapshot { replicas: &replicas, room_bytes: room_bytes.max(least) };
        let plan = plan(settings, &snapshot, before)?;
        for (decision, (_, served)) in plan.decisions.iter().zip(&served) {
            served.dial.explain(decision.reason.to_string());
            if decision.moves() {
                tracing::info!(folder = %served.folder, shard = served.number, from = decision.from, to = decision.to,
                    reason = %decision.reason, "layers");
                self.keep_at(served, decision.to);
            }
        }
        Ok(plan)
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
