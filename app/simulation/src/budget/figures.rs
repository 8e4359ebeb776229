//! What weighing is worth beside splits that are fixed.

use forebay_types::Result;

use super::mix::{MEMORY_BYTES, MIXES, OWNERS, PHASE_WINDOWS};
use super::run::{Rooms, Window, run};

/// Parts of a fixed split: each owner has one at least, which makes 20 splits of 4 owners.
const PARTS: u64 = 7;
/// What is as good as the best split.
const AS_GOOD: f64 = 0.9;
/// Windows of which the mean counts, so that no single one does.
const MEAN_WINDOWS: usize = 3;
/// Windows after which rooms are to have come to rest.
const REST_WINDOWS: usize = 10;

/// Weighed rooms beside fixed ones, in seconds that all requests took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetFigures {
    /// Those of the best of 20 fixed splits, which may be another one for each mix, over those of weighed rooms: of both mixes the one
    /// where it does worse.
    pub of_best: f64,
    /// Those of the equal split over those of weighed rooms, both mixes together.
    pub of_equal: f64,
    /// Windows from the swap of the mix until weighed rooms do as well again as 0.9 of the split that is the best then.
    pub again_windows: usize,
    /// Most that an owner's room swings once at rest, as a share of the memory.
    pub swing: f64,
}

/// Runs all splits, and weighed rooms, on the requests of a seed.
pub fn budget(seed: u64) -> Result<BudgetFigures> {
    let equal = [MEMORY_BYTES / OWNERS as u64; OWNERS];
    let ours = run(equal, true, seed)?;
    let equal = run(equal, false, seed)?;
    let fixed = splits().into_iter().map(|split| run(split, false, seed)).collect::<Result<Vec<_>>>()?;
    let all = |run: &[Window]| (0..MIXES.len()).map(|phase| took(run, phase)).sum::<f64>();
    let of_equal = all(&equal) / all(&ours);
    let mut of_best = f64::INFINITY;
    for phase in 0..MIXES.len() {
        let best = fixed.iter().map(|run| took(run, phase)).fold(f64::INFINITY, f64::min);
        of_best = of_best.min(best / took(&ours, phase));
    }
    let swapped = MIXES.len() - 1;
    let best = fixed.iter().min_by(|one, other| took(one, swapped).total_cmp(&took(other, swapped)));
    let again_windows = best.map_or(PHASE_WINDOWS, |best| again(&ours, best));
    Ok(BudgetFigures { of_best, of_equal, again_windows, swing: swing(&ours) })
}

/// All ways to give each owner one part at least.
pub(super) fn splits() -> Vec<Rooms> {
    let most = PARTS - (OWNERS as u64 - 1);
    let each = || 1..=most;
    let three = each().flat_map(|one| each().flat_map(move |two| each().map(move |three| [one, two, three])));
    let with_fourth = three.filter_map(|[one, two, three]| {
        let fourth = PARTS.checked_sub(one + two + three).filter(|fourth| *fourth > 0)?;
        Some([one, two, three, fourth])
    });
    with_fourth.map(|parts| parts.map(|part| MEMORY_BYTES / PARTS * part)).collect()
}

fn phase_of(run: &[Window], phase: usize) -> &[Window] {
    &run[phase * PHASE_WINDOWS..(phase + 1) * PHASE_WINDOWS]
}

fn took(run: &[Window], phase: usize) -> f64 {
    phase_of(run, phase).iter().map(|window| window.took_secs).sum()
}

/// Windows after the last swap until ours is as good as the best split.
fn again(ours: &[Window], best: &[Window]) -> usize {
    let last = MIXES.len() - 1;
    let (ours, best) = (phase_of(ours, last), phase_of(best, last));
    let sum = |windows: &[Window]| windows.iter().map(|window| window.took_secs).sum::<f64>();
    let mut both = ours.windows(MEAN_WINDOWS).zip(best.windows(MEAN_WINDOWS));
    both.position(|(ours, best)| sum(ours) * AS_GOOD <= sum(best)).unwrap_or(PHASE_WINDOWS)
}

fn swing(run: &[Window]) -> f64 {
    let mut most: f64 = 0.0;
    for phase in 0..MIXES.len() {
        for owner in 0..OWNERS {
            let rooms = || phase_of(run, phase).iter().skip(REST_WINDOWS).map(|window| window.rooms[owner]);
            let (highest, lowest) = (rooms().max().unwrap_or(0), rooms().min().unwrap_or(0));
            most = most.max((highest - lowest) as f64 / MEMORY_BYTES as f64);
        }
    }
    most
}
