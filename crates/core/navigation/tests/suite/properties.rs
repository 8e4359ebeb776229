//! What holds of plans whatever comes; bytes and levels are asserted by the plan itself.

use proptest::prelude::*;

use crate::support::{Own, Worker, bytes, loads};

proptest! {
    #[test]
    fn any_load_keeps_to_room_and_levels(
        starts in prop::collection::vec((0u32..5, 0u32..5), 1..8),
        spare in 0u64..200,
        loads in loads(),
        shrink in 0u64..100,
    ) {
        let own = |(level, start): &(u32, u32)| Own { start: *start, ..Own::idle(*level) };
        let replicas: Vec<Own> = starts.iter().map(own).collect();
        let mut worker = Worker::new(bytes(replicas.iter().map(|own| own.level)) + spare, &replicas);
        loads.into_iter().for_each(|load| worker.meet(load));
        // A room that becomes smaller is kept to as well, down to the bases.
        worker.room_bytes = (worker.room_bytes - shrink.min(worker.room_bytes)).max(50 * worker.replicas.len() as u64);
        worker.follow();
        prop_assert!(bytes(worker.levels().into_iter()) <= worker.room_bytes);
    }

    #[test]
    fn a_plan_is_a_function_of_its_arguments(queues in prop::collection::vec((0u32..200, 0u32..100), 1..8)) {
        let run = || {
            let replicas: Vec<Own> = queues.iter().map(|(queue, arrived)| Own::idle(2).with(*queue, *arrived)).collect();
            let mut worker = Worker::new(70 * queues.len() as u64, &replicas);
            (0..5).for_each(|_| worker.follow());
            worker.plan
        };
        prop_assert_eq!(run(), run());
    }

    /// No queue, no arrivals: whatever was before, all come to rest at their start, if the starts fit.
    #[test]
    fn without_load_all_return_to_the_start(levels in prop::collection::vec((0u32..5, 0u32..5), 1..8)) {
        let replicas: Vec<Own> = levels.iter().map(|(level, start)| Own { start: *start, ..Own::idle(*level) }).collect();
        let sum = |of: fn(&Own) -> u32| bytes(replicas.iter().map(of));
        let mut worker = Worker::new(sum(|own| own.level).max(sum(|own| own.start)), &replicas);
        (0..60).for_each(|_| worker.follow());
        let starts: Vec<u32> = replicas.iter().map(|own| own.start).collect();
        prop_assert_eq!(worker.levels(), starts);
    }
}
