//! Which task an executor gets, and that it has begun, or was not there.

use std::collections::HashMap;

use forebay_scheduling::{Assignment, BlockRange, Source, Transfer};
use forebay_types::WorkerId;

use super::Books;
use crate::scheduler::job::{Running, split};
use crate::travel::Places;

/// Which task of a stage to run where.
pub(in crate::scheduler) struct Chosen {
    pub(in crate::scheduler) job: String,
    pub(in crate::scheduler) stage: usize,
    /// None for all that wait.
    pub(in crate::scheduler) partitions: Option<Vec<usize>>,
    pub(in crate::scheduler) places: Places,
    /// What to bring as the task begins.
    pub(in crate::scheduler) bring: Vec<Transfer>,
    assignment: Assignment,
    worker: WorkerId,
    executor: String,
}

impl Books {
    /// The task that a free slot of an executor gets.
    pub(in crate::scheduler) fn choose(&mut self, executor: &str) -> Option<Chosen> {
        let worker = self.executors.get(executor)?.worker;
        let assignment = self.ask("a task for a slot", |schedule| schedule.next_task(worker)).flatten()?;
        let job_id = self.numbers.get(&assignment.job)?.clone();
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

    /// The chosen task runs now under Ballista's number.
    pub(in crate::scheduler) fn began(&mut self, chosen: &Chosen, attempt: usize, ballista_task: usize) {
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
        if let Some(earlier) = job.running.insert((stage, ballista_task), running) {
            // Of an earlier attempt: the stage has begun again since it was looked at.
            self.lost(&chosen.job, (stage, ballista_task), earlier);
        }
    }

    /// The chosen task does not wait any more in Ballista's books.
    pub(in crate::scheduler) fn not_there(&mut self, chosen: &Chosen) {
        self.schedule.finished(chosen.assignment.job, chosen.assignment.task, true);
        for transfer in &chosen.bring {
            self.schedule.failed(transfer.range, transfer.to);
        }
        let (stage, task) = split(chosen.assignment.task);
        if let Some(stage) = self.jobs.get_mut(&chosen.job).and_then(|job| job.stages.get_mut(&stage)) {
            stage.offered.remove(&task);
        }
    }
}
