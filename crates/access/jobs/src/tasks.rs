//! When tasks ran and where, for who looks at them beside the transfers that feed them.

use std::collections::VecDeque;
use std::time::Instant;

use forebay_protocol::TaskState;

use crate::job::{Job, Running, WHOLE};

/// Tasks that are over and still shown.
const OVER_MAX: usize = 1_000;

/// Tasks that are over, the oldest first.
#[derive(Default)]
pub(crate) struct TasksOver {
    tasks: VecDeque<Over>,
    /// All that there were, those counted in that are not shown any more.
    pub(crate) so_far: TasksSoFar,
}

/// Tasks that are over, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TasksSoFar {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    /// Bytes of files that those read which are done.
    pub(crate) bytes: u64,
    /// Of these, what was beside them when they were sent there.
    pub(crate) bytes_local: u64,
}

struct Over {
    job: String,
    stage: usize,
    ended: Instant,
    done: bool,
    of: Running,
}

impl TasksOver {
    /// A task has ended.
    pub(crate) fn note(&mut self, job: &str, stage: usize, of: Running, done: bool) {
        match done {
            true => {
                self.so_far.done += 1;
                self.so_far.bytes += of.bytes;
                self.so_far.bytes_local += of.local_bytes;
            }
            false => self.so_far.failed += 1,
        }
        if self.tasks.len() == OVER_MAX {
            self.tasks.pop_front();
        }
        let TasksSoFar { bytes, bytes_local, .. } = self.so_far;
        assert!(bytes_local <= bytes, "{bytes_local} bytes of {bytes} were beside their tasks");
        self.tasks.push_back(Over { job: job.to_string(), stage, ended: forebay_runtime::now(), done, of });
        assert!(self.tasks.len() <= OVER_MAX, "{} tasks that are over are shown", self.tasks.len());
    }

    /// These and then those that run, as people see them.
    pub(crate) fn shown<'a>(&'a self, running: impl Iterator<Item = (&'a String, &'a Job)>) -> Vec<TaskState> {
        let over = self.tasks.iter().map(|over| {
            let state = if over.done { "done" } else { "failed" };
            let took = over.ended.duration_since(over.of.began).as_secs_f64();
            shown(&over.job, over.stage, &over.of, state, (took, over.ended.elapsed().as_secs_f64()))
        });
        let mut now: Vec<_> =
            running.flat_map(|(id, job)| job.running.iter().map(move |(key, of)| (of.began, id, key.0, of))).collect();
        now.sort_by_key(|(began, id, stage, of)| (*began, *id, *stage, of.task));
        let now = now.into_iter().flat_map(|(began, id, stage, of)| {
            let first = shown(id, stage, of, "running", (began.elapsed().as_secs_f64(), 0.0));
            let copy = of.copy.as_ref().map(|copy| TaskState {
                worker: copy.worker.to_string(),
                bytes_local: 0,
                ..shown(id, stage, of, "copy", (copy.began.elapsed().as_secs_f64(), 0.0))
            });
            std::iter::once(first).chain(copy)
        });
        over.chain(now).collect()
    }
}

fn shown(job: &str, stage: usize, of: &Running, state: &str, (seconds, ended): (f64, f64)) -> TaskState {
    TaskState {
        job: job.to_string(),
        stage: stage as u64,
        partition: (of.task != WHOLE).then_some(of.task),
        state: state.to_string(),
        worker: of.worker.to_string(),
        bytes: of.bytes,
        bytes_local: of.local_bytes,
        seconds,
        ended_seconds_ago: ended,
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::WorkerId;

    use super::*;

    fn running(task: u32, worker: u64) -> Running {
        let (reads, executor) = (Vec::new(), "e".to_string());
        Running {
            attempt: 0,
            task,
            bytes: 100,
            local_bytes: 60,
            reads,
            worker: WorkerId(worker),
            executor,
            began: forebay_runtime::now(),
            copy: None,
        }
    }

    #[test]
    fn tasks_that_are_over_are_shown_with_where_and_how_long_ago() {
        let mut over = TasksOver::default();
        over.note("a", 2, running(3, 7), true);
        over.note("a", 2, running(WHOLE, 8), false);
        let shown = over.shown(std::iter::empty());
        assert_eq!(
            (shown[0].job.as_str(), shown[0].stage, shown[0].partition, shown[0].state.as_str()),
            ("a", 2, Some(3), "done")
        );
        assert_eq!((shown[0].bytes, shown[0].bytes_local, &shown[0].worker), (100, 60, &WorkerId(7).to_string()));
        assert_eq!((shown[1].partition, shown[1].state.as_str()), (None, "failed"));
        assert!(shown.iter().all(|task| (0.0..60.0).contains(&task.seconds) && (0.0..60.0).contains(&task.ended_seconds_ago)));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut over = TasksOver::default();
        (0..OVER_MAX as u32 + 5).for_each(|task| over.note("a", 1, running(task, 1), true));
        let shown = over.shown(std::iter::empty());
        assert_eq!((shown.len(), shown[0].partition), (OVER_MAX, Some(5)));
        over.note("a", 1, running(0, 1), false);
        let done = OVER_MAX as u64 + 5;
        let so_far = TasksSoFar { done, failed: 1, bytes: done * 100, bytes_local: done * 60 };
        assert_eq!(over.so_far, so_far, "and counted all the same");
    }
}
