//! A worker as a queue that is served in order, so that an answer's time is known when its question arrives.

use std::collections::VecDeque;

use forebay_placement::Load;

use crate::workload::Micros;

/// What a worker has of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Has {
    Nothing,
    /// From that time on; until then what asks for it waits.
    Loading(Micros),
    All,
}

/// An access that isn't answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) done: Micros,
    /// Who asked; none: another worker.
    pub(crate) client: Option<u32>,
}

/// One server with a queue. Since service is first in, first out and its length is known, an access's end is known when
/// it arrives; the queue itself is kept for those who ask how long it is.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) has: Vec<Has>,
    pub(crate) replicas: usize,
    pub(crate) queue: VecDeque<Waiting>,
    pub(crate) free_at: Micros,
    pub(crate) link_free_at: Micros,
    /// What it is to ask others for, next.
    pub(crate) ordered: VecDeque<Load>,
    /// Segments that others are sending it, as it was told to have them.
    pub(crate) copying: Vec<u32>,
    pub(crate) busy: Micros,
    /// Work and service time since the last plan, which is what a worker reports.
    pub(crate) served_work: f64,
    pub(crate) served_time: Micros,
}

impl Worker {
    pub(crate) fn new(segments: usize) -> Self {
        Self { has: vec![Has::Nothing; segments], ..Self::default() }
    }

    /// Puts an access of so much work, which takes `service`, at the end of the queue; when it will be answered.
    pub(crate) fn accept(&mut self, now: Micros, work: f64, service: Micros, client: Option<u32>) -> Micros {
        let done = self.free_at.max(now) + service;
        self.free_at = done;
        self.busy += service;
        self.served_work += work;
        self.served_time += service;
        self.queue.push_back(Waiting { done, client });
        done
    }

    /// Starts to load a segment, which will be there at `ready`.
    pub(crate) fn load(&mut self, ready: Micros, segment: u32) {
        self.has[segment as usize] = Has::Loading(ready);
        self.replicas += 1;
    }

    pub(crate) fn drop_replica(&mut self, segment: u32) {
        self.has[segment as usize] = Has::Nothing;
        self.replicas -= 1;
    }
}
