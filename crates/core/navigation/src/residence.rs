//! Whether a shard that is asked is brought to a worker, or answered from afar by ranges of its cold file.
//!
//! Who asks rarely is answered from afar as long as that has cost less than bringing the shard would. So a worker spends at most about
//! twice what it would have spent had it known what comes, and what nobody asks again takes no disk.

/// What a request to shared storage costs, in bytes that could have come meanwhile.
const REQUEST_BYTES: f64 = 262_144.0;
/// Beside what it brings, an answer from afar takes time of the processor: a block is unpacked for one record.
const ANSWER_BYTES: f64 = 4_096.0;
/// After so many seconds half of a cost is forgotten.
const HALF_LIFE_SECS: f64 = 600.0;
/// What a get, and an equality, bring when nothing of them is in the tiers: requests, and bytes.
const GET: (f64, f64) = (1.0, 32_768.0);
const EQUALITY: (f64, f64) = (2.0, 8_192.0);

/// What answers from afar have cost of late, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FarCost {
    bytes: f64,
    /// When that was, in seconds from whenever.
    at_secs: f64,
}

/// What becomes of a shard that is not here and is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// It is answered from afar.
    Far,
    /// The same, and it is brought meanwhile.
    FarUntilBrought,
    /// It is brought first: that costs less than the answers.
    Brought,
}

impl FarCost {
    /// What is left of it by now.
    pub fn at(self, now_secs: f64) -> f64 {
        self.bytes * (-(now_secs - self.at_secs).max(0.0) / HALF_LIFE_SECS).exp2()
    }

    /// With answers that took so many requests and bytes.
    pub fn with(self, now_secs: f64, answers: u64, requests: u64, bytes: u64) -> Self {
        let cost = answers as f64 * ANSWER_BYTES + requests as f64 * REQUEST_BYTES + bytes as f64;
        Self { bytes: self.at(now_secs) + cost, at_secs: now_secs }
    }
}

/// Where the next gets and equalities of a shard of `shard_bytes` are answered, by what answers from afar have cost until now. One that is larger than
/// all the room that there is for shards can't be brought, whatever they cost.
pub fn residence(cost_bytes: f64, gets: u64, equalities: u64, shard_bytes: u64, room_bytes: u64) -> Residence {
    let of = |count: u64, (requests, bytes): (f64, f64)| count as f64 * (requests * REQUEST_BYTES + bytes + ANSWER_BYTES);
    let next = of(gets, GET) + of(equalities, EQUALITY);
    let whole = shard_bytes as f64 + REQUEST_BYTES;
    debug_assert!(cost_bytes >= 0.0 && next >= 0.0, "costs are costs");
    if shard_bytes > room_bytes {
        Residence::Far
    } else if next >= whole {
        Residence::Brought
    } else if cost_bytes + next >= whole {
        Residence::FarUntilBrought
    } else {
        Residence::Far
    }
}
