//! One budget: who saves most time with a byte has it.

mod weighing;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use forebay_types::{Error, Result};

pub use weighing::{Cause, Owned, Room, Weighing, aged, last_bytes, weigh};

/// One step more of something that is kept in steps: a layer of a shard, a replica of a segment, a decoded column, blocks of a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Bytes that it takes beside the steps before it.
    pub bytes: u64,
    /// Seconds of waiting that it saves in each second, as measured: requests a second, times the time that each waits less.
    pub saved: f64,
    /// It is there now: to take it away and make it again is work, and saves nobody anything.
    pub is_held: bool,
}

/// Steps of one thing in their order; a later one is of no use without those before it.
pub type Ladder = Vec<Step>;

/// Who has what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Division {
    /// How many steps of each ladder, from the first on.
    pub steps: Vec<usize>,
    /// Bytes of these.
    pub bytes: u64,
    /// Seconds saved a second with each byte of the best that was left out for want of room, inertia counted in; 0 where nothing was.
    pub missed: f64,
}

/// Ladders at most, and steps of one.
const LADDERS_MAX: usize = 1 << 17;
const STEPS_MAX: usize = 1 << 10;

/// Divides room among ladders so that the time saved is nearly the most: steps in the order of what they save a byte. What is held is
/// worth `inertia` more, as a share: what is hardly better takes nothing from it, so that a division made of the last one does not
/// swing. A step that saves little and is followed by one that saves much counts together with that one.
///
/// Without inertia the time saved differs from the optimum, which takes trying all divisions, by at most what one ladder saves; where
/// steps have one size and save less and less, it is the optimum. O(n log n) for n steps where all fit; each that does not fit costs as
/// many steps again as it counts together.
/// `Invalid`: too many ladders or steps, a step without bytes, a time that is negative or no number.
///
/// ```
/// use forebay_navigation::{Step, divide};
/// let step = |bytes, saved| Step { bytes, saved, is_held: false };
/// let layers = vec![step(50, 0.4), step(50, 0.1)];
/// let blocks = vec![step(50, 0.2), step(50, 0.2)];
/// let division = divide(150, &[layers, blocks], 0.0)?;
/// assert_eq!((division.steps, division.bytes), (vec![1, 2], 150));
/// # Ok::<(), forebay_types::Error>(())
/// ```
pub fn divide(room_bytes: u64, ladders: &[Ladder], inertia: f64) -> Result<Division> {
    validate(ladders, inertia)?;
    let mut division = Division { steps: vec![0; ladders.len()], ..Division::default() };
    let mut climbs: Vec<Climb> = ladders.iter().map(|ladder| Climb::of(ladder, inertia)).collect();
    let mut best: BinaryHeap<(u64, Reverse<usize>)> = BinaryHeap::new();
    let offer = |climb: &Climb, at: usize| climb.rungs.last().map(|rung| (rung.worth().to_bits(), Reverse(at)));
    best.extend(climbs.iter().enumerate().filter_map(|(at, climb)| offer(climb, at)));
    while let Some((worth, Reverse(at))) = best.pop() {
        let climb = &mut climbs[at];
        let Some(rung) = climb.rungs.pop() else { continue };
        if rung.bytes <= room_bytes - division.bytes {
            division.steps[at] += rung.steps;
            division.bytes += rung.bytes;
        } else {
            division.missed = division.missed.max(f64::from_bits(worth));
            // What fits of it is looked at by itself; what comes after it is of no use.
            let from = division.steps[at];
            *climb = Climb::of(&ladders[at][from..from + rung.steps - 1], inertia);
        }
        best.extend(offer(&climbs[at], at));
    }
    assert_postconditions(room_bytes, ladders, &division);
    Ok(division)
}

/// Steps that are taken together.
#[derive(Clone, Copy)]
struct Rung {
    steps: usize,
    bytes: u64,
    /// Seconds saved a second, with what is added for what is held.
    weighed: f64,
}

impl Rung {
    /// Seconds saved a second and byte: above or equal to 0, so that its bits are ordered as it is.
    fn worth(&self) -> f64 {
        self.weighed / self.bytes as f64
    }
}

/// What is left of a ladder, the next rung last; each is worth less than those behind it here.
struct Climb {
    rungs: Vec<Rung>,
}

impl Climb {
    fn of(steps: &[Step], inertia: f64) -> Self {
        let mut rungs: Vec<Rung> = Vec::with_capacity(steps.len());
        for step in steps {
            // Of a zero without its sign: ordered by bits, a negative one would come first.
            let weighed = step.saved.abs() * if step.is_held { 1.0 + inertia } else { 1.0 };
            let mut rung = Rung { steps: 1, bytes: step.bytes, weighed };
            // A step that is worth more than the one below it, which it needs, is taken together with that one.
            while let Some(before) = rungs.pop_if(|before| before.worth() < rung.worth()) {
                rung.steps += before.steps;
                rung.bytes += before.bytes;
                rung.weighed += before.weighed;
            }
            rungs.push(rung);
        }
        rungs.reverse();
        Self { rungs }
    }
}

fn validate(ladders: &[Ladder], inertia: f64) -> Result<()> {
    let is_time = |time: f64| time.is_finite() && time >= 0.0;
    if ladders.len() > LADDERS_MAX || ladders.iter().any(|ladder| ladder.len() > STEPS_MAX) {
        return Err(Error::invalid(format!(
            "room can't be divided among so many: {LADDERS_MAX} ladders of {STEPS_MAX} steps at most"
        )));
    }
    let sound = |step: &Step| step.bytes > 0 && step.bytes <= crate::Curve::BYTES_MAX && is_time(step.saved);
    match is_time(inertia) && ladders.iter().flatten().all(sound) {
        true => Ok(()),
        false => Err(Error::invalid("a step takes bytes, and saves a time that is a number from 0 on; so is the inertia")),
    }
}

/// What those rely on who have their bytes of it.
fn assert_postconditions(room_bytes: u64, ladders: &[Ladder], division: &Division) {
    assert_eq!(division.steps.len(), ladders.len(), "something is said of each ladder");
    let taken = || ladders.iter().zip(&division.steps).map(|(ladder, steps)| &ladder[..*steps]);
    let bytes: u64 = taken().flatten().map(|step| step.bytes).sum();
    assert_eq!(bytes, division.bytes, "the division says what it takes");
    assert!(bytes <= room_bytes, "{bytes} bytes fit into the room of {room_bytes}");
    assert!(division.missed >= 0.0 && division.missed.is_finite(), "what was missed is a time");
}
