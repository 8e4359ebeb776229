//! What the simulator says of the same rise, given what was measured of the shard: how far the two are apart.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use forebay_bench_harness::{Bar, line, median};
use forebay_shards::Shards;
use forebay_simulation::{ShardRise, ShardRisen, shards_risen};
use forebay_types::{Error, Result};

use super::{ADAPT_PERIODS, Load, Ran, TICK, WAITING_MAX, few, of_cluster};

/// How far a measured time may be from the simulator's, as a ratio.
const APART: f64 = 1.3;
/// The middle of so many runs of the simulator is its word.
const SEEDS: u64 = 5;
/// Between two levels of a dial, and the last one, as parts of the input: as workers have them.
const STEP: f64 = 0.05;
const SIZE_MAX: f64 = 1.5;
/// Looks at a replica in a period.
const LOOKS: u32 = 10;

/// What was measured before the load rose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// The size of the replica, as a part of the input.
    pub(super) size: f64,
    /// Questions a second that it sustains.
    pub(super) per_sec: f64,
    /// Questions a second that come before and from then on.
    pub(super) asked: [f64; 2],
}

/// Changes of layers while a load went on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Changes {
    count: u32,
    looks: u32,
}

impl Changes {
    fn of(looks: &[bool]) -> Self {
        let begun = looks.iter().zip(std::iter::once(&false).chain(looks)).filter(|(now, before)| **now && !**before).count();
        Self { count: begun as u32, looks: looks.iter().filter(|is_changing| **is_changing).count() as u32 }
    }

    /// Seconds of one: a look's where none was seen, which then took less.
    fn secs(self, period: Duration) -> f64 {
        look(period).as_secs_f64() * f64::from(self.looks.max(1)) / f64::from(self.count.max(1))
    }
}

/// Between two looks.
fn look(period: Duration) -> Duration {
    (period / LOOKS).max(TICK)
}

/// Lets a load go on that runs, and looks at the replica's layers meanwhile.
pub(super) async fn watched(
    load: &Load<'_>,
    period: Duration,
    running: impl Future<Output = Result<Ran>>,
) -> Result<(Ran, Changes)> {
    let over = AtomicBool::new(false);
    let loading = async {
        let ran = running.await;
        over.store(true, Relaxed);
        ran
    };
    let watching = async {
        let mut looks = Vec::new();
        let mut look = tokio::time::interval(look(period));
        while !over.load(Relaxed) {
            look.tick().await;
            let status = load.shards.status().await?;
            let replica = status.iter().flat_map(|shard| &shard.replicas).next();
            let replica = replica.ok_or_else(|| Error::internal("the shard is nowhere"))?;
            load.curve.is_at(load.began.elapsed(), replica.now.unwrap_or_default());
            looks.push(replica.is_changing);
        }
        Ok::<_, Error>(Changes::of(&looks))
    };
    let (ran, changes) = futures::join!(loading, watching);
    Ok((ran?, changes?))
}

impl Before {
    /// Beside what came of it: the size and the questions a second that are sustained afterwards, and the times.
    pub(super) fn tell(
        self,
        what: &str,
        shards: &Shards,
        after: (f64, f64),
        changes: Changes,
        (high, period): (&Ran, Duration),
    ) -> Result<()> {
        let shard = &shards.dataset().shards[0];
        let sizes = sizes(shard.bytes() as f64 / shard.input_bytes as f64);
        let rise = self.rise(&sizes, after, changes.secs(period), period);
        let predicted = (1..=SEEDS).map(|seed| shards_risen(&rise, seed)).collect::<Result<Vec<ShardRisen>>>()?;
        line(format!("{what}: layers of a change are there after"), of_cluster(secs(rise.build_secs), period), "s", Bar::Nothing);
        let most = period * ADAPT_PERIODS;
        let peaks = predicted.iter().map(|risen| risen.peak_secs).collect();
        let drained = predicted.iter().map(|risen| risen.drained_secs.unwrap_or(most.as_secs_f64())).collect();
        for (name, measured, simulated) in
            [("adapted", high.peak_at, median(peaks)), ("drained", high.ended.unwrap_or(most), median(drained))]
        {
            let name = format!("{what}: {name}, in time of a cluster, as simulated");
            line(&name, of_cluster(secs(simulated), period), "s", Bar::Nothing);
            let apart = apart(measured.as_secs_f64(), simulated);
            line(format!("{name}: how far the measured is from it"), apart, "x", Bar::ValueAtMost(APART));
        }
        Ok(())
    }

    /// The same for the simulator. A question takes by the layers that it has, to the power that the two sizes say which were measured.
    fn rise(self, sizes: &[f64], (size, per_sec): (f64, f64), build_secs: f64, period: Duration) -> ShardRise {
        let near = |size: f64| {
            let apart = |level: &usize| (sizes[*level] - size).abs();
            (0..sizes.len()).min_by(|one, other| apart(one).total_cmp(&apart(other))).unwrap_or(0)
        };
        let layers = |level: usize| sizes[level] - sizes[0] + STEP;
        let (start, end) = (near(self.size), near(size));
        let power = if end > start { (per_sec / self.per_sec).ln() / (layers(end) / layers(start)).ln() } else { 1.0 };
        let power = power.clamp(0.0, 4.0);
        let took_us = |level: usize| 1e6 / self.per_sec * (layers(start) / layers(level)).powf(power);
        ShardRise {
            levels: (0..sizes.len()).map(|level| (sizes[level], took_us(level))).collect(),
            start: start as u32,
            per_sec: self.asked,
            waiting_max: WAITING_MAX,
            period_secs: period.as_secs_f64(),
            build_secs,
            tick_secs: TICK.as_secs_f64(),
            few: few(self.asked[1]),
            periods: ADAPT_PERIODS,
        }
    }
}

/// The sizes of a dial whose base is such a part of the input.
fn sizes(base: f64) -> Vec<f64> {
    let steps = (1u32..).map(|step| f64::from(step) * STEP).take_while(|size| *size <= SIZE_MAX + STEP / 2.0);
    std::iter::once(base).chain(steps.filter(|size| size - base > STEP / 2.0)).collect()
}

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// How many times one is the other, whichever is longer.
fn apart(one: f64, other: f64) -> f64 {
    (one / other).max(other / one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before() -> Before {
        Before { size: 0.4, per_sec: 500.0, asked: [375.0, 1_125.0] }
    }

    #[test]
    fn both_sizes_that_were_measured_take_in_the_simulator_what_they_took() {
        let sizes = sizes(0.3);
        let rise = before().rise(&sizes, (0.6, 1_500.0), 0.5, Duration::from_millis(250));
        let of = |size: f64| rise.levels.iter().find(|(level, _)| (level - size).abs() < 1e-9).expect("it is a level").1;
        assert!((rise.levels[rise.start as usize].0 - 0.4).abs() < 1e-9);
        assert!((of(0.4) - 2_000.0).abs() < 1e-6 && (of(0.6) - 1e6 / 1_500.0).abs() < 1e-6, "{:?}", rise.levels);
        assert!(of(0.5) < of(0.4) && of(0.5) > of(0.6));
    }

    #[test]
    fn what_did_not_grow_is_presumed_to_take_half_as_long_with_twice_the_layers() {
        let rise = before().rise(&sizes(0.3), (0.4, 480.0), 0.5, Duration::from_millis(250));
        // It has three steps of layers, as a worker counts them.
        let six = rise.levels.iter().find(|(size, _)| (size - 0.55).abs() < 1e-9).expect("it is a level");
        assert!((six.1 - 1_000.0).abs() < 1e-6, "{:?}", rise.levels);
    }

    #[test]
    fn a_change_takes_as_long_as_it_was_seen_to() {
        let changes = Changes::of(&[true, true, false, true, false, true, true, true]);
        assert_eq!(changes, Changes { count: 3, looks: 6 });
        assert!((changes.secs(Duration::from_secs(10)) - 2.0).abs() < 1e-9);
        assert!((Changes::default().secs(Duration::from_secs(10)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn times_are_as_far_apart_one_way_as_the_other() {
        assert_eq!((apart(2.0, 1.0), apart(1.0, 2.0), apart(3.0, 3.0)), (2.0, 2.0, 1.0));
    }
}
