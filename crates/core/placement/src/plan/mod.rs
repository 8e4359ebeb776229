//! How many replicas each segment has in the next window, and on which workers.
//!
//! The `problem` is a snapshot of demands, workers and who holds what. [`plan()`] has the order of the phases, each of which works
//! on a `packing`: `fit`, `sticky` or a `baseline` places segments, `repack` and `forest` take back splits, `matching` gives the
//! bags to the workers that hold most of them, `copies` adds what safety asks for. `outcome` is what comes out, and
//! `postconditions` what must hold of it. What plans are for, in which order, stands in this crate's README.md.

mod baseline;
mod bound;
mod budget;
mod copies;
mod crowded;
mod dice;
mod fit;
mod forest;
mod matching;
mod neighbours;
mod outcome;
mod packing;
mod postconditions;
mod problem;
mod repack;
mod sticky;

use crate::plan::baseline::{scarlett, uniform};
use crate::plan::budget::raised;
use crate::plan::copies::add_copies;
use crate::plan::crowded::{crowding, without_crowded};
use crate::plan::fit::{Fit, fit};
use crate::plan::forest::cut_cycles;
use crate::plan::matching::relabel;
use crate::plan::packing::Packing;
use crate::plan::problem::capacities;
use crate::plan::repack::{Price, repack};
use crate::plan::sticky::Sticky;

pub use outcome::{Plan, Reason, Share, Unsatisfied};
pub use packing::Piece;
pub use problem::{Concurrency, Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom};

/// Moves for less crowding must reduce it by one part in so many.
const WORTH_PART: u128 = 100;

/// Plans replicas, their workers and routing: a function of its arguments alone.
///
/// ```
/// use forebay_placement::{Holdings, PlanSettings, Policy, SegmentDemand, Snapshot, WorkerRoom, plan};
///
/// let segments = [3, 3, 2, 2, 2, 2].map(|count| SegmentDemand { count, ..SegmentDemand::default() });
/// let snapshot = Snapshot { segments: &segments, workers: &WorkerRoom::equal(2), held: &Holdings::none() };
/// assert_eq!(plan(&snapshot, &PlanSettings::of(Policy::BestFit)).replicas, 7);
/// assert_eq!(plan(&snapshot, &PlanSettings::of(Policy::Repack)).replicas, 6);
/// ```
pub fn plan(snapshot: &Snapshot<'_>, settings: &PlanSettings) -> Plan {
    let capacity = capacities(snapshot, settings);
    let mut packing = Packing::empty(snapshot, &capacity);
    let all = 0..snapshot.segments.len() as u32;
    match settings.policy {
        Policy::FirstFit => fit(snapshot, &mut packing, all, Fit::First),
        Policy::LargestFit => fit(snapshot, &mut packing, all, Fit::Largest),
        Policy::BestFit => fit(snapshot, &mut packing, all, Fit::Best),
        Policy::GetafixPaper => {
            fit(snapshot, &mut packing, all, Fit::Best);
            relabel(snapshot, &mut packing);
        }
        Policy::Repack => {
            fit(snapshot, &mut packing, all, Fit::Best);
            repack(snapshot, &mut packing, Price::Replicas, settings);
            cut_cycles(snapshot, &mut packing);
            relabel(snapshot, &mut packing);
        }
        Policy::Getafix if settings.budget > 1.0 => {
            let segments = raised(snapshot, &capacity, settings.budget);
            let raised = Snapshot { segments: &segments, ..*snapshot };
            sticky(&raised, &mut packing, settings);
            add_copies(&raised, &mut packing);
        }
        Policy::Getafix => sticky(snapshot, &mut packing, settings),
        Policy::Uniform { replicas } => uniform(snapshot, &mut packing, replicas, settings.seed),
        Policy::Scarlett { concurrency, delta, budget } => scarlett(snapshot, &mut packing, concurrency, delta, budget),
    }
    add_copies(snapshot, &mut packing);
    postconditions::of_packing(snapshot, settings.policy, &packing);
    let plan = Plan::of(snapshot, capacity, packing);
    postconditions::of_plan(snapshot, settings.policy, &plan);
    plan
}

/// The default, tried once with everything where it is and once without what is crowded there.
fn sticky(snapshot: &Snapshot<'_>, packing: &mut Packing, settings: &PlanSettings) {
    if let Some(stays) = without_crowded(snapshot, &packing.room) {
        let mut apart = packing.clone();
        settle(&Snapshot { held: &stays, ..*snapshot }, &mut apart, settings);
        settle(snapshot, packing, settings);
        // What moves must gain by it, or it would move again and again.
        let crowded = crowding(snapshot, packing);
        if (apart.left.len(), apart.replicas()) <= (packing.left.len(), packing.replicas())
            && crowding(snapshot, &apart) < crowded - crowded / WORTH_PART
        {
            *packing = apart;
        }
    } else {
        settle(snapshot, packing, settings);
    }
}

/// What wants copies first, then the others where they are held or apart from what is read with them; then splits are taken
/// back where that costs less than it saves, and parts are exchanged so that less moves.
fn settle(snapshot: &Snapshot<'_>, packing: &mut Packing, settings: &PlanSettings) {
    let (copies, others): (Vec<u32>, Vec<u32>) =
        (0..snapshot.segments.len() as u32).partition(|segment| snapshot.segments[*segment as usize].minimum > 1);
    let mut sticky = Sticky::new(snapshot, packing);
    sticky.place_copies(packing, &copies);
    let placed = packing.set_aside();
    let fresh = snapshot.held.is_empty().then(|| packing.clone());
    sticky.place(packing, &others);
    repack(snapshot, packing, Price::Bytes(snapshot.held), settings);
    cut_cycles(snapshot, packing);
    if let Some(mut other) = fresh.filter(|_| has_spare_splits(packing)) {
        // Nothing to stay for, and more replicas than there might be: the fewest by another start.
        fit(snapshot, &mut other, others.into_iter(), Fit::Best);
        repack(snapshot, &mut other, Price::Replicas, settings);
        cut_cycles(snapshot, &mut other);
        if (other.left.len(), other.replicas()) < (packing.left.len(), packing.replicas()) {
            *packing = other;
        }
    }
    packing.take_back(placed);
    relabel(snapshot, packing);
}

/// Whether a segment is split into more pieces than its count needs, or something found no room.
fn has_spare_splits(packing: &Packing) -> bool {
    let mut pieces: Vec<Piece> = packing.bags.iter().flatten().copied().collect();
    pieces.sort_unstable_by_key(|piece| piece.segment);
    let widest = packing.widest().max(1);
    let needed = |parts: &[Piece]| parts.iter().map(|piece| piece.count).sum::<u64>().div_ceil(widest);
    !packing.left.is_empty()
        || pieces.chunk_by(|one, other| one.segment == other.segment).any(|parts| parts.len() as u64 > needed(parts))
}
