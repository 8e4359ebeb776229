//! Which replica of a shard a request goes to.

/// A replica that a request could go to, as the one who asks knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The asker's own requests to it that aren't answered yet.
    pub own: u32,
    /// Requests of others that its last answer told of.
    pub told: u32,
    /// Microseconds that it needs a request, as its last answer told. What is not a number above 0 counts as not known: the
    /// replica is taken for as quick as the quickest, so that it is asked and tells.
    pub service_us: f64,
}

impl Candidate {
    /// Requests before one more.
    fn queue(&self) -> u64 {
        u64::from(self.own) + u64::from(self.told)
    }

    fn known_us(&self) -> Option<f64> {
        Some(self.service_us).filter(|us| us.is_finite() && *us > 0.0)
    }
}

/// Where the request is expected to be answered first, of two that are drawn by how fast they answer; none when there are no
/// candidates.
///
/// The paper joins the shortest queue of all. What is known of queues is old, and all who know the same run to the same
/// replica; of two that are drawn the better one does nearly as well and is never everybody's choice (M. Mitzenmacher, "The
/// power of two choices in randomized load balancing", 2001). Levels differ, so a queue's length is multiplied by the time that
/// a request takes, and a replica is drawn in proportion to what it can answer: drawn evenly, two slow ones of three would be
/// all the choice a third of the time.
///
/// ```
/// use forebay_navigation::{Candidate, choose};
/// let slow = Candidate { own: 0, told: 3, service_us: 900.0 };
/// let quick = Candidate { own: 2, told: 5, service_us: 100.0 };
/// assert_eq!(choose(&[slow, quick], 7), Some(1));
/// ```
pub fn choose(candidates: &[Candidate], chance: u64) -> Option<usize> {
    let speeds = Speeds::of(candidates);
    let first = speeds.draw(None, chance >> 32)?;
    let second = speeds.draw(Some(first), chance & u64::from(u32::MAX)).unwrap_or(first);
    let expected = |at: usize| (candidates[at].queue() + 1) as f64 * speeds.service_us(at);
    let chosen = if expected(second) < expected(first) { second } else { first };
    debug_assert!(chosen < candidates.len(), "one of the candidates is chosen");
    Some(chosen)
}

/// The paper's way: the shortest queue of all, whatever a request takes there; of equal ones any.
pub fn join_shortest(candidates: &[Candidate], chance: u64) -> Option<usize> {
    let len = candidates.len();
    let start = ((u128::from(chance) * len as u128) >> 64) as usize;
    let turn = (0..len).map(|step| (start + step) % len);
    turn.min_by_key(|at| candidates[*at].queue())
}

/// How fast candidates answer, as far as is known.
struct Speeds<'a> {
    candidates: &'a [Candidate],
    quickest_us: f64,
}

impl<'a> Speeds<'a> {
    fn of(candidates: &'a [Candidate]) -> Self {
        let quickest_us = candidates.iter().filter_map(Candidate::known_us).min_by(f64::total_cmp).unwrap_or(1.0);
        Self { candidates, quickest_us }
    }

    fn service_us(&self, at: usize) -> f64 {
        self.candidates[at].known_us().unwrap_or(self.quickest_us)
    }

    /// One but `without`, each in proportion to its speed; `chance` has 32 bits.
    fn draw(&self, without: Option<usize>, chance: u64) -> Option<usize> {
        let others = || (0..self.candidates.len()).filter(|at| Some(*at) != without);
        // Relative to the quickest, so that no sum is past all numbers.
        let speed = |at: usize| self.quickest_us / self.service_us(at);
        let mut at = others().map(speed).sum::<f64>() * chance as f64 / (1u64 << 32) as f64;
        let drawn = others().find(|other| {
            at -= speed(*other);
            at < 0.0
        });
        // What rounding left over is the last one's.
        drawn.or_else(|| others().next_back())
    }
}
