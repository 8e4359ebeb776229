//! A bandwidth bound, split among those who want of it: by what they have demand for; what that leaves by what they bring ahead of readers,
//! plan by plan; and what is left over then by what they do in the background.

use std::collections::BTreeMap;

use forebay_types::PlanTurn;

/// The part of an equal share that is kept for those who ask for nothing, so that they can start: 1/20 leaves at
/// least 95 % of the bound to a single one who asks for all of it.
const FLOOR_PART: u64 = 20;

/// What one would take of a bound, in bytes a second, were there none; what it brings ahead aside, which is [`Ahead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<Who> {
    /// Who.
    pub who: Who,
    /// What somebody waits for.
    pub demand: u64,
    /// What nobody waits for and no plan will read, beside that.
    pub background: u64,
}

/// What one would take of a bound for a plan, beside its [`Need`], to bring what is read by it later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead<Who> {
    /// Who. It has a need as well, if one of nothing.
    pub who: Who,
    /// The plan's.
    pub turn: PlanTurn,
    /// Bytes a second.
    pub bytes_per_sec: u64,
}

/// Splits a bound over all in `needs`, in their order, by what each has demand for, whatever anybody brings ahead or does in the
/// background. What is left over goes to the plans in their order, each max-min fair among those who bring for it; what they leave, to
/// background work, max-min fair as well; and the rest is spread. O(n log n).
///
/// Max-min fair: nobody gets more than it asks for while another with less is short. Everyone gets at least a twentieth of an equal share,
/// asked for or not, so that it can start; what nobody asks for is spread equally over those who ask for more than that (over all, when
/// nobody does), so that demand that rises finds room before the next split. The shares add up to the bound exactly.
///
/// ```
/// use forebay_scheduling::{Ahead, Need, share_bound_by_need};
/// use forebay_types::{OperationId, Standing};
///
/// let needs = [("reads", 60, 0), ("plans", 0, 0), ("loads", 0, 500)];
/// let needs = needs.map(|(who, demand, background)| Need { who, demand, background });
/// let turn = Standing::default().turn(OperationId(1), 1);
/// let ahead = [Ahead { who: "plans", turn, bytes_per_sec: 25 }];
/// assert_eq!(share_bound_by_need(100, &needs, &ahead), [("reads", 60), ("plans", 26), ("loads", 14)]);
/// ```
pub fn share_bound_by_need<Who: Copy + Ord>(
    bound_bytes_per_sec: u64,
    needs: &[Need<Who>],
    ahead: &[Ahead<Who>],
) -> Vec<(Who, u64)> {
    let count = needs.len() as u64;
    if count == 0 {
        return Vec::new();
    }
    let floor = bound_bytes_per_sec / (count * FLOOR_PART);
    let mut shares: Vec<(Who, u64)> = needs.iter().map(|need| (need.who, 0)).collect();
    let mut wanted: Vec<(usize, u64)> = needs.iter().map(|need| need.demand.max(floor)).enumerate().collect();
    let mut left = fill(&mut shares, &mut wanted, bound_bytes_per_sec);
    let mut uses: Vec<u64> = needs.iter().map(|need| need.demand.saturating_add(need.background)).collect();
    for mut plan in by_plan(needs, ahead) {
        plan.iter().for_each(|(at, bytes)| uses[*at] = uses[*at].saturating_add(*bytes));
        left = fill(&mut shares, &mut plan, left);
    }
    let mut wanted: Vec<(usize, u64)> = needs.iter().map(|need| need.background).enumerate().collect();
    let left = fill(&mut shares, &mut wanted, left);
    let mut all: Vec<usize> = (0..needs.len()).collect();
    let mut asking = all.clone();
    asking.retain(|at| uses[*at] > floor);
    spread(&mut shares, if asking.is_empty() { &mut all } else { &mut asking }, left);
    assert_eq!(shares.iter().map(|(_, share)| share).sum::<u64>(), bound_bytes_per_sec, "shares add up to the bound");
    let equal = bound_bytes_per_sec / count;
    let has_its_own = |((_, share), need): (&(Who, u64), &Need<Who>)| *share >= need.demand.max(floor).min(equal);
    debug_assert!(shares.iter().zip(needs).all(has_its_own), "what is demanded comes first, up to an equal part");
    shares
}

/// What is wanted for each plan, in their order, by the place among the needs of who wants it.
fn by_plan<Who: Copy + Ord>(needs: &[Need<Who>], ahead: &[Ahead<Who>]) -> impl Iterator<Item = Vec<(usize, u64)>> {
    let mut plans: BTreeMap<PlanTurn, BTreeMap<usize, u64>> = BTreeMap::new();
    if !ahead.is_empty() {
        let places: BTreeMap<Who, usize> = needs.iter().enumerate().map(|(at, need)| (need.who, at)).collect();
        for of in ahead {
            let Some(at) = places.get(&of.who) else { continue };
            let bytes = plans.entry(of.turn).or_default().entry(*at).or_default();
            *bytes = bytes.saturating_add(of.bytes_per_sec);
        }
    }
    plans.into_values().map(|plan| plan.into_iter().collect())
}

/// Adds what some want, by their places, to their shares as far as `left` goes; gives what is left then.
fn fill<Who: Copy + Ord>(shares: &mut [(Who, u64)], wanted: &mut [(usize, u64)], mut left: u64) -> u64 {
    // Smallest first: each takes what it wants up to an equal part of what is left, and leaves the rest.
    wanted.sort_by_key(|(at, bytes)| (*bytes, shares[*at].0));
    for (served, (at, bytes)) in wanted.iter().enumerate() {
        let equal = left / (wanted.len() - served) as u64;
        if *bytes > equal {
            // All others want more than an equal part, too.
            let mut others: Vec<usize> = wanted[served..].iter().map(|(at, _)| *at).collect();
            spread(shares, &mut others, left);
            return 0;
        }
        shares[*at].1 += bytes;
        left -= bytes;
    }
    left
}

/// Gives `bytes` to those `at` these places in equal parts; odd bytes go to the first of them by name.
fn spread<Who: Copy + Ord>(shares: &mut [(Who, u64)], at: &mut [usize], bytes: u64) {
    at.sort_by_key(|at| shares[*at].0);
    let (each, odd) = (bytes / at.len() as u64, bytes % at.len() as u64);
    for (place, at) in at.iter().enumerate() {
        shares[*at].1 += each + u64::from((place as u64) < odd);
    }
}
