//! What a scheduler's engine knows of a query: its stages, who runs and who has done what of them, and what it makes of what it is told.

use forebay_jobs::{Chosen, Cut, Heard, Mark, Said, TaskName};

use super::says::{Ended, Order, Output, Query, Told};

/// A query that runs. The stages before `at` are done.
pub(super) struct Graph {
    pub(super) id: String,
    pub(super) query: Query,
    stages: Vec<Stage>,
    at: usize,
}

#[derive(Default)]
struct Stage {
    partitions: usize,
    attempt: usize,
    tasks: Vec<Task>,
    pending: Vec<usize>,
    done: Vec<Made>,
}

/// A task of the attempt, by its number.
struct Task {
    partitions: Vec<usize>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Runs(String),
    Done,
    /// Its partitions wait again, and no word of it is heard.
    Reset,
}

/// What a task has made.
struct Made {
    partitions: Vec<usize>,
    rows: u64,
    output: Output,
}

/// What comes of a word.
pub(super) enum Next {
    GoesOn,
    Over(Ended),
    /// What must not be.
    Wrong(String),
}

impl Graph {
    pub(super) fn new(id: String, query: Query) -> Self {
        let counts = std::iter::once(query.pieces.len()).chain(query.stages.iter().copied());
        let stages = counts.map(|partitions| Stage { partitions, ..Stage::default() }).collect();
        let mut graph = Self { id, query, stages, at: 0 };
        graph.begin();
        graph
    }

    fn begin(&mut self) {
        let stage = &mut self.stages[self.at];
        stage.tasks.clear();
        stage.done.clear();
        stage.pending = (0..stage.partitions).collect();
    }

    /// The stage that runs, and its attempt.
    pub(super) fn now(&self) -> (usize, usize) {
        (self.at + 1, self.stages[self.at].attempt)
    }

    pub(super) fn partitions(&self) -> usize {
        self.stages[self.at].partitions
    }

    pub(super) fn pending(&self) -> &[usize] {
        &self.stages[self.at].pending
    }

    /// How far the stage has come that runs.
    pub(super) fn mark(&self) -> Mark {
        let stage = &self.stages[self.at];
        Mark { attempt: stage.attempt, begun: stage.tasks.len(), waiting: stage.pending.len() }
    }

    fn is_last(&self) -> bool {
        self.at + 1 == self.stages.len()
    }

    /// Stages of which others read nothing yet that could be lost for good.
    pub(super) fn passing_on(&self) -> Vec<usize> {
        if self.is_last() { Vec::new() } else { vec![self.at + 1] }
    }

    /// Which partitions of the stage are one task.
    pub(super) fn cut(&self) -> Cut {
        let partitions = self.partitions() as u32;
        match self.at {
            0 => Cut::Each,
            _ if self.is_last() => Cut::Whole,
            // Two and two.
            _ => Cut::Runs((0..partitions).map(|partition| partition - partition % 2).collect()),
        }
    }

    /// Rows of the last stage.
    pub(super) fn rows(&self) -> u64 {
        self.stages.last().map_or(0, |stage| stage.done.iter().map(|made| made.rows).sum())
    }

    /// Gives what was chosen of what waits to an executor; none where it does not wait any more.
    pub(super) fn bind(&mut self, chosen: &Chosen, executor: &str) -> Option<Order> {
        if chosen.stage != self.at + 1 {
            return None;
        }
        let stage = &mut self.stages[self.at];
        let is_chosen = |partition: &usize| chosen.partitions.as_ref().is_none_or(|wanted| wanted.contains(partition));
        let (mut partitions, left): (Vec<usize>, Vec<usize>) = stage.pending.iter().copied().partition(is_chosen);
        if partitions.is_empty() {
            return None;
        }
        partitions.sort_unstable();
        stage.pending = left;
        stage.tasks.push(Task { partitions, state: State::Runs(executor.to_owned()) });
        let task = stage.tasks.len() - 1;
        Some(Order { places: chosen.places.clone(), ..self.order(task) })
    }

    /// A task once more, for its copy; none when it runs no more.
    pub(super) fn again(&self, name: &TaskName) -> Option<Order> {
        self.runs(name).then(|| self.order(name.task))
    }

    fn order(&self, task: usize) -> Order {
        let stage = &self.stages[self.at];
        let partitions = stage.tasks[task].partitions.clone();
        let (pieces, sources) = match self.at {
            0 => (partitions.iter().map(|place| (*place, self.query.pieces[*place].clone())).collect(), Vec::new()),
            at => (Vec::new(), self.stages[at - 1].done.iter().map(|made| made.output.clone()).collect()),
        };
        Order {
            name: TaskName { job: self.id.clone(), stage: self.at + 1, attempt: stage.attempt, task },
            operation: self.query.ticket.operation,
            pieces,
            places: Vec::new(),
            sources,
            partitions,
            of: stage.partitions,
        }
    }

    fn is_now(&self, name: &TaskName) -> bool {
        (name.stage, name.attempt) == self.now() && name.task < self.stages[self.at].tasks.len()
    }

    fn runs(&self, name: &TaskName) -> bool {
        self.is_now(name) && matches!(self.stages[self.at].tasks[name.task].state, State::Runs(_))
    }

    /// Hears what an executor said of a run, as the books let it. Nothing of earlier attempts, and of what waits again.
    pub(super) fn hears(&mut self, told: Told, heard: Heard) -> Next {
        let name = &told.word.name;
        if heard == Heard::JobRunsAgain {
            return Next::Over(Ended::Failed(format!("{}: {}", forebay_jobs::RUN_AGAIN, told.error)));
        }
        if !self.is_now(name) {
            return Next::GoesOn;
        }
        match (&self.stages[self.at].tasks[name.task].state, &told.word.said) {
            (State::Done, Said::Done(_)) => Next::Wrong(format!("{name:?} counts twice")),
            (State::Done | State::Reset, _) | (_, Said::Goes) => Next::GoesOn,
            (State::Runs(_), Said::Done(done)) => {
                let (task, rows) = (name.task, done.rows);
                self.is_done(task, rows, told.output)
            }
            (State::Runs(_), Said::LostInput) => {
                self.goes_back(told.lost_of.as_deref());
                Next::GoesOn
            }
            (State::Runs(_), _) if heard == Heard::WaitsAgain => {
                self.waits_again(name);
                Next::GoesOn
            }
            (State::Runs(_), _) => Next::Over(Ended::Failed(told.error)),
        }
    }

    fn is_done(&mut self, task: usize, rows: u64, output: Option<Output>) -> Next {
        let is_last = self.is_last();
        let stage = &mut self.stages[self.at];
        let Some(output) = output else { return Next::Wrong(format!("task {task} of {} is done nowhere", self.id)) };
        stage.tasks[task].state = State::Done;
        stage.done.push(Made { partitions: stage.tasks[task].partitions.clone(), rows, output });
        let mut done: Vec<usize> = stage.done.iter().flat_map(|made| made.partitions.iter().copied()).collect();
        done.sort_unstable();
        if !done.is_sorted_by(|one, next| one < next) {
            return Next::Wrong(format!("partitions of {} are done twice: {done:?}", self.id));
        }
        if done.len() < stage.partitions {
            return Next::GoesOn;
        }
        if is_last {
            return Next::Over(Ended::Done(stage.done.iter().map(|made| made.output.clone()).collect()));
        }
        self.at += 1;
        self.begin();
        Next::GoesOn
    }

    /// What the stage reads of an executor is lost: the one before makes that again, and then it runs anew.
    fn goes_back(&mut self, executor: Option<&str>) {
        self.stages[self.at].attempt += 1;
        self.begin();
        let Some(before) = self.at.checked_sub(1) else { return };
        let stage = &mut self.stages[before];
        let is_lost = |made: &mut Made| Some(made.output.executor.as_str()) == executor;
        let lost: Vec<usize> = stage.done.extract_if(.., is_lost).flat_map(|made| made.partitions).collect();
        if lost.is_empty() {
            return;
        }
        stage.attempt += 1;
        stage.tasks.clear();
        stage.pending = lost;
        self.at = before;
    }

    /// Nobody runs a task any more.
    pub(super) fn waits_again(&mut self, name: &TaskName) {
        if self.runs(name) {
            self.reset_task(name.task);
        }
    }

    fn reset_task(&mut self, task: usize) {
        let stage = &mut self.stages[self.at];
        stage.tasks[task].state = State::Reset;
        stage.pending.extend(&stage.tasks[task].partitions);
    }

    /// What an executor runs waits again; with `outputs` what it has done of the stage as well.
    pub(super) fn reset(&mut self, executor: &str, outputs: bool) {
        let stage = &self.stages[self.at];
        let runs = |task: &Task| matches!(&task.state, State::Runs(on) if on == executor);
        let lost: Vec<usize> = (0..stage.tasks.len()).filter(|task| runs(&stage.tasks[*task])).collect();
        lost.into_iter().for_each(|task| self.reset_task(task));
        if !outputs {
            return;
        }
        let stage = &mut self.stages[self.at];
        for made in stage.done.extract_if(.., |made| made.output.executor == executor) {
            // A task of an attempt before is not among those of this one.
            let of_it = |task: &&mut Task| task.state == State::Done && task.partitions == made.partitions;
            if let Some(task) = stage.tasks.iter_mut().find(of_it) {
                task.state = State::Reset;
            }
            stage.pending.extend(made.partitions);
        }
    }

    /// Hears who runs tasks whose copies go on alone.
    pub(super) fn moved(&mut self, moved: &[(TaskName, String)]) {
        for (name, executor) in moved {
            if self.runs(name) {
                self.stages[self.at].tasks[name.task].state = State::Runs(executor.clone());
            }
        }
    }

    /// What runs, and where.
    pub(super) fn running(&self) -> Vec<(String, TaskName)> {
        let (stage, attempt) = self.now();
        let tasks = self.stages[self.at].tasks.iter().enumerate();
        let running = tasks.filter_map(|(task, of)| match &of.state {
            State::Runs(on) => Some((on.clone(), TaskName { job: self.id.clone(), stage, attempt, task })),
            State::Done | State::Reset => None,
        });
        running.collect()
    }
}

#[cfg(test)]
impl Graph {
    /// Gives a task by hand, as [`Graph::bind`] does what the books chose.
    pub(super) fn give(&mut self, executor: &str) -> TaskName {
        let stage = &mut self.stages[self.at];
        let partitions = vec![stage.pending.remove(0)];
        stage.tasks.push(Task { partitions, state: State::Runs(executor.to_owned()) });
        let task = stage.tasks.len() - 1;
        self.order(task).name
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_jobs::{Done, Ticket, Word};
    use forebay_types::{Key, MountId, ObjectVersion, OperationId, VersionTag};

    use super::super::says::Piece;
    use super::*;

    /// Of two stages: two tasks, whose rows the third reads.
    fn graph() -> Graph {
        let (key, tag) = (Key::new("a").unwrap(), VersionTag::etag("\"1\""));
        let version = ObjectVersion { mount: MountId(1), key, tag, size: 100 };
        let piece = Piece { key: 1, version, start: 0, len: 50 };
        let query = Query { ticket: Ticket::silent(OperationId(1)), pieces: vec![piece; 2], stages: vec![1] };
        Graph::new("j".to_owned(), query)
    }

    fn told(name: &TaskName, said: Said, of: &str) -> Told {
        let word = Word { name: name.clone(), took: Duration::ZERO, said };
        let output = Output { executor: of.to_owned(), address: String::new(), file: String::new() };
        Told { word, output: Some(output), lost_of: Some(of.to_owned()), error: "gone".to_owned() }
    }

    fn done(graph: &mut Graph, executor: &str) -> Next {
        let name = graph.give(executor);
        graph.hears(told(&name, Said::Done(Done { rows: 1, ..Done::default() }), executor), Heard::AsSaid)
    }

    #[test]
    fn what_is_lost_between_stages_is_made_again_and_each_partition_is_done_once() {
        let mut graph = graph();
        assert!(matches!(done(&mut graph, "e"), Next::GoesOn) && matches!(done(&mut graph, "f"), Next::GoesOn));
        assert_eq!((graph.now(), graph.pending().len()), ((2, 0), 1));
        let reads = graph.give("f");
        assert_eq!(graph.order(reads.task).sources.len(), 2);
        assert!(matches!(graph.hears(told(&reads, Said::LostInput, "e"), Heard::AsSaid), Next::GoesOn));
        assert_eq!((graph.now(), graph.pending()), ((1, 1), &[0][..]), "what the other one has made is there");
        let late = graph.hears(told(&reads, Said::Done(Done::default()), "f"), Heard::AsSaid);
        assert!(matches!(late, Next::GoesOn), "nothing is heard of the attempt before");
        assert!(matches!(done(&mut graph, "f"), Next::GoesOn));
        assert_eq!(graph.now(), (2, 1));
        assert!(matches!(done(&mut graph, "f"), Next::Over(Ended::Done(outputs)) if outputs.len() == 1));
        assert_eq!(graph.rows(), 1);
    }

    #[test]
    fn a_task_that_counts_twice_is_told() {
        let mut graph = graph();
        let name = graph.give("e");
        let done = || told(&name, Said::Done(Done::default()), "e");
        assert!(matches!(graph.hears(done(), Heard::AsSaid), Next::GoesOn));
        assert!(matches!(graph.hears(done(), Heard::AsSaid), Next::Wrong(_)));
    }

    #[test]
    fn what_an_executor_has_of_a_stage_that_runs_waits_again() {
        for (outputs, waits) in [(false, &[1][..]), (true, &[1, 0][..])] {
            let mut graph = graph();
            assert!(matches!(done(&mut graph, "e"), Next::GoesOn));
            graph.give("e");
            graph.reset("e", outputs);
            assert_eq!(graph.pending(), waits);
            assert!(graph.running().is_empty());
        }
    }
}
