//! When layers come and go.

use forebay_navigation::{Curve, Level, Plan, Reason, Replica, Settings, ShardId, Snapshot, plan};

use crate::support::{Own, Worker, curve, settings};

/// Longer than the target at level 0, and more than it can answer.
const BUSY: (u32, u32) = (100, 20);

fn busy(own: Own) -> Own {
    own.with(BUSY.0, BUSY.1)
}

#[test]
fn the_average_queue_is_beta_of_the_newest_and_the_rest_of_before() {
    let mut worker = Worker::new(1000, &[Own::idle(0).with(8, 4)]);
    worker.replicas[0] = Own::idle(0).with(4, 0);
    worker.decide();
    assert_eq!((worker.of(0).memory.queue, worker.of(0).memory.arrivals), (6.0, 2.0));
    worker.decide();
    assert_eq!(worker.of(0).memory.queue, 5.0);
    assert_eq!(worker.of(0).wait_us, 5.0 * 100_000.0);
}

#[test]
fn what_is_not_known_yet_stays() {
    let worker = Worker::new(1000, &[busy(Own::idle(0))]);
    assert_eq!((worker.of(0).to, &worker.of(0).reason), (0, &Reason::New));
}

#[test]
fn a_long_wait_gets_one_layer_where_there_is_room() {
    let mut worker = Worker::new(1000, &[busy(Own::idle(0)), Own::idle(0)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![1, 0], &Reason::Grew));
}

#[test]
fn nothing_more_is_ordered_while_a_layer_is_built() {
    let mut worker = Worker::new(1000, &[busy(Own::idle(0))]);
    (0..5).for_each(|_| worker.order());
    let own = worker.replicas[0];
    assert_eq!((own.level, own.ordered, &worker.of(0).reason), (0, 1, &Reason::Building));
}

#[test]
fn without_room_a_layer_comes_from_the_replica_whose_queue_is_the_lowest() {
    let idle = [Own::idle(2).with(2, 1), Own::idle(2), Own::idle(2).with(1, 1)];
    let mut worker = Worker::new(4 * 70, &[&[busy(Own::idle(2)).with(100, 50)], &idle[..]].concat());
    worker.follow();
    assert_eq!(worker.levels(), [3, 2, 1, 2]);
    assert_eq!(worker.of(0).reason, Reason::Took(vec![ShardId(2)]));
    assert_eq!(worker.of(2).reason, Reason::Gave(ShardId(0)));
}

#[test]
fn nobody_gives_whose_queue_is_long_at_this_moment() {
    let mut worker = Worker::new(2 * 70, &[Own::idle(2).with(100, 50), Own::idle(2)]);
    // On average still short: a quarter of the target is ten requests at 25 ms.
    worker.replicas[1].queue = 12;
    worker.follow();
    assert!(worker.of(1).wait_us < 250_000.0);
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![2, 2], &Reason::NoRoom));
    worker.replicas[1].queue = 0;
    worker.follow();
    assert_eq!(worker.levels(), [3, 1]);
}

#[test]
fn nobody_gives_what_its_own_load_needs() {
    // 18 a second at 50 ms is 90 % of its time; nothing waits for now.
    let mut worker = Worker::new(2 * 70, &[Own::idle(2).with(100, 50), Own::idle(2).with(0, 18)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![2, 2], &Reason::NoRoom));
}

#[test]
fn the_longest_wait_gets_the_room_that_is_left() {
    let mut worker = Worker::new(110, &[busy(Own::idle(0)), busy(Own::idle(0)).with(200, 20)]);
    worker.follow();
    assert_eq!(worker.levels(), [0, 1]);
    assert_eq!(worker.of(0).reason, Reason::NoRoom);
}

#[test]
fn several_give_where_one_layer_is_not_enough() {
    let small = |at: u32| Level { bytes: 50 + 4 * u64::from(at), service_us: 100.0 / f64::from(at + 1) };
    let small = Curve::new((0..2).map(small).collect()).unwrap();
    let large = curve();
    let replica = |shard, curve, queue| Replica {
        shard: ShardId(shard),
        curve,
        lowest: 0,
        start: 1,
        highest: 1,
        level: u32::from(shard > 0),
        ordered: u32::from(shard > 0),
        queue,
        arrived: queue,
        frozen: false,
    };
    let replicas = [replica(0, &large, 100), replica(1, &small, 0), replica(2, &small, 0), replica(3, &small, 0)];
    let replicas = replicas.map(|replica| Replica { start: replica.level, ..replica });
    let snapshot = Snapshot { replicas: &replicas, room_bytes: 50 + 3 * 54 };
    let first = plan(&settings(), &snapshot, &Plan::default()).unwrap();
    let second = plan(&settings(), &snapshot, &first).unwrap();
    assert_eq!(second.of(ShardId(0)).unwrap().reason, Reason::Took(vec![ShardId(1), ShardId(2), ShardId(3)]));
    assert_eq!(second.bytes, 60 + 3 * 50);
}

#[test]
fn a_moment_of_many_requests_triggers_nothing() {
    let mut worker = Worker::new(1000, &[Own::idle(0)]);
    worker.settings.beta = 0.01;
    // 20 seconds of work at once, more than drains in ten; on average there was next to nothing.
    worker.replicas[0] = Own::idle(0).with(200, 200);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![0], &Reason::Spike));
}

#[test]
fn a_short_spike_triggers_nothing() {
    let mut worker = Worker::new(1000, &[Own::idle(2).with(1, 20)]);
    (worker.settings.beta, worker.settings.target_us) = (0.1, 200_000.0);
    (0..20).for_each(|_| worker.decide_and_expect(2));
    let mut reasons = Vec::new();
    // Twice what it can answer, for two seconds; then the queue of 80 goes by 20 a second.
    for (queue, arrived) in [(40, 80), (80, 80), (60, 20), (40, 20), (20, 20), (0, 20)] {
        worker.replicas[0] = worker.replicas[0].with(queue, arrived);
        worker.decide_and_expect(2);
        reasons.push(worker.of(0).reason.clone());
    }
    assert!(reasons.contains(&Reason::Draining), "its average was too long as well: {reasons:?}");
}

#[test]
fn a_queue_that_does_not_go_though_it_could_gets_a_layer() {
    let mut worker = Worker::new(1000, &[Own::idle(2).with(1, 20)]);
    worker.replicas[0] = worker.replicas[0].with(60, 30);
    let mut periods = 0;
    while worker.replicas[0].level == 2 {
        worker.follow();
        periods += 1;
        assert!(periods < 20, "{:?}", worker.of(0));
    }
    assert!(periods > 10, "it had {periods} periods of ten to drain");
}

#[test]
fn storage_returns_to_the_start_when_the_load_is_low_for_long() {
    let mut worker = Worker::new(1000, &[Own { start: 1, ..Own::idle(4) }]);
    (0..17).for_each(|_| worker.follow());
    assert_eq!(worker.levels(), [4], "not at once");
    assert_eq!(worker.of(0).reason, Reason::Calm { periods: 18, of: 20 });
    (0..40).for_each(|_| worker.follow());
    assert_eq!(worker.levels(), [1], "to the start and no further");
}

#[test]
fn no_layer_goes_that_the_load_still_needs() {
    // 30 a second at 25 ms is 75 % of its time, more than the 60 % that a layer less may take.
    let mut worker = Worker::new(1000, &[Own { start: 0, ..Own::idle(3) }.with(1, 30)]);
    (0..200).for_each(|_| worker.follow());
    assert_eq!(worker.levels(), [3]);
}

#[test]
fn a_load_between_two_levels_does_not_flap() {
    let mut worker = Worker::new(1000, &[Own::idle(2)]);
    // The queue that a replica would have by its load, as of an M/M/1 queue, or a growing one.
    let (mut moves, mut queue) = (0, 0.0);
    for second in 0..2_000 {
        let arrived = 40 + second % 5;
        let own = &mut worker.replicas[0];
        let served = 1e6 / worker.curve.service_us(own.level);
        let load = f64::from(arrived) / served;
        queue = if load < 1.0 {
            (queue + f64::from(arrived) - served).max(load / (1.0 - load))
        } else {
            queue + f64::from(arrived) - served
        };
        *own = own.with(queue as u32, arrived);
        worker.follow();
        moves += usize::from(worker.of(0).moves());
    }
    assert!(moves <= 2, "{moves} moves under one load");
    assert_eq!(worker.levels(), [3]);
}

#[test]
fn a_repaired_shard_comes_back_to_its_start_in_one_pass() {
    let mut worker = Worker::new(1000, &[Own { start: 3, ..Own::idle(0) }]);
    worker.order();
    assert_eq!((worker.replicas[0].ordered, &worker.of(0).reason), (3, &Reason::Returned));
    let mut worker = Worker::new(1000, &[busy(Own { start: 3, ..Own::idle(0) })]);
    worker.order();
    assert_eq!(worker.replicas[0].ordered, 3, "whatever waits");
}

#[test]
fn who_gave_gets_it_back_when_there_is_room() {
    let mut worker = Worker::new(120, &[Own { start: 1, ..Own::idle(2) }, Own { start: 1, ..Own::idle(0) }]);
    (0..25).for_each(|_| worker.follow());
    assert_eq!(worker.levels(), [1, 1]);
}

#[test]
fn a_smaller_room_takes_layers_where_they_are_missed_least() {
    let mut worker = Worker::new(3 * 70, &[Own::idle(2).with(0, 19), Own::idle(2), Own::idle(2).with(0, 2)]);
    worker.room_bytes = 180;
    worker.follow();
    assert_eq!(worker.levels(), [2, 0, 1]);
    assert_eq!(worker.of(1).reason, Reason::Crowded);
}

/// A worker as large as one may be, where half wait and nobody can give, and then half of its room goes: in squares of
/// its replicas each of the two takes many seconds.
#[test]
fn a_full_worker_is_planned_in_passes_and_not_in_squares() {
    let count = Snapshot::REPLICAS_MAX;
    let waiting = busy(Own::idle(0));
    let replicas: Vec<Own> = (0..count).map(|at| if at % 2 == 0 { waiting } else { Own::idle(0) }).collect();
    let mut worker = Worker::new(50 * count as u64, &replicas);
    worker.follow();
    assert!(worker.plan.decisions.iter().step_by(2).all(|decision| decision.reason == Reason::NoRoom));
    let mut worker = Worker::new(90 * count as u64, &vec![Own::idle(4); count]);
    worker.room_bytes = 70 * count as u64;
    worker.follow();
    assert_eq!(worker.plan.bytes, worker.room_bytes);
}

#[test]
fn no_more_build_than_may_at_once() {
    let mut worker = Worker::new(10_000, &[busy(Own::idle(0)); 6]);
    worker.order();
    let building = worker.replicas.iter().filter(|own| own.ordered > own.level).count();
    assert_eq!((building, &worker.of(5).reason), (4, &Reason::TooManyBuilding));
}

#[test]
fn at_the_highest_level_there_is_nothing_to_give() {
    let mut worker = Worker::new(1000, &[Own::idle(4).with(1000, 500)]);
    worker.follow();
    assert_eq!((worker.levels(), &worker.of(0).reason), (vec![4], &Reason::AtHighest));
}

#[test]
fn every_reason_can_be_read() {
    let reasons = [Reason::Took(vec![ShardId(4), ShardId(9)]), Reason::Gave(ShardId(7)), Reason::Calm { periods: 3, of: 20 }];
    let texts = reasons.map(|reason| reason.to_string());
    assert_eq!(texts[0], "requests wait too long, and shard 4, shard 9 gave room for a layer");
    assert_eq!(texts[1], "a layer went to shard 7, whose requests wait too long");
    assert_eq!(texts[2], "the load is low since 3 periods of 20");
}

#[test]
fn what_can_not_be_is_refused_with_a_remedy() {
    let level = |bytes, service_us| Level { bytes, service_us };
    for levels in [vec![], vec![level(0, 1.0)], vec![level(5, 1.0), level(5, 0.5)], vec![level(5, 0.0)], vec![level(5, f64::NAN)]]
    {
        let error = Curve::new(levels.clone()).unwrap_err().to_string();
        assert!(error.contains("give"), "{levels:?}: {error}");
    }
    let refused = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        settings.validate().unwrap_err().to_string()
    };
    assert!(refused(&|settings| settings.beta = 0.0).contains("beta"));
    assert!(refused(&|settings| settings.period_secs = f64::NAN).contains("period_secs"));
    assert!(refused(&|settings| settings.lower = 1.0).contains("lower"), "thresholds that meet would flap");
    assert!(refused(&|settings| settings.give_load = 1.0).contains("give_load"));
    assert!(refused(&|settings| settings.building_max = 0).contains("building_max"));
}

#[test]
fn a_worker_that_can_not_be_is_refused_with_a_remedy() {
    let curve = curve();
    let sound = Replica {
        shard: ShardId(1),
        curve: &curve,
        lowest: 0,
        start: 1,
        highest: 4,
        level: 1,
        ordered: 1,
        queue: 0,
        arrived: 0,
        frozen: false,
    };
    let refused = |replicas: &[Replica<'_>], room_bytes| {
        let snapshot = Snapshot { replicas, room_bytes };
        plan(&settings(), &snapshot, &Plan::default()).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused(&[sound, sound], 1000).contains("ascending"));
    assert!(refused(&[Replica { highest: 5, ..sound }], 1000).contains("4 at most"));
    assert!(refused(&[Replica { level: 2, ..sound }], 1000).contains("not above what is ordered"));
    assert!(refused(&[Replica { ordered: 5, ..sound }], 1000).contains("levels from 0 to 4"));
    assert!(refused(&[sound], 49).contains("give the worker more or move shards"));
}

impl Worker {
    fn decide_and_expect(&mut self, level: u32) {
        self.follow();
        assert_eq!(self.levels(), [level], "{:?}", self.of(0));
    }
}
