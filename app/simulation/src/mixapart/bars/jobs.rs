//! Bars on what jobs gain: tasks sustained, ingest, reuse, input brought ahead, locality and fairness, with several seeds.

use forebay_scheduling::Policy;

use super::MixApartBar;
use crate::mixapart::{MixApartBatch, MixApartJob, MixApartSettings, mixapart, mixapart_batch, sustained};

/// Runs with different seeds that have to meet a bar, each of them.
const SEEDS: u64 = 3;
/// 64 MB blocks of 82 GB of page views.
const TASKS: u32 = 1_280;

/// Kinds of jobs of the paper's workload: a name, the time of a task over 64 MB, and the reuse of its panel. How long a
/// task takes is ours; the panels are in parts of the time with all data local.
pub(crate) const KINDS: [(&str, f64, f64); 2] = [("I/O-intensive", 1.0, 0.8), ("CPU-intensive", 10.0, 0.5)];

/// The bandwidth of figures 3b and 3c, which is one for both: a fifth of the rate at which all slots read tasks of a second.
pub(crate) const ONE_BANDWIDTH: f64 = 0.2;
/// How much longer than with all data local still counts as long.
const AS_LONG: f64 = 1.1;
/// How close the least reuse is found.
const CLOSE: f64 = 0.005;

/// One job on 4 workers of 2 slots, behind a bandwidth of `share` of the rate at which all slots read local data.
pub(crate) fn panel(task_secs: f64, share: f64, reuse: f64, brings_ahead: bool, seed: u64) -> MixApartBatch {
    let settings = small(task_secs, share, seed);
    let job = MixApartJob { at_secs: 0.0, priority: 0, tasks: TASKS, task_secs, reuse, first: None };
    mixapart_batch(&MixApartSettings { brings_ahead, ..settings }, &[job])
}

fn small(task_secs: f64, share: f64, seed: u64) -> MixApartSettings {
    let (workers, slots, task_bytes) = (4, 2, 64_000_000);
    let scan = f64::from(workers * slots) * task_bytes as f64 / task_secs;
    MixApartSettings { workers, slots, bandwidth_bytes_per_sec: share * scan, task_bytes, seed, ..MixApartSettings::default() }
}

fn seeds() -> impl Iterator<Item = u64> {
    1..=SEEDS
}

pub(super) fn example() -> Vec<MixApartBar> {
    let found = sustained(&MixApartSettings::default());
    let off = (found.simulated / found.model - 1.0).abs();
    let detail = format!("{:.0} tasks simulated, {:.0} by the model", found.simulated, found.model);
    vec![MixApartBar::at_most(0.05, off, "distance to the model, as a share of it", detail)]
}

pub(super) fn ingest() -> Vec<MixApartBar> {
    let bar = |(name, task_secs, _): (&str, f64, f64)| {
        let local = panel(task_secs, 1.0, 1.0, true, 1).secs;
        // The whole input at a bandwidth of the scan rate takes as long as computing on it.
        let (both, cold) = (2.0 * local, panel(task_secs, 1.0, 0.0, true, 1).secs);
        let detail = format!("{both:.1} s ingest, then compute; {cold:.1} s cold, {local:.1} s with all data local");
        MixApartBar::at_least(0.45, 1.0 - cold / both, format!("{name}: share of the time that is saved"), detail)
    };
    KINDS.map(bar).into()
}

pub(super) fn reuse() -> Vec<MixApartBar> {
    let bars = KINDS.iter().flat_map(|(name, task_secs, reuse)| seeds().map(move |seed| (name, *task_secs, *reuse, seed)));
    bars.map(|(name, task_secs, reuse, seed)| {
        let local = panel(task_secs, 1.0, 1.0, true, seed).secs;
        let ours = panel(task_secs, 1.0 - reuse, reuse, true, seed);
        let off = panel(task_secs, 1.0 - reuse, reuse, false, seed).secs;
        let detail = format!(
            "{:.1} s, {local:.1} s with all data local, {off:.1} s fetched by tasks; link used {:.3} of the time",
            ours.secs, ours.link
        );
        MixApartBar::at_most(1.1, ours.secs / local, format!("{name}, reuse {reuse}, seed {seed}: time to all local"), detail)
    })
    .collect()
}

/// The least reuse at which a job of tasks of so many seconds takes as long as with all data local, behind [`ONE_BANDWIDTH`].
pub(crate) fn crossing_at(task_secs: f64, brings_ahead: bool, seed: u64) -> f64 {
    let local = panel(task_secs, 1.0, 1.0, true, seed).secs;
    let is_as_long = |reuse: f64| panel(task_secs, ONE_BANDWIDTH * task_secs, reuse, brings_ahead, seed).secs <= AS_LONG * local;
    let (mut too_little, mut enough) = (0.0, 1.0);
    if is_as_long(too_little) {
        return too_little;
    }
    while enough - too_little > CLOSE {
        let between = (too_little + enough) / 2.0;
        if is_as_long(between) { enough = between } else { too_little = between }
    }
    enough
}

/// The more a job computes on what it reads, the less of its input has to be cached.
pub(super) fn crossing() -> Vec<MixApartBar> {
    let bars = [1.0, 1.6, 2.5, 4.0].into_iter().flat_map(|task_secs| seeds().map(move |seed| (task_secs, seed)));
    bars.map(|(task_secs, seed)| {
        let (found, fetched) = (crossing_at(task_secs, true, seed), crossing_at(task_secs, false, seed));
        // What is missing then comes in the time that is as long.
        let expected = 1.0 - AS_LONG * ONE_BANDWIDTH * task_secs;
        let detail = format!("found at a reuse of {found:.3}, expected at {expected:.3}; fetched by tasks at {fetched:.3}");
        let what = format!("tasks of {task_secs} s, seed {seed}: distance of the crossing to where the link alone would have it");
        MixApartBar::at_most(0.05, (found - expected).abs(), what, detail)
    })
    .collect()
}

pub(super) fn on_off() -> Vec<MixApartBar> {
    let bars = [0.2, 0.3, 0.4, 0.5, 0.6].into_iter().flat_map(|reuse| seeds().map(move |seed| (reuse, seed)));
    bars.map(|(reuse, seed)| {
        let [on, off] = [true, false].map(|brings_ahead| {
            let outcome = mixapart(&loaded(reuse, brings_ahead, seed));
            (outcome.job_secs, outcome.waiting)
        });
        let detail = format!(
            "{:.1} s on, {:.1} s off; slots waited {:.1} % and {:.1} % of the time",
            on.0,
            off.0,
            on.1 * 100.0,
            off.1 * 100.0
        );
        MixApartBar::at_most(1.0, on.0 / off.0, format!("reuse {reuse}, seed {seed}: mean time of a job, on to off"), detail)
    })
    .collect()
}

/// 100 workers of 2 slots under 0.7 of the tasks that slots and bandwidth sustain, half of which wants all slots' bandwidth.
pub(crate) fn loaded(reuse: f64, brings_ahead: bool, seed: u64) -> MixApartSettings {
    let settings = MixApartSettings {
        workers: 100,
        slots: 2,
        // At a reuse of 0.4 slots and bandwidth give out together.
        bandwidth_bytes_per_sec: 0.6 * 200.0 * 64e6 / 20.0,
        reuse,
        brings_ahead,
        secs: 20_000.0,
        seed,
        ..MixApartSettings::default()
    };
    MixApartSettings { offered_tasks: 0.7 * settings.sustained_tasks(), ..settings }
}

pub(super) fn locality() -> Vec<MixApartBar> {
    seeds()
        .flat_map(|seed| {
            KINDS.map(|(name, task_secs, _)| {
                let what = format!("{name}, reuse 0.8, 4 workers of 2 slots, seed {seed}: share of the tasks");
                MixApartBar::at_least(0.95, panel(task_secs, 0.2, 0.8, true, seed).local, what, "the last wave aside")
            })
        })
        .collect()
}

/// 100 workers of 2 slots over a set of 64 GB, nine of ten slots busy.
pub(crate) fn over_a_set(tier: f64, disk_tier: f64, brings_ahead: bool, seed: u64) -> MixApartSettings {
    let set = MixApartSettings { working_set: 1_000, tier, disk_tier, secs: 5_000.0, ..loaded(0.0, brings_ahead, seed) };
    MixApartSettings { offered_tasks: 0.9 * f64::from(set.workers) * f64::from(set.slots), ..set }
}

pub(super) fn evictions() -> Vec<MixApartBar> {
    let bars = [1.2, 1.0, 0.8].into_iter().flat_map(|tier| seeds().map(move |seed| (tier, seed)));
    bars.map(|(tier, seed)| {
        let outcome = mixapart(&over_a_set(tier, 0.0, true, seed));
        let detail = format!(
            "{} blocks brought ahead, {} evicted; {:.1} % of the input was cached; {} tasks misrouted",
            outcome.brought_ahead,
            outcome.evicted,
            outcome.cached * 100.0,
            outcome.misrouted
        );
        MixApartBar::at_most(
            0.005,
            outcome.evicted_unread,
            format!("memory of {tier}x the set, seed {seed}: share of them"),
            detail,
        )
    })
    .collect()
}

/// Shared storage has the data; a file system of the workers' own keeps three copies, so that any one may be lost.
const COPIES: f64 = 3.0;

pub(super) fn storage() -> Vec<MixApartBar> {
    let bars = seeds().flat_map(|seed| {
        let [one, three] = [1.0, COPIES].map(|tier| mixapart(&over_a_set(tier, 0.0, true, seed)));
        let detail = format!("{:.2} copies of the set at workers; {:.2} where there is room for three", one.copies, three.copies);
        let times = format!("{:.1} s, {:.1} s with room for three copies", one.job_secs, three.job_secs);
        let (share, time) = (one.copies / COPIES, one.job_secs / three.job_secs);
        [
            MixApartBar::at_most(1.0 / COPIES, share, format!("seed {seed}: storage of workers to that of three copies"), detail),
            MixApartBar::at_most(AS_LONG, time, format!("seed {seed}: mean time of a job to that with room for three"), times),
        ]
    });
    bars.collect()
}

pub(super) fn fair() -> Vec<MixApartBar> {
    let job = |tasks: u32, at_secs: f64| MixApartJob { at_secs, priority: 0, tasks, task_secs: 10.0, reuse: 0.5, first: None };
    let bars =
        [("both at once", 0.0), ("the small one later", 50.0)].into_iter().flat_map(|when| seeds().map(move |seed| (when, seed)));
    bars.map(|((when, at_secs), seed)| {
        let settings = MixApartSettings { workers: 8, policy: Policy::Fair, ..small(10.0, 1.0, seed) };
        let half =
            MixApartSettings { workers: 4, bandwidth_bytes_per_sec: settings.bandwidth_bytes_per_sec / 2.0, ..settings.clone() };
        let alone = mixapart_batch(&half, &[job(64, 0.0)]).job_secs[0];
        let both = mixapart_batch(&settings, &[job(640, 0.0), job(64, at_secs)]);
        let (large, small) = (both.job_secs[0], both.job_secs[1]);
        let detail = format!("{small:.1} s beside one of {large:.1} s, {alone:.1} s alone on half the cluster");
        MixApartBar::at_most(1.3, small / alone, format!("{when}, seed {seed}: small job's time to that alone"), detail)
    })
    .collect()
}
