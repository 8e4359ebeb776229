//! A replica's dial: the sizes that it may be kept at, where it is, and what an estimated step of its questions takes there.

use std::time::{Duration, Instant};

use forebay_navigation::{Curve, Level, Replica, ShardId};
use forebay_types::Result;
use parking_lot::Mutex;

/// Between two levels, as a part of the input: what layers are cut into.
const STEP: f64 = 0.05;
/// Beyond this more layers answer little faster (docs/shard.md).
const SIZE_MAX: f64 = 1.5;
/// How much of what was known of a level's time stays with a new measurement.
const KEEP: f64 = 0.9;
/// What a step is presumed to take before anything was answered, in microseconds.
const PRESUMED_US: f64 = 1.0;
/// The least that a step may take, in microseconds: layers spare nearly all of a large answer's.
const STEP_US_MIN: f64 = 1e-6;

/// The longest that anyone is told to wait before he asks again.
const AGAIN_SECS_MAX: f64 = 10.0;

/// A replica's dial.
#[derive(Debug)]
pub(super) struct Dial {
    /// Parts of the input, from the base alone upwards.
    sizes: Vec<f64>,
    input_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    level: u32,
    /// The level that it is on its way to: also the one that it has, where other layers of that size come.
    ordered: Option<u32>,
    start: u32,
    /// Calls since the last plan, and their estimated steps, and when that was.
    calls: u32,
    arrived: u64,
    counted: Option<Instant>,
    /// Those before that in a minute.
    calls_per_min: u32,
    /// What a call at the present level took and counted as, aged; none before the first one.
    took: Option<Took>,
    why: String,
    /// It was told where it begins.
    is_started: bool,
    /// Where it is pinned; 0 where it is not.
    lowest: u32,
    /// Its layers stay as they are.
    is_frozen: bool,
}

/// Microseconds, and estimated steps.
#[derive(Clone, Copy, Debug)]
struct Took {
    us: f64,
    steps: f64,
}

impl Took {
    /// With a newer one. A call of many steps counts for more than one of few.
    fn then(self, new: Self) -> Self {
        let aged = |before: f64, new: f64| before * KEEP + new * (1.0 - KEEP);
        Self { us: aged(self.us, new.us), steps: aged(self.steps, new.steps) }
    }
}

impl State {
    /// Microseconds a step at the present level.
    fn step_us(&self) -> f64 {
        self.took.map_or(PRESUMED_US, |took| took.us / took.steps)
    }
}

impl Dial {
    /// Of a shard whose base has so many bytes.
    pub(super) fn new(base_bytes: u64, input_bytes: u64) -> Self {
        let base = base_bytes.max(1) as f64 / input_bytes.max(1) as f64;
        let first = (base / STEP).floor() as u32 + 1;
        let above = (first..).map(|step| f64::from(step) * STEP).take_while(|size| *size <= SIZE_MAX + STEP / 2.0);
        // A level less than half a step above the base would be the base.
        let sizes: Vec<f64> = std::iter::once(base).chain(above.filter(|size| size - base > STEP / 2.0)).collect();
        assert!(sizes.is_sorted_by(|one, next| one < next), "each level is larger than the one below");
        Self { sizes, input_bytes, state: Mutex::default() }
    }

    /// The size of a level.
    pub(super) fn size(&self, level: u32) -> f64 {
        self.sizes[(level as usize).min(self.sizes.len() - 1)]
    }

    /// The size that it is at.
    pub(super) fn now(&self) -> f64 {
        let level = self.state.lock().level;
        self.size(level)
    }

    /// The highest level that is no larger than a part of the input.
    pub(super) fn level_of(&self, size: f64) -> u32 {
        self.sizes.iter().rposition(|level| *level <= size + STEP / 10.0).unwrap_or(0) as u32
    }

    /// It is not to be below a level, and perhaps to keep the layers that it has.
    pub(super) fn hold(&self, lowest: u32, is_frozen: bool) {
        assert!((lowest as usize) < self.sizes.len(), "a level is one of the dial's");
        let mut state = self.state.lock();
        (state.lowest, state.is_frozen) = (lowest, is_frozen);
    }

    /// A call has come, and is presumed to take so many steps.
    pub(super) fn arrived(&self, steps: u64) {
        let mut state = self.state.lock();
        state.calls = state.calls.saturating_add(1);
        state.arrived = state.arrived.saturating_add(steps);
    }

    /// One that was presumed to take some steps takes others. Where a plan has counted it in between, what it said is not taken back.
    pub(super) fn corrected(&self, presumed: u64, steps: u64) {
        let mut state = self.state.lock();
        state.arrived = state.arrived.saturating_add(steps).saturating_sub(presumed);
    }

    /// A call of so many steps took so long when its turn had come.
    pub(super) fn took(&self, us: f64, steps: u64) {
        let new = Took { us, steps: steps.max(1) as f64 };
        let mut state = self.state.lock();
        state.took = Some(state.took.map_or(new, |before| before.then(new)));
    }

    /// When of so many steps that wait about half are left.
    pub(super) fn again_after(&self, queue: u32) -> Duration {
        let us = self.state.lock().step_us();
        Duration::from_secs_f64((us / 1e6 * f64::from(queue) / 2.0).min(AGAIN_SECS_MAX))
    }

    /// Where it begins and returns to; gives the level when nothing was ordered before and it is not there.
    pub(super) fn start_at(&self, level: u32) -> Option<u32> {
        assert!((level as usize) < self.sizes.len(), "a level is one of the dial's");
        let mut state = self.state.lock();
        state.start = level;
        if std::mem::replace(&mut state.is_started, true) {
            return None;
        }
        state.why = "the size that this replica starts with".to_string();
        (level != state.level).then_some(level)
    }

    /// It is at a level already, to which a shard of the same records was brought by its load.
    pub(super) fn carry(&self, level: u32) {
        let mut state = self.state.lock();
        assert!((level as usize) < self.sizes.len(), "a level is one of the dial's");
        (state.level, state.ordered, state.is_started) = (level, None, true);
        state.why = "the layers that it had before a merge".to_string();
    }

    /// It has a level to go to; false when it is on its way to one.
    pub(super) fn order(&self, level: u32) -> bool {
        assert!((level as usize) < self.sizes.len(), "a level is one of the dial's");
        let mut state = self.state.lock();
        let is_free = state.ordered.is_none();
        if is_free {
            state.ordered = Some(level);
        }
        is_free
    }

    /// It has come to where it was ordered, or stays where it was.
    pub(super) fn ended(&self, came: bool) {
        let mut state = self.state.lock();
        let ordered = state.ordered.take().expect("what ends was ordered");
        assert!((ordered as usize) < self.sizes.len(), "a level is one of the dial's");
        if came {
            let gain = self.layers(state.level) / self.layers(ordered);
            state.took = state.took.map(|took| Took { us: took.us * gain, ..took });
            state.level = ordered;
        }
    }

    /// Why it moved, or did not.
    pub(super) fn explain(&self, why: String) {
        self.state.lock().why = why;
    }

    /// Why it moved or did not, whether it is moving, and its size in thousandths of the input.
    pub(super) fn told(&self) -> (String, bool, u32) {
        let state = self.state.lock();
        (state.why.clone(), state.ordered.is_some(), (self.size(state.level) * 1000.0).round() as u32)
    }

    /// Calls that came in a minute, by those between the last two plans.
    pub(super) fn calls_per_min(&self) -> u32 {
        self.state.lock().calls_per_min
    }

    /// Bytes and time by level. A step of now takes as long as was measured at the present level; at others it is presumed to take
    /// half as long with twice the layers. What was measured at another level, earlier, was of other calls.
    pub(super) fn curve(&self) -> Result<Curve> {
        let state = self.state.lock();
        let (now, us) = (self.layers(state.level), state.step_us());
        let level = |level: u32| Level {
            bytes: ((self.size(level) * self.input_bytes as f64).ceil() as u64).max(u64::from(level) + 1),
            service_us: (us * now / self.layers(level)).clamp(STEP_US_MIN, Curve::SERVICE_US_MAX),
        };
        Curve::new((0..self.sizes.len() as u32).map(level).collect())
    }

    /// What a level has beside the base, and a step for the base itself.
    fn layers(&self, level: u32) -> f64 {
        self.size(level) - self.sizes[0] + STEP
    }

    /// What a plan has to know, by the steps that are in the queue; calls and steps are counted from here on.
    pub(super) fn replica<'a>(&self, shard: ShardId, curve: &'a Curve, queue: u32) -> Replica<'a> {
        let mut state = self.state.lock();
        let ordered = state.ordered.unwrap_or(state.level);
        let level = state.level.min(ordered);
        let (highest, start) = (curve.highest(), state.start);
        let (calls, arrived) = (std::mem::take(&mut state.calls), std::mem::take(&mut state.arrived));
        let arrived = u32::try_from(arrived).unwrap_or(u32::MAX);
        let now = forebay_runtime::now();
        if let Some(before) = state.counted.replace(now) {
            let minutes = now.saturating_duration_since(before).as_secs_f64() / 60.0;
            state.calls_per_min = if minutes > 0.0 { (f64::from(calls) / minutes).round() as u32 } else { 0 };
        }
        let (lowest, start, frozen) = (state.lowest, start.max(state.lowest), state.is_frozen);
        debug_assert!(start <= highest, "it returns to a level that it has");
        Replica { shard, curve, lowest, start, highest, level, ordered, queue, arrived, frozen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replica_is_held_to_is_told_to_plans() {
        let dial = Dial::new(300, 1000);
        let curve = dial.curve().unwrap();
        let of = |dial: &Dial| {
            let replica = dial.replica(ShardId(1), &curve, 0);
            (replica.lowest, replica.start, replica.frozen)
        };
        assert_eq!(dial.start_at(2), Some(2));
        assert_eq!(of(&dial), (0, 2, false));
        dial.hold(6, false);
        assert_eq!(of(&dial), (6, 6, false), "it returns to where it is pinned");
        dial.hold(0, true);
        assert_eq!(of(&dial), (0, 2, true));
    }

    #[test]
    fn levels_rise_from_the_base_in_even_steps() {
        let dial = Dial::new(270, 1000);
        assert_eq!(dial.size(0), 0.27);
        assert!((dial.size(1) - 0.30).abs() < 1e-9 && (dial.size(2) - 0.35).abs() < 1e-9);
        assert_eq!(dial.level_of(0.1), 0);
        assert!((dial.size(dial.level_of(0.9)) - 0.9).abs() < 1e-9);
        assert!((dial.size(u32::MAX) - 1.5).abs() < 1e-9);
        let curve = dial.curve().unwrap();
        assert!((1..=curve.highest()).all(|level| curve.bytes(level) > curve.bytes(level - 1)));
        assert_eq!(Dial::new(5000, 1000).curve().unwrap().highest(), 0, "a base that is larger than its input has no levels");
        assert_eq!(Dial::new(0, 0).level_of(0.5), 0);
    }

    #[test]
    fn what_was_carried_over_is_not_ordered_again_and_returns_to_its_start() {
        let dial = Dial::new(300, 1000);
        dial.carry(5);
        assert_eq!(dial.start_at(2), None);
        let curve = dial.curve().unwrap();
        let replica = dial.replica(ShardId(1), &curve, 0);
        assert_eq!((replica.level, replica.ordered, replica.start), (5, 5, 2));
    }

    #[test]
    fn what_is_at_its_start_is_left_alone_and_other_layers_of_the_same_size_are_a_change() {
        let dial = Dial::new(300, 1000);
        assert_eq!(dial.start_at(0), None, "it is there");
        assert!(!dial.told().1);
        assert!(dial.order(0));
        assert!(dial.told().1, "its layers change, though its size does not");
        dial.ended(true);
        assert!(!dial.told().1);
    }

    #[test]
    fn what_was_measured_stands_and_the_rest_follows_from_it() {
        let dial = Dial::new(300, 1000);
        assert!(dial.order(2));
        assert!(!dial.order(3), "it is on its way");
        dial.ended(true);
        dial.took(600.0, 100);
        let curve = dial.curve().unwrap();
        assert!((curve.service_us(2) - 6.0).abs() < 0.01);
        assert!(curve.service_us(1) > 6.0 && curve.service_us(3) < 6.0);
        dial.arrived(70);
        dial.arrived(30);
        assert_eq!(dial.replica(ShardId(1), &curve, 4).arrived, 100);
        assert_eq!(dial.replica(ShardId(1), &curve, 4).arrived, 0, "counted from the last plan on");
        assert!(dial.order(0));
        let replica = dial.replica(ShardId(1), &curve, 0);
        assert_eq!((replica.level, replica.ordered), (0, 0), "what is dropped is served without at once");
        dial.ended(false);
        assert_eq!(dial.replica(ShardId(1), &curve, 0).level, 2);
    }

    #[test]
    fn what_came_between_two_plans_is_told_by_the_minute() {
        let dial = Dial::new(300, 1000);
        let curve = dial.curve().unwrap();
        let plan = || dial.replica(ShardId(1), &curve, 0).arrived;
        dial.arrived(9);
        assert_eq!((plan(), dial.calls_per_min()), (9, 0), "since when is not known");
        std::thread::sleep(Duration::from_millis(20));
        dial.arrived(9);
        assert_eq!(plan(), 9);
        let rate = dial.calls_per_min();
        assert!((1..=3000).contains(&rate), "{rate} a minute");
        assert_eq!((plan(), dial.calls_per_min()), (0, 0));
    }

    #[test]
    fn who_finds_many_waiting_is_told_when_half_of_them_are_answered() {
        let dial = Dial::new(300, 1000);
        assert_eq!(dial.again_after(256_000), Duration::from_millis(128), "nothing was answered yet");
        dial.took(4000.0, 1000);
        assert_eq!((dial.again_after(100_000), dial.again_after(0)), (Duration::from_millis(200), Duration::ZERO));
        dial.took(1e9, 1000);
        assert_eq!(dial.again_after(256_000), Duration::from_secs(10));
    }

    #[test]
    fn a_step_takes_what_all_of_them_took_and_one_long_search_is_a_long_queue() {
        let dial = Dial::new(300, 1000);
        // A call of one step has as much around it as one of many.
        (0..50).for_each(|_| [(110.0, 1), (10_100.0, 10_000)].into_iter().for_each(|(us, steps)| dial.took(us, steps)));
        let curve = dial.curve().unwrap();
        assert!((0.9..1.2).contains(&curve.service_us(0)), "{}", curve.service_us(0));
        let wait = |steps: u32| f64::from(dial.replica(ShardId(1), &curve, steps).queue) * curve.service_us(0);
        assert!(wait(3 * 120) < 1e3 && wait(1_000_000) > 5e5, "three gets, and one search of many hits");
    }

    #[test]
    fn what_was_presumed_of_a_call_is_corrected_and_never_below_nothing() {
        let dial = Dial::new(300, 1000);
        let curve = dial.curve().unwrap();
        let plan = || dial.replica(ShardId(1), &curve, 0).arrived;
        (0..2).for_each(|_| dial.arrived(100));
        dial.corrected(100, 5000);
        dial.corrected(100, 1);
        assert_eq!(plan(), 5001);
        dial.corrected(100, 1);
        assert_eq!(plan(), 0, "a plan has counted it");
        dial.arrived(u64::MAX);
        assert_eq!(plan(), u32::MAX);
    }

    #[test]
    #[should_panic(expected = "a level is one of the dial's")]
    fn a_level_that_it_does_not_have_is_not_ordered() {
        Dial::new(300, 1000).order(99);
    }

    #[test]
    #[should_panic(expected = "what ends was ordered")]
    fn what_ends_twice_is_caught() {
        let dial = Dial::new(300, 1000);
        assert!(dial.order(2));
        (0..2).for_each(|_| dial.ended(true));
    }
}
