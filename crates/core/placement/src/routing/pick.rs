//! How a client picks one of a segment's replicas.

/// A replica that a client could ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its part of the segment's accesses, in any unit: the routing table's.
    pub weight: u32,
    /// Requests that are expected in its worker's queue, in any unit that is the same for all, as by
    /// [`QueueView`](crate::QueueView); none: nothing is known of late.
    pub queue: Option<u32>,
}

/// How a client picks one of a segment's replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// The shorter queue of two that are drawn by weight: the default.
    #[default]
    TwoChoices,
    /// By weight alone, as the paper's table says (Getafix, section 3.4).
    Table,
    /// Any, as Scarlett and Druid do.
    Random,
    /// The shortest queue of all.
    ShortestQueue,
}

/// Which of `candidates` to ask, by a random number; none when there are none.
///
/// Two choices draw a second, other replica by weight and take the one with the shorter queue, so that a slow worker
/// loses traffic as soon as its answers say so (M. Mitzenmacher, "The power of two choices in randomized load balancing",
/// 2001). When both are equally long, or nothing is known of the first one drawn, it is asked, so that the table's
/// proportions hold. Of a second one of which nothing is known an empty queue is expected: else who has never heard of
/// either would go on asking one that hangs as long as chance has it.
///
/// ```
/// use forebay_placement::{Candidate, Pick, pick};
/// let slow = Candidate { weight: 80, queue: Some(30) };
/// let fast = Candidate { weight: 20, queue: Some(1) };
/// assert_eq!(pick(Pick::TwoChoices, &[slow, fast], 7), Some(1));
/// ```
pub fn pick(how: Pick, candidates: &[Candidate], random: u64) -> Option<usize> {
    let len = candidates.len();
    if len <= 1 {
        return (len == 1).then_some(0);
    }
    let high = random >> 32;
    Some(match how {
        Pick::Random => scaled(high, len as u64) as usize,
        Pick::Table => drawn(candidates, None, high),
        Pick::TwoChoices => {
            let (first, second) = two_choices(candidates, random)?;
            match candidates[first].queue {
                Some(mine) if candidates[second].queue.unwrap_or(0) < mine => second,
                _ => first,
            }
        }
        Pick::ShortestQueue => {
            // Ties at random: begin anywhere.
            let start = scaled(high, len as u64) as usize;
            let turn = (0..len).map(|step| (start + step) % len);
            turn.min_by_key(|at| candidates[*at].queue.unwrap_or(0)).expect("there are candidates")
        }
    })
}

/// The two that [`Pick::TwoChoices`] draws by the same random number, the first one first; none when there are fewer. Who
/// asks both for their queues before it picks knows more than answers of before can tell.
pub fn two_choices(candidates: &[Candidate], random: u64) -> Option<(usize, usize)> {
    if candidates.len() < 2 {
        return None;
    }
    let first = drawn(candidates, None, random >> 32);
    Some((first, drawn(candidates, Some(first), random & u64::from(u32::MAX))))
}

/// One of `candidates` but `without`, by weight; by chance alone when the others weigh nothing. `random` has 32 bits.
fn drawn(candidates: &[Candidate], without: Option<usize>, random: u64) -> usize {
    let others = || candidates.iter().enumerate().filter(|(at, _)| Some(*at) != without);
    let sum: u64 = others().map(|(_, candidate)| u64::from(candidate.weight)).sum();
    let even = sum == 0;
    let weight = |candidate: &Candidate| if even { 1 } else { u64::from(candidate.weight) };
    let mut at = scaled(random, if even { others().count() as u64 } else { sum });
    let mut last = 0;
    for (place, candidate) in others() {
        last = place;
        let Some(rest) = at.checked_sub(weight(candidate)) else { return place };
        at = rest;
    }
    last
}

/// A number of 32 bits brought to 0..end.
fn scaled(random: u64, end: u64) -> u64 {
    ((u128::from(random) * u128::from(end)) >> 32) as u64
}
