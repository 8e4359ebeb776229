//! What a scheduler does with an executor's question, as `scheduler/gate` and `scheduler/policy` of `access/distributed` do around Ballista.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use forebay_jobs::{RUN_AGAIN, Sender, worker_of};
use forebay_runtime::time::timeout;

use super::graph::{Graph, Next};
use super::says::{Ended, Poll, Told, Work};
use super::scheduler::{Jobs, LOOK, Serving, end};

/// The share of a worker's DRAM tier that may be filled ahead of tasks.
const ROOM: (u64, u64) = (3, 4);
/// So long a question of an executor that has nothing to do is held.
const HELD: Duration = Duration::from_millis(500);

impl Serving {
    /// Takes in what an executor says, and gives it tasks; one that has nothing to do waits for some.
    pub(super) async fn poll(self: &Arc<Self>, mut poll: Poll) -> Work {
        let told = std::mem::take(&mut poll.told);
        self.note(&poll, told);
        let rests = poll.free > 0 && poll.free >= poll.slots && self.books.lock().rests(&poll.executor);
        let until = forebay_runtime::now() + HELD;
        let news = Arc::clone(&self.books.lock().news);
        loop {
            // From before it is looked what there is.
            let mut told = pin!(news.notified());
            told.as_mut().enable();
            let work = self.work(&poll);
            let has_nothing = work.tasks.is_empty() && work.ends.is_empty() && forebay_runtime::now() < until;
            if !has_nothing || !rests {
                return work;
            }
            // Who hangs up meanwhile is given nothing.
            let _ = timeout(LOOK, told).await;
        }
    }

    fn note(&self, poll: &Poll, told: Vec<Told>) {
        let (id, view) = (poll.executor.as_str(), self.client.view());
        let worker = worker_of(id).and_then(|id| view.workers.iter().find(|worker| worker.id == id));
        let room = worker.map(|worker| worker.dram_bytes / ROOM.1 * ROOM.0);
        let (mut jobs, mut books) = (self.jobs.lock(), self.books.lock());
        books.decide("a question", Sender::Executor(id), |books| books.executor_asks(id, poll.slots, room));
        for told in told {
            let job = told.word.name.job.clone();
            let heard = books.decide("the end of a task", Sender::Job(&job), |books| books.hears(id, &told.word));
            let Some(heard) = heard.flatten() else { continue };
            let Some(graph) = jobs.graphs.get_mut(&job) else { continue };
            match graph.hears(told, heard) {
                Next::GoesOn => {}
                Next::Wrong(what) => self.wrong(what),
                Next::Over(Ended::Done(_)) if books.attempts.lacks_results(&job, None, graph.rows()) => {
                    end(&mut jobs, &mut books, &job, Ended::Failed(RUN_AGAIN.to_owned()));
                }
                Next::Over(ended) => end(&mut jobs, &mut books, &job, ended),
            }
        }
        let is_idle = poll.free >= poll.slots;
        let lost = books.decide("what is lost", Sender::Executor(id), |books| books.hears_nothing(id, is_idle));
        for name in lost.unwrap_or_default() {
            if let Some(graph) = jobs.graphs.get_mut(&name.job) {
                graph.waits_again(&name);
            }
        }
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
                let of = Sender::Job(&chosen.job);
                let bind = |graph: &mut Graph| {
                    let before = graph.mark();
                    Some((graph.bind(&chosen, id)?, before, graph.mark()))
                };
                match graphs.get_mut(&chosen.job).and_then(bind) {
                    Some((order, before, after)) => {
                        let (attempt, task) = (order.name.attempt, order.name.task);
                        books.decide("a task that begins", of, |books| {
                            books.began(&chosen, attempt, task);
                            books.comes_on(&chosen.job, chosen.stage, before, after);
                        });
                        bring.extend_from_slice(&chosen.bring);
                        work.tasks.push(order);
                    }
                    None => {
                        books.decide("a task that is gone", of, |books| books.not_there(&chosen));
                    }
                }
            }
            while work.tasks.len() < poll.free as usize {
                let Some(name) = books.choose_late(id) else { break };
                let Some(order) = graphs.get(&name.job).and_then(|graph| graph.again(&name)) else { continue };
                let begins = books.decide("a copy that begins", Sender::Job(&name.job), |books| books.copy_begins(&name, id));
                if begins == Some(true) {
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
