//! Queues, clients and time; what happens next is the earliest event.

mod loss;

use forebay_navigation::{Plan, Replica, Snapshot, plan};

use self::loss::Mending;
use super::arrivals::Arrivals;
use super::client::Client;
use super::outcome::{Record, ShardMove};
use super::replica::Queue;
use super::setup::Setup;
use crate::events::Events;
use crate::random::Random;
use crate::workload::Micros;

/// What happens, in the order of time and, at one time, of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes { shard: usize },
    Answered { replica: usize, generation: u32 },
    Built { replica: usize },
    Plans { worker: usize },
    Lost,
    Copied,
    Empties,
    Samples,
}

pub(super) struct Engine<'a> {
    setup: &'a Setup,
    now: Micros,
    events: Events<Event>,
    arrivals: Arrivals<'a>,
    random: Random,
    queues: Vec<Queue>,
    /// The replicas of each shard.
    of_shard: Vec<Vec<usize>>,
    clients: Vec<Client>,
    plans: Vec<Plan>,
    mending: Mending,
    record: Record,
}

impl<'a> Engine<'a> {
    pub(super) fn new(setup: &'a Setup) -> Self {
        let mut of_shard = vec![Vec::new(); setup.load.phases[0].per_sec.len()];
        setup.places.iter().enumerate().for_each(|(at, place)| of_shard[place.shard].push(at));
        let mut engine = Self {
            setup,
            now: 0,
            events: Events::new(),
            arrivals: Arrivals::new(&setup.load, setup.seed),
            random: Random::new(setup.seed, 2),
            queues: setup.places.iter().map(|place| Queue::new(*place)).collect(),
            of_shard,
            clients: (0..setup.clients).map(|_| Client::new(setup.places.len())).collect(),
            plans: vec![Plan::default(); setup.room_bytes.len()],
            mending: Mending::default(),
            record: Record::default(),
        };
        engine.begin();
        engine
    }

    fn begin(&mut self) {
        let workers = self.plans.len();
        if self.setup.navigates {
            // Workers don't plan at the same moment: they know nothing of each other.
            let period = self.setup.settings.period_secs;
            (0..workers).for_each(|worker| self.after(period * (1.0 + worker as f64 / workers as f64), Event::Plans { worker }));
        }
        if let Some(loss) = &self.setup.loss {
            self.after(loss.secs, Event::Lost);
        }
        self.after(self.setup.count_from_secs, Event::Empties);
        self.after(0.0, Event::Samples);
        self.look_out();
    }

    pub(super) fn run(mut self) -> (Vec<Queue>, Record) {
        let end = (self.setup.end_secs * 1e6) as Micros;
        while let Some((time, event)) = self.events.pop()
            && time <= end
        {
            self.now = time;
            match event {
                Event::Comes { shard } => self.comes(shard),
                Event::Answered { replica, generation } => self.answered(replica, generation),
                Event::Built { replica } => self.queues[replica].built(),
                Event::Plans { worker } => self.plans(worker),
                Event::Lost | Event::Copied => self.mends(event),
                Event::Empties => self.empties(),
                Event::Samples => self.samples(),
            }
        }
        (self.queues, self.record)
    }

    fn after(&mut self, secs: f64, event: Event) {
        let time = self.now + (secs * 1e6) as Micros;
        self.events.push(time, event);
    }

    fn look_out(&mut self) {
        if let Some((time, shard)) = self.arrivals.next() {
            self.events.push(time, Event::Comes { shard });
        }
    }

    fn comes(&mut self, shard: usize) {
        let client = self.random.below(self.clients.len()) as u32;
        self.record.offered += 1;
        let waiting: u64 = self.of_shard[shard].iter().map(|at| self.queues[*at].waiting.len() as u64).sum();
        if waiting < self.setup.waiting_max {
            self.send(client, shard);
        }
        self.look_out();
    }

    /// A client asks one of the shard's replicas.
    fn send(&mut self, client: u32, shard: usize) {
        let chance = self.random.next();
        let replica = self.clients[client as usize].ask(self.setup.routing, &self.of_shard[shard], chance);
        if self.queues[replica].push(client) {
            self.answer(replica);
        }
    }

    fn mends(&mut self, event: Event) {
        let Some(loss) = &self.setup.loss else { return };
        if event == Event::Lost { self.loses(loss) } else { self.copied(loss) }
    }

    /// The replicas of a worker, by shard.
    fn own(&self, worker: usize) -> Vec<usize> {
        let is_own = |at: &usize| self.queues[*at].is_alive && self.queues[*at].place.worker == worker;
        let mut own: Vec<usize> = (0..self.queues.len()).filter(is_own).collect();
        own.sort_by_key(|at| self.queues[*at].place.shard);
        own
    }

    /// The first of a queue is being answered, for a time around the mean.
    fn answer(&mut self, replica: usize) {
        let queue = &self.queues[replica];
        let (mean, generation) = (queue.service_us(&self.setup.curve), queue.generation);
        let time = self.random.exponential(mean).max(1.0) as Micros;
        self.events.push(self.now + time, Event::Answered { replica, generation });
    }

    fn answered(&mut self, replica: usize, generation: u32) {
        let queue = &mut self.queues[replica];
        if queue.generation != generation {
            return;
        }
        let Some(client) = queue.waiting.pop_front() else { return };
        queue.answered += 1;
        self.record.answered += 1;
        let (left, service_us) = (queue.waiting.len() as u32, queue.service_us(&self.setup.curve));
        self.clients[client as usize].answered(replica, left, service_us);
        if left > 0 {
            self.answer(replica);
        }
    }

    /// A worker decides by what it sees of its own replicas.
    fn plans(&mut self, worker: usize) {
        if self.mending.is_lost(worker) {
            return;
        }
        let own = self.own(worker);
        let replicas: Vec<Replica<'_>> = own.iter().map(|at| self.queues[*at].seen(&self.setup.curve)).collect();
        let snapshot =
            Snapshot { replicas: &replicas, room_bytes: self.setup.room_bytes[worker] - self.mending.reserved(worker) };
        let plan = plan(&self.setup.settings, &snapshot, &self.plans[worker]).expect("the model's workers can be");
        for (at, decision) in own.into_iter().zip(&plan.decisions) {
            if decision.moves() {
                self.record.moves.push(ShardMove::of(self.now as f64 / 1e6, worker, decision));
            }
            if self.queues[at].follow(decision) {
                self.after(self.setup.build_secs, Event::Built { replica: at });
            }
        }
        self.plans[worker] = plan;
        self.after(self.setup.settings.period_secs, Event::Plans { worker });
    }

    fn empties(&mut self) {
        self.queues.iter_mut().for_each(Queue::empty);
        self.clients.iter_mut().for_each(Client::forget_own);
    }

    fn samples(&mut self) {
        let secs = self.now as f64 / 1e6;
        self.record.sample(secs, self.setup, &self.queues);
        self.after(self.setup.sample_secs, Event::Samples);
    }
}
