//! What a client knows of the replicas, and how it chooses.

use forebay_navigation::{Candidate, choose, join_shortest};

use super::setup::ShardRouting;

/// A replica that was never asked.
const UNKNOWN: Candidate = Candidate { own: 0, told: 0, service_us: 0.0 };

/// A client: a candidate for each replica of the cluster, as its answers told.
pub(super) struct Client {
    seen: Vec<Candidate>,
}

impl Client {
    pub(super) fn new(replicas: usize) -> Self {
        Self { seen: vec![UNKNOWN; replicas] }
    }

    /// Which of `replicas` a request goes to.
    pub(super) fn ask(&mut self, routing: ShardRouting, replicas: &[usize], chance: u64) -> usize {
        let candidates: Vec<Candidate> = replicas.iter().map(|replica| self.seen[*replica]).collect();
        let chosen = match routing {
            ShardRouting::TwoChoices => choose(&candidates, chance),
            ShardRouting::JoinShortest => join_shortest(&candidates, chance),
        };
        let replica = replicas[chosen.expect("a shard has a replica")];
        self.seen[replica].own += 1;
        replica
    }

    /// An answer came, and told how many requests wait there and how long one takes.
    pub(super) fn answered(&mut self, replica: usize, queue: u32, service_us: f64) {
        let seen = &mut self.seen[replica];
        seen.own = seen.own.saturating_sub(1);
        (seen.told, seen.service_us) = (queue.saturating_sub(seen.own), service_us);
    }

    /// There is one replica more.
    pub(super) fn hears_of_another(&mut self) {
        self.seen.push(UNKNOWN);
    }

    /// Its requests were dropped.
    pub(super) fn forget_own(&mut self) {
        self.seen.iter_mut().for_each(|seen| (seen.own, seen.told) = (0, 0));
    }
}
