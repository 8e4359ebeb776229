//! A model of what Ballista has in its graph of a job, and of what it makes of what it is told.

use crate::word::{Said, TaskName, Word};

/// A task in a graph of Ballista's, by its number. What it knows of who does it is whose word came last.
pub(super) struct TaskInfo {
    pub(super) partitions: Vec<usize>,
    pub(super) state: State,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    Runs(usize),
    Done(usize),
    /// Its partitions wait again, and no word of it is heard.
    Reset,
}

/// A job in Ballista's books: the stages before `at` are done.
pub(super) struct Graph {
    pub(super) id: String,
    pub(super) plan: &'static [usize],
    pub(super) at: usize,
    pub(super) tasks: Vec<TaskInfo>,
    pub(super) pending: Vec<usize>,
}

impl Graph {
    pub(super) fn new(id: String, plan: &'static [usize]) -> Self {
        let mut graph = Self { id, plan, at: 0, tasks: Vec::new(), pending: Vec::new() };
        graph.begin();
        graph
    }

    fn begin(&mut self) {
        (self.tasks, self.pending) = (Vec::new(), (0..self.plan[self.at]).collect());
    }

    pub(super) fn stage(&self) -> usize {
        self.at + 1
    }

    pub(super) fn is_last(&self) -> bool {
        self.at + 1 == self.plan.len()
    }

    /// An executor says how a task ended, which Ballista takes from whoever says it; nothing of a task that waits again. Whether the job is over, or
    /// what should not be.
    pub(super) fn hears(&mut self, from: usize, word: &Word) -> Result<bool, String> {
        let number = word.name.task;
        if word.name.stage != self.stage() || self.tasks[number].state == State::Reset {
            return Ok(false);
        }
        if let State::Done(by) = self.tasks[number].state {
            return Err(format!("task {number} of {} counts for {by}, and once more for {from}", self.id));
        }
        if !matches!(word.said, Said::Done(_)) {
            self.reset_task(number);
            return Ok(false);
        }
        self.tasks[number].state = State::Done(from);
        let done = self.tasks.iter().filter(|task| matches!(task.state, State::Done(_)));
        let mut done: Vec<usize> = done.flat_map(|task| task.partitions.clone()).collect();
        done.sort_unstable();
        if !done.is_sorted_by(|one, next| one < next) {
            return Err(format!("partitions of {} are done twice: {done:?}", self.id));
        }
        if done.len() < self.plan[self.at] {
            return Ok(false);
        }
        if self.is_last() {
            return Ok(true);
        }
        self.at += 1;
        self.begin();
        Ok(false)
    }

    fn reset_task(&mut self, number: usize) {
        self.tasks[number].state = State::Reset;
        self.pending.extend(self.tasks[number].partitions.clone());
    }

    /// What an executor has of the stage that runs waits again.
    pub(super) fn reset(&mut self, executor: usize) {
        for number in 0..self.tasks.len() {
            if [State::Runs(executor), State::Done(executor)].contains(&self.tasks[number].state) {
                self.reset_task(number);
            }
        }
    }

    /// The same of what it runs. What it has done is there.
    pub(super) fn reset_running(&mut self, executor: usize) {
        for number in 0..self.tasks.len() {
            if self.tasks[number].state == State::Runs(executor) {
                self.reset_task(number);
            }
        }
    }

    /// Hears who runs a task, if it does.
    pub(super) fn runs_on(&mut self, name: &TaskName, executor: usize) {
        if name.stage == self.stage()
            && let State::Runs(on) = &mut self.tasks[name.task].state
        {
            *on = executor;
        }
    }
}
