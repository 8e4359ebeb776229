//! How long a task has computed, as its operators say: what it reads in that time is what its kind needs of shared storage.

use std::time::Duration;

use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::{OperatorMetricsSet, TaskStatus};

use crate::shuffle::WRITE_TIMES;

/// In which time scans decode, by the name of their metric. They wait in all others that they have.
const DECODING: &str = "time_elapsed_processing";
/// The least that counts: a task that was answered without its input is said to read at once, and its kind is not as fast as that.
const LEAST: Duration = Duration::from_millis(1);

/// A task's run, but for what it waited for: how fast slow storage has fed it says nothing of what it needs. Its partitions run beside
/// each other, so that the sum may be more than the run; one whose operators say nothing counts as computing all the time.
pub(super) fn computed_for(status: &TaskStatus) -> Duration {
    let ran = Duration::from_millis(status.end_exec_time.saturating_sub(status.start_exec_time));
    let computed = status.metrics.iter().fold(0_u64, |sum, operator| sum.saturating_add(nanos(operator)));
    if computed == 0 { ran } else { ran.min(Duration::from_nanos(computed).max(LEAST)) }
}

fn nanos(operator: &OperatorMetricsSet) -> u64 {
    let (mut computing, mut decoding, mut passing_on) = (0_u64, 0_u64, 0_u64);
    for metric in operator.metrics.iter().filter_map(|metric| metric.metric.as_ref()) {
        let (sum, nanos) = match metric {
            Metric::ElapseTime(nanos) => (&mut computing, *nanos),
            Metric::Time(time) if time.name == DECODING => (&mut decoding, time.value),
            Metric::Time(time) if WRITE_TIMES.contains(&time.name.as_str()) => (&mut passing_on, time.value),
            _ => continue,
        };
        *sum = sum.saturating_add(nanos);
    }
    // A scan's decoding is in both.
    computing.max(decoding).saturating_add(passing_on)
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::{NamedTime, OperatorMetric};

    use super::*;

    const MS: u64 = 1_000_000;

    fn time(name: &str, ms: u64) -> Metric {
        Metric::Time(NamedTime { name: name.to_string(), value: ms * MS })
    }

    /// Of a task that ran for a second.
    fn told(operators: Vec<Vec<Metric>>) -> u128 {
        let metric = |metric| OperatorMetric { partition: None, metric: Some(metric) };
        let set = |metrics: Vec<Metric>| OperatorMetricsSet { metrics: metrics.into_iter().map(metric).collect() };
        let metrics = operators.into_iter().map(set).collect();
        computed_for(&TaskStatus { start_exec_time: 5_000, end_exec_time: 6_000, metrics, ..TaskStatus::default() }).as_millis()
    }

    #[test]
    fn what_a_task_waited_for_was_counted_as_its_own_time() {
        let scan = || vec![time("time_elapsed_scanning_total", 950), time(DECODING, 30), Metric::ElapseTime(20 * MS)];
        assert_eq!(told(vec![scan()]), 30);
        let filter = || vec![Metric::OutputRows(7), Metric::ElapseTime(10 * MS), Metric::ElapseTime(15 * MS)];
        assert_eq!(told(vec![scan(), filter()]), 55, "each partition of each operator");
        let writer = vec![time("write_time", 5), time("repart_time", 2), time("fetch_time", 400)];
        assert_eq!(told(vec![writer, scan(), filter()]), 62);
    }

    #[test]
    fn a_task_computes_no_longer_than_it_runs_and_all_the_time_where_nothing_is_told() {
        assert_eq!(told(vec![vec![Metric::ElapseTime(700 * MS), Metric::ElapseTime(700 * MS)]]), 1_000);
        assert_eq!(told(vec![vec![Metric::ElapseTime(u64::MAX), Metric::ElapseTime(1)], vec![Metric::ElapseTime(1)]]), 1_000);
        assert_eq!((told(Vec::new()), told(vec![Vec::new()])), (1_000, 1_000));
        assert_eq!(told(vec![vec![Metric::ElapseTime(7)]]), 1, "no rate goes to what nothing ever reads");
    }
}
