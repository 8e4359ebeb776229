//! What of a process grew, and whether it may.

use std::collections::BTreeMap;

use forebay_oracle::{Rule, Violation};
use serde::Serialize;

use super::fit;
use super::watched::Sample;

/// What a process has at first, and fills, is not what it grows by.
const WARM_UP_MS: u64 = 10 * 60_000;
/// Memory may grow by less than this, in MiB an hour.
const MIB_PER_HOUR: f64 = 1.0;
/// Of less time, in hours, nothing is said.
const HOURS_MIN: f64 = 0.75;
/// Descriptors, tasks and threads that may be more at rest: connections that are kept, and come and go.
const MORE: u64 = 4;
/// The worker that ends again and again, of which nothing is to be said.
const ENDS: &str = "worker-0";

/// How a process grew, without its first ten minutes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Its name.
    pub process: String,
    /// What is said is of so many hours.
    pub hours: f64,
    /// What its own memory grew by.
    pub mib_per_hour: Option<f64>,
    /// What that was at last, in MiB.
    pub mib: f64,
    /// Descriptors at rest: the most of the first third of times, and the least of the last.
    pub descriptors: Option<(u64, u64)>,
    /// Tasks, the same.
    pub tasks: Option<(u64, u64)>,
    /// Threads, the same.
    pub threads: Option<(u64, u64)>,
}

/// How all processes grew. One that was started again begins anew.
pub(super) fn of(samples: &[Sample]) -> Vec<Growth> {
    let mut processes: BTreeMap<&str, BTreeMap<i32, Vec<&Sample>>> = BTreeMap::new();
    for sample in samples {
        processes.entry(&sample.process).or_default().entry(sample.usage.pid).or_default().push(sample);
    }
    processes.into_iter().map(|(name, series)| of_process(name, series.into_values().map(warm).collect())).collect()
}

/// Without what comes first.
fn warm(samples: Vec<&Sample>) -> Vec<&Sample> {
    let from_ms = samples.first().map_or(0, |first| first.at_ms + WARM_UP_MS);
    samples.into_iter().filter(|sample| sample.at_ms >= from_ms).collect()
}

fn of_process(name: &str, series: Vec<Vec<&Sample>>) -> Growth {
    let hours = |ms: u64| ms as f64 / 3_600_000.0;
    let mib = |sample: &Sample| sample.usage.own_bytes as f64 / f64::from(1 << 20);
    let points =
        |samples: &Vec<&Sample>| -> Vec<(f64, f64)> { samples.iter().map(|sample| (hours(sample.at_ms), mib(sample))).collect() };
    let span_ms = |samples: &Vec<&Sample>| Some(samples.last()?.at_ms - samples.first()?.at_ms);
    let longest = series.iter().max_by_key(|samples| span_ms(samples));
    let at_rest: Vec<&Sample> = longest.into_iter().flatten().copied().filter(|sample| sample.at_rest).collect();
    let thirds =
        |number: fn(&Sample) -> Option<u64>| fit::thirds(&at_rest.iter().filter_map(|sample| number(sample)).collect::<Vec<_>>());
    Growth {
        process: name.to_owned(),
        hours: hours(series.iter().filter_map(span_ms).sum()),
        mib_per_hour: fit::slope(&series.iter().map(points).collect::<Vec<_>>()),
        mib: longest.and_then(|samples| samples.last()).map_or(0.0, |last| mib(last)),
        descriptors: thirds(|sample| Some(sample.usage.descriptors)),
        tasks: thirds(|sample| sample.tasks),
        threads: thirds(|sample| Some(sample.usage.threads)),
    }
}

/// What may not be. Of a soak that is too short for it nothing is said but of what can be seen.
pub(super) fn too_much(growth: &[Growth], is_long: bool) -> Vec<Violation> {
    growth.iter().flat_map(|one| of_one(one, is_long)).collect()
}

fn of_one(growth: &Growth, is_long: bool) -> Vec<Violation> {
    let Growth { process, hours, .. } = growth;
    let mut violations = Vec::new();
    match growth.mib_per_hour.filter(|_| *hours >= HOURS_MIN) {
        Some(slope) if slope >= MIB_PER_HOUR => {
            let what = format!("{process} has {slope:.2} MiB more an hour, over {hours:.2} hours");
            violations.push(Violation::new(Rule::NothingLeft, what));
        }
        Some(_) => {}
        None if is_long && process != ENDS => {
            let what = format!("{process} ran for {hours:.2} hours at a time that count: too few for its memory");
            violations.push(Violation::new(Rule::Decided, what));
        }
        None => {}
    }
    let counts = [("descriptors", growth.descriptors), ("tasks", growth.tasks), ("threads", growth.threads)];
    for (what, (first, last)) in counts.into_iter().filter_map(|(what, thirds)| Some((what, thirds?))) {
        if last > first + MORE {
            let what = format!("{process} has at least {last} {what} at rest at the end, and had at most {first} at first");
            violations.push(Violation::new(Rule::NothingLeft, what));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Usage;

    /// Two hours of a process, at rest once a minute, that grows by so many bytes and tasks a minute.
    fn soaked(process: &str, pid: i32, minutes: std::ops::Range<u64>, bytes: u64, tasks: u64) -> Vec<Sample> {
        let begin = minutes.start;
        let sample = |minute: u64| {
            let grown = minute - begin;
            let own_bytes = (60 << 20) + grown * bytes + (grown % 5) * 10_000;
            let usage = Usage { pid, own_bytes, descriptors: 30 + grown % 3, threads: 12 };
            let (at_ms, tasks) = (minute * 60_000, Some(40 + grown * tasks));
            Sample { at_ms, process: process.to_owned(), usage, at_rest: true, tasks }
        };
        minutes.map(sample).collect()
    }

    #[test]
    fn what_stays_as_it_is_has_not_grown() {
        let growth = of(&soaked("gateway", 5, 0..120, 0, 0));
        assert!(too_much(&growth, true).is_empty(), "{growth:?}");
        assert!(growth[0].mib_per_hour.unwrap().abs() < 0.05 && growth[0].hours > 1.8, "{growth:?}");
    }

    #[test]
    fn memory_and_tasks_that_are_kept_are_seen() {
        let growth = of(&soaked("gateway", 5, 0..120, 40_000, 1));
        let rules: Vec<Rule> = too_much(&growth, true).iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, [Rule::NothingLeft; 2], "{growth:?}");
        assert!((growth[0].mib_per_hour.unwrap() - 2.29).abs() < 0.1, "{growth:?}");
    }

    #[test]
    fn a_process_that_was_started_again_begins_anew() {
        let mut samples = soaked("worker-1", 5, 0..60, 0, 0);
        samples.extend(soaked("worker-1", 6, 61..120, 0, 0));
        // What it takes in its first minutes is not what it grows by.
        samples
            .iter_mut()
            .filter(|sample| sample.at_ms % 3_660_000 < 300_000)
            .for_each(|sample| sample.usage.own_bytes = 1 << 20);
        let growth = of(&samples);
        assert_eq!((growth.len(), too_much(&growth, true)), (1, Vec::new()));
        assert!((1.5..1.8).contains(&growth[0].hours), "{growth:?}");
    }

    #[test]
    fn what_can_not_be_told_has_not_passed_unless_it_was_short() {
        let short = of(&soaked("coordinator", 5, 0..20, 40_000, 0));
        assert!(too_much(&short, false).is_empty());
        assert_eq!(too_much(&short, true).len(), 1);
        assert!(too_much(&of(&soaked(ENDS, 5, 0..20, 0, 0)), true).is_empty());
    }
}
