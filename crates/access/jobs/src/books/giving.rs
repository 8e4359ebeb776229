//! Which task an executor gets, and that it has begun, or was not there.

use std::collections::HashMap;

use forebay_scheduling::{Assignment, BlockRange, Source, Transfer};
use forebay_types::WorkerId;

use super::Books;
use crate::job::{Running, split};
use crate::ticket::Places;
use crate::word::TaskName;

/// Which task of a stage to run where.
pub struct Chosen {
    /// The job.
    pub job: String,
    /// Its stage.
    pub stage: usize,
    /// None for all that wait.
    pub partitions: Option<Vec<usize>>,
    /// Where it reads what.
    pub places: Places,
    /// What to bring as the task begins.
    pub bring: Vec<Transfer>,
    assignment: Assignment,
    worker: WorkerId,
    executor: String,
}

impl Books {
    /// The task that a free slot of an executor gets.
    pub fn choose(&mut self, executor: &str) -> Option<Chosen> {
        let worker = self.executors.get(executor)?.worker;
        let assignment = self.ask("a task for a slot", |schedule| schedule.next_task(worker)).flatten()?;
        let job_id = self.numbers.job(assignment.job)?.clone();
        let job = &self.jobs[&job_id];
        assert_eq!(job.number, assignment.job, "a job is known by its number");
        let (stage, task) = split(assignment.task);
        let known = job.stages.get(&stage);
        let inputs = known.and_then(|known| known.inputs.clone());
        let partitions = known.map_or_else(|| Some(Vec::new()), |known| known.cut.partitions(task));
        let peers: HashMap<BlockRange, WorkerId> = assignment
            .bring
            .iter()
            .filter_map(|transfer| match transfer.from {
                Source::Peer(peer) => Some((transfer.range, peer)),
                Source::Storage => None,
            })
            .collect();
        let of_task = inputs.iter().flat_map(|inputs| match &partitions {
            None => inputs.iter().flatten().collect::<Vec<_>>(),
            Some(partitions) => partitions.iter().filter_map(|partition| inputs.get(*partition)).flatten().collect(),
        });
        let has_worker = self.executors.get(executor).is_some_and(|entry| entry.has_worker());
        let places = of_task
            .filter_map(|input| {
                let at = peers.get(&input.range).copied().or(has_worker.then_some(worker))?;
                Some((input.range.segment, input.range.pages, at))
            })
            .collect();
        let from_storage = |transfer: &&Transfer| transfer.from == Source::Storage;
        let bring = assignment.bring.iter().filter(from_storage).copied().collect();
        Some(Chosen { job: job_id, stage, partitions, places, bring, assignment, worker, executor: executor.to_string() })
    }

    /// The chosen task runs now under the engine's number.
    pub(crate) fn began(&mut self, chosen: &Chosen, attempt: usize, number: usize) {
        let Some(job) = self.jobs.get_mut(&chosen.job) else { return };
        let (stage, task) = split(chosen.assignment.task);
        let running = Running {
            attempt,
            task,
            bytes: chosen.assignment.input_bytes,
            local_bytes: chosen.assignment.local_bytes,
            reads: chosen.bring.iter().map(|transfer| transfer.range).collect(),
            worker: chosen.worker,
            executor: chosen.executor.clone(),
            began: forebay_runtime::now(),
            copy: None,
        };
        let name = TaskName { job: chosen.job.clone(), stage, attempt, task: number };
        // What waited in the engine's books did not run, whatever was said of it: as where an executor is lost, and nobody has looked since.
        let before = job.begun.insert((stage, task), number).filter(|before| *before != number);
        let before = before.map(|before| (stage, before)).filter(|key| job.running.get(key).is_some_and(|run| run.task == task));
        let lost = before.and_then(|key| Some((key, job.running.remove(&key)?)));
        match job.running.insert((stage, number), running) {
            // Of an earlier attempt: the stage has begun again since it was looked at.
            Some(earlier) if earlier.task != task => self.lost(&chosen.job, (stage, number), earlier),
            Some(earlier) => self.gives_up(&chosen.job, (stage, number), earlier),
            None => {}
        }
        if let Some((key, run)) = lost {
            self.gives_up(&chosen.job, key, run);
        }
        self.gives(&chosen.executor, name);
    }

    /// The chosen task does not wait any more in the engine's books.
    pub(crate) fn not_there(&mut self, chosen: &Chosen) {
        self.schedule.finished(chosen.assignment.job, chosen.assignment.task, true);
        for transfer in &chosen.bring {
            self.schedule.failed(transfer.range, transfer.to);
        }
        let (stage, task) = split(chosen.assignment.task);
        if let Some(stage) = self.jobs.get_mut(&chosen.job).and_then(|job| job.stages.get_mut(&stage)) {
            stage.offered.remove(&task);
            stage.mark = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use forebay_scheduling::{ScheduleSettings, TaskInput};
    use forebay_types::{MountId, OperationId, PageRun, SegmentId};

    use super::super::Ended;
    use super::*;
    use crate::job::Cut;
    use crate::ticket::Ticket;

    const EXECUTOR: &str = "0000000000000007-0000000000000001";

    /// What a task of an unknown kind is taken to read in a second.
    fn input(segment: u128) -> TaskInput {
        let range = BlockRange { segment: SegmentId(segment), pages: PageRun::new(0, 16_384) };
        TaskInput { range, storage: MountId(1), holders: Vec::new(), routed: Vec::new() }
    }

    #[test]
    fn a_task_that_is_given_once_more_runs_once() {
        let mut books = Books::new(ScheduleSettings::default());
        let asks = |books: &mut Books| books.executor_asks(EXECUTOR, 1, None);
        asks(&mut books);
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        books.stage_begins("j", 1, 0, Cut::Each, String::new(), Some(Arc::new(vec![Vec::new()])));
        books.waiting("j", 1, &[0]);
        let first = books.choose(EXECUTOR).expect("a task waits");
        books.began(&first, 0, 0);
        // It was silent, and the engine has it wait again, which nobody has looked at.
        assert_eq!(books.forget_silent(Duration::ZERO).len(), 1);
        asks(&mut books);
        let again = books.choose(EXECUTOR).expect("the schedule has taken it back");
        books.began(&again, 0, 1);
        let sums = |books: &Books| {
            let job = &books.jobs["j"];
            (job.running.len(), job.sums.tasks_again, job.sums.tasks_done)
        };
        assert_eq!(sums(&books), (1, 1, 0));
        let took = Duration::from_millis(1);
        for (task, expected) in [(0, (1, 1, 0)), (1, (0, 1, 1))] {
            books.ended(&Ended { job: "j", stage: 1, attempt: 0, task, done: true, took, bytes_passed: 0 });
            assert_eq!(sums(&books), expected, "run {task}");
        }
        assert!(books.choose(EXECUTOR).is_none());
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

    /// All of them run for moments here: what their executor says to have computed is what counts.
    #[test]
    fn each_stage_is_known_to_read_as_fast_as_its_tasks_compute_however_long_they_ran() {
        let mut books = Books::new(ScheduleSettings::default());
        books.executor_asks(EXECUTOR, 1, Some(8 << 30));
        books.job_seen("j", || Ticket::silent(OperationId(1)));
        for (stage, kind, computes_ms) in [(1, "scan", 500), (2, "sort", 125)] {
            let inputs = (1..=4).map(|segment| vec![input(100 * stage as u128 + segment)]).collect();
            books.stage_begins("j", stage, 0, Cut::Each, kind.to_string(), Some(Arc::new(inputs)));
            books.waiting("j", stage, &[0, 1, 2, 3]);
            for task in 0..4 {
                let transfers = books.schedule.transfers();
                transfers.iter().for_each(|transfer| books.schedule.arrived(transfer.range, transfer.to));
                let chosen = books.choose(EXECUTOR).expect("a task whose input is there");
                books.began(&chosen, 0, task);
                let took = Duration::from_millis(computes_ms + task as u64);
                books.ended(&Ended { job: "j", stage, attempt: 0, task, done: true, took, bytes_passed: 0 });
                let right = 64.0 * f64::from(1 << 20) * 1_000.0 / computes_ms as f64;
                let told = books.rates.estimate(kind) as f64;
                assert!((told / right - 1.0).abs() < 0.05, "{kind} after {task}: {told} of {right}");
            }
        }
        assert_eq!(books.rates.estimate("none"), forebay_scheduling::IO_RATE, "of what nobody has run nothing is known");
    }
}
