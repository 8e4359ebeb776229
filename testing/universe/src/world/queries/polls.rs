//! What a scheduler does with an executor's question: the steps of `access/jobs` that `scheduler/gate` and `scheduler/policy` of
//! `access/distributed` take around Ballista.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;

use forebay_jobs::{Question, TakenIn, TaskName, held};
use forebay_oracle::Rule;

use super::graph::Next;
use super::says::{Poll, Told, Work};
use super::scheduler::{Jobs, LOOK, Serving, end};

/// An executor that says so often, one time after the other, that it has nothing to do has no task. It is enough to say it twice: so long the word
/// of what has just ended may be on its way.
const IDLE_MAX: u32 = 10;

impl Serving {
    /// Takes in what an executor says, and gives it tasks; one that has nothing to do waits for some.
    pub(super) async fn poll(self: &Arc<Self>, poll: Poll) -> Work {
        let is_held = self.note(&poll);
        let news = Arc::clone(&self.books.lock().news);
        let ask = || ready(Ok::<Work, Infallible>(self.work(&poll)));
        let Ok(work) = held(&news, is_held, LOOK, ask, Work::is_empty).await;
        work
    }

    /// Notes what an executor says; whether its question may be held.
    fn note(&self, poll: &Poll) -> bool {
        let view = self.client.view();
        let (executor, slots, free) = (poll.executor.as_str(), poll.slots, poll.free);
        let question = Question { executor, slots, free, workers: &view.workers };
        let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
        let told = poll.told.iter().map(|told| (told.word.name.job.clone(), told));
        let TakenIn { heard, waits } = books.takes_in(&question, told, |told: &&Told| told.word.clone());
        for (told, heard) in heard {
            let job = &told.word.name.job;
            let Some(graph) = jobs.graphs.get_mut(job) else { continue };
            match graph.hears(told.clone(), heard) {
                Next::GoesOn => {}
                Next::Wrong(what) => self.wrong(what),
                Next::Over(ended) => end(&mut jobs, &mut books, job, ended),
            }
        }
        for name in waits {
            if let Some(graph) = jobs.graphs.get_mut(&name.job) {
                graph.waits_again(&name);
            }
        }
        if let Some(name) = jobs.waits_for(executor, free >= slots) {
            let what = format!("{executor} has nothing to do, as it said {IDLE_MAX} times, and {name:?} is taken to run there");
            self.course.wrong(Rule::Recovers, what);
        }
        books.may_be_held(&question)
    }

    /// Tasks for the free slots of an executor, then copies of late ones.
    fn work(self: &Arc<Self>, poll: &Poll) -> Work {
        self.look();
        let (mut work, mut bring) = (Work::default(), Vec::new());
        let id = poll.executor.as_str();
        {
            let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
            let Jobs { graphs, ends, .. } = &mut *jobs;
            while work.tasks.len() < poll.free as usize {
                let Some(chosen) = books.choose(id) else { break };
                let bound = graphs.get_mut(&chosen.job).and_then(|graph| {
                    let before = graph.mark();
                    Some((graph.bind(&chosen, id)?, before, graph.mark()))
                });
                match bound {
                    Some((order, before, after)) => {
                        books.begins(&chosen, (order.name.attempt, order.name.task), (before, after));
                        bring.extend_from_slice(&chosen.bring);
                        work.tasks.push(order);
                    }
                    None => books.is_gone(&chosen),
                }
            }
            while work.tasks.len() < poll.free as usize {
                let Some(name) = books.choose_late(id) else { break };
                let Some(order) = graphs.get(&name.job).and_then(|graph| graph.again(&name)) else { continue };
                if books.begins_copy(&name, id) {
                    self.course.queries.count("copies", 1);
                    work.tasks.push(order);
                }
            }
            work.ends = ends.remove(id).unwrap_or_default();
        }
        self.carrier.bring(&bring);
        self.carrier.go();
        work
    }
}

impl Jobs {
    /// A task that the engine takes to run on an executor that has said again and again that it has nothing to do: nobody runs it, and nobody would
    /// ever know.
    fn waits_for(&mut self, executor: &str, is_idle: bool) -> Option<TaskName> {
        let before = self.idle.remove(executor).unwrap_or_default();
        if !is_idle {
            return None;
        }
        let running = self.graphs.values().flat_map(|graph| graph.running());
        let here = running.filter(|(on, _)| on == executor);
        let counted = here.map(|(_, name)| {
            let times = before.get(&name).map_or(1, |times| times + 1);
            (name, times)
        });
        let counted: BTreeMap<TaskName, u32> = counted.collect();
        let found = counted.iter().find(|(_, times)| **times == IDLE_MAX).map(|(name, _)| name.clone());
        self.idle.insert(executor.to_owned(), counted);
        found
    }
}

#[cfg(test)]
mod tests {
    use forebay_jobs::Ticket;
    use forebay_types::{Key, MountId, ObjectVersion, OperationId, VersionTag};

    use super::super::graph::Graph;
    use super::super::says::{Piece, Query};
    use super::*;

    #[test]
    fn a_task_is_missed_where_who_should_run_it_says_again_and_again_that_it_has_nothing_to_do() {
        let (key, tag) = (Key::new("a").unwrap(), VersionTag::etag("\"1\""));
        let version = ObjectVersion { mount: MountId(1), key, tag, size: 100 };
        let pieces = vec![Piece { key: 1, version, start: 0, len: 50 }];
        let mut graph = Graph::new("j".to_owned(), Query { ticket: Ticket::silent(OperationId(1)), pieces, stages: vec![1] });
        let name = graph.give("e");
        let mut jobs = Jobs::default();
        jobs.graphs.insert("j".to_owned(), graph);
        let ask = |jobs: &mut Jobs, executor: &str, times: u32| (0..times).find_map(|_| jobs.waits_for(executor, true));
        assert_eq!(ask(&mut jobs, "e", IDLE_MAX - 1), None);
        assert_eq!(jobs.waits_for("e", false), None, "it has something to do");
        assert_eq!((ask(&mut jobs, "e", IDLE_MAX - 1), ask(&mut jobs, "f", IDLE_MAX)), (None, None));
        assert_eq!(jobs.waits_for("e", true), Some(name));
        assert_eq!(ask(&mut jobs, "e", 3 * IDLE_MAX), None, "it is told once");
    }
}
