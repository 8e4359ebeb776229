//! What must hold of a plan, whatever the snapshot: a plan that breaks it comes from a defect, and is not to leave the planner.

use super::outcome::{Decision, Plan};
use crate::settings::Settings;
use crate::snapshot::{Replica, Snapshot};

/// What the worker that follows a plan relies on.
pub(super) fn of_plan(settings: &Settings, snapshot: &Snapshot<'_>, plan: &Plan) {
    assert_eq!(plan.decisions.len(), snapshot.replicas.len(), "something is decided of every replica");
    let pairs = || snapshot.replicas.iter().zip(&plan.decisions);
    pairs().for_each(|(replica, decision)| of_decision(replica, decision));
    let bytes: u64 = pairs().map(|(replica, decision)| replica.curve.bytes(decision.to)).sum();
    assert_eq!(bytes, plan.bytes, "the plan says what it takes");
    assert!(bytes <= snapshot.room_bytes, "{bytes} bytes fit into the worker's room of {}", snapshot.room_bytes);
    let building = pairs().filter(|(replica, decision)| decision.to > replica.level).count();
    let before = snapshot.replicas.iter().filter(|replica| replica.is_building()).count();
    let most = before.max(settings.building_max as usize);
    assert!(building <= most, "{building} build layers where {most} may");
}

fn of_decision(replica: &Replica<'_>, decision: &Decision) {
    let shard = replica.shard;
    assert_eq!((decision.shard, decision.from), (shard, replica.ordered), "{shard}: the decision is of this replica");
    assert!(decision.to >= replica.lowest.min(replica.ordered), "{shard}: not under its lowest level");
    assert!(decision.to <= replica.highest, "{shard}: not over its highest level");
    assert!(!replica.frozen || !decision.moves(), "{shard}: what is frozen does not move");
    assert!(!replica.is_building() || decision.to <= decision.from, "{shard}: what is being built is not built on");
    assert!(decision.memory.queue.is_finite() && decision.memory.arrivals.is_finite(), "{shard}: averages are numbers");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, Level, ShardId, plan};

    /// Checks a plan of two idle replicas, the second one frozen, at level 1 of 0 to 2 after something was done to it.
    fn check(spoil: impl FnOnce(&mut Plan)) {
        let levels = [(10, 4.0), (20, 2.0), (30, 1.0)].map(|(bytes, service_us)| Level { bytes, service_us });
        let curve = Curve::new(levels.to_vec()).unwrap();
        let replica = |shard| Replica {
            shard: ShardId(shard),
            curve: &curve,
            lowest: u32::from(shard == 1),
            start: 1,
            highest: 1,
            level: 1,
            ordered: 1,
            queue: 0,
            arrived: 0,
            frozen: shard == 2,
        };
        let replicas = [replica(1), replica(2)];
        let snapshot = Snapshot { replicas: &replicas, room_bytes: 45 };
        let settings = Settings::default();
        let mut plan = plan(&settings, &snapshot, &Plan::default()).unwrap();
        spoil(&mut plan);
        of_plan(&settings, &snapshot, &plan);
    }

    #[test]
    fn what_is_sound_passes() {
        check(|_| {});
    }

    #[test]
    #[should_panic(expected = "not under its lowest level")]
    fn a_level_under_the_lowest_is_caught() {
        check(|plan| plan.decisions[0].to = 0);
    }

    #[test]
    #[should_panic(expected = "not over its highest level")]
    fn a_level_over_the_highest_is_caught() {
        check(|plan| plan.decisions[1].to = 2);
    }

    #[test]
    #[should_panic(expected = "what is frozen does not move")]
    fn a_frozen_replica_that_moves_is_caught() {
        check(|plan| plan.decisions[1].to = 0);
    }

    #[test]
    #[should_panic(expected = "something is decided of every replica")]
    fn a_replica_that_is_left_out_is_caught() {
        check(|plan| plan.decisions.truncate(1));
    }

    #[test]
    #[should_panic(expected = "the plan says what it takes")]
    fn bytes_that_are_not_what_the_levels_take_are_caught() {
        check(|plan| plan.bytes += 1);
    }
}
