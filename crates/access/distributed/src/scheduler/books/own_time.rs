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
pub(in crate::scheduler) fn computed_for(status: &TaskStatus) -> Duration {
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
    use std::sync::Arc;

    use ballista_core::serde::protobuf::{NamedTime, OperatorMetric};
    use forebay_scheduling::{BlockRange, ScheduleSettings, TaskInput};
    use forebay_types::{MountId, OperationId, PageRun, SegmentId};

    use super::super::{Books, Ended};
    use super::*;
    use crate::scheduler::job::Cut;
    use crate::travel::Ticket;

    const MS: u64 = 1_000_000;
    const EXECUTOR: &str = "0000000000000007-0000000000000001";

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

    /// What a task of an unknown kind is taken to read in a second.
    fn input(segment: u128) -> TaskInput {
        let range = BlockRange { segment: SegmentId(segment), pages: PageRun::new(0, 16_384) };
        TaskInput { range, storage: MountId(1), holders: Vec::new(), routed: Vec::new() }
    }

    #[test]
    fn what_is_brought_ahead_of_a_job_went_by_a_rate_from_before_its_first_task() {
        let settings = ScheduleSettings { look_ahead_secs: 1.0, in_flight_bytes: 4 << 30, ..ScheduleSettings::default() };
        let mut books = Books::new(settings);
        books.executor_asks(EXECUTOR, 1, Some(8 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        let inputs = (1..=9).map(|segment| vec![input(segment)]).collect();
        books.stage_begins("j", 1, 0, Cut::Each, "kind".to_string(), Some(Arc::new(inputs)));
        books.waiting("j", 1, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let first = books.schedule.transfers();
        assert!((1..=2).contains(&first.len()), "{first:?}");
        first.iter().for_each(|transfer| books.schedule.arrived(transfer.range, transfer.to));
        let chosen = books.choose(EXECUTOR).expect("a task whose input is there");
        books.began(&chosen, 0, 0);
        let took = Duration::from_millis(100);
        books.ended(&Ended { job: "j", stage: 1, attempt: 0, task: 0, done: true, took, bytes_passed: 0 });
        let then = books.schedule.transfers();
        assert!(then.len() > 4, "it reads ten times as fast: {then:?}");
    }
}
