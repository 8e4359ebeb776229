//! How clients choose a worker, with Forebay's own rules and those that it is compared with, and what they know.

use std::rc::Rc;

use forebay_placement::{Pick, QueueView};

use crate::workload::Micros;

/// How a client chooses among the workers that its table names for a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routing {
    /// The rule.
    pub pick: Pick,
    /// What it goes by.
    pub knowledge: Knowledge,
}

/// What a client knows of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// What answers carried, and its own requests that aren't answered.
    Answers,
    /// The same, and where there is a choice the workers are asked first, which takes a round trip. The answer is true when
    /// it is given; what other clients send meanwhile it doesn't tell.
    Asked,
    /// All queues as they are at the moment. No client can have that: it is the most that a baseline could do.
    Perfect,
}

impl Routing {
    /// Forebay's own, for reads that take long enough to be worth a question.
    pub const CLIENT: Self = Self { pick: Pick::TwoChoices, knowledge: Knowledge::Asked };
    /// Forebay's own for short reads: nobody is asked.
    pub const UNASKED: Self = Self { pick: Pick::TwoChoices, knowledge: Knowledge::Answers };
    /// The paper's table (section 3.3).
    pub const TABLE: Self = Self { pick: Pick::Table, knowledge: Knowledge::Answers };
    /// What Druid does.
    pub const RANDOM: Self = Self { pick: Pick::Random, knowledge: Knowledge::Answers };
    /// Join the shortest queue, by perfect knowledge.
    pub const SHORTEST: Self = Self { pick: Pick::ShortestQueue, knowledge: Knowledge::Perfect };
}

/// Which workers a segment is read from, and in what proportion, by the numbers of the simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) version: u64,
    /// By segment: workers and percent; empty where rendezvous hashing decides.
    pub(crate) routes: Vec<Vec<(u32, u32)>>,
}

/// A client: a table and what answers told of the workers.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) table: Rc<Table>,
    pub(crate) polled_at: Micros,
    pub(crate) queues: Vec<QueueView>,
    /// Accesses that have left for a worker and aren't there yet.
    pub(crate) on_the_way: Vec<u32>,
}
