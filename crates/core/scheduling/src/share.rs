//! A bandwidth bound, split among those who want of it: by what they have demand for, and what is left over by what they do in the background.

/// The part of an equal share that is kept for those who ask for nothing, so that they can start: 1/20 leaves at
/// least 95 % of the bound to a single one who asks for all of it.
const FLOOR_PART: u64 = 20;

/// Splits a bound over all in `demands` (bytes a second that each would take were there no bound), in their order.
///
/// Max-min fair: nobody gets more than it asks for while another with less is short. Everyone gets at least a
/// twentieth of an equal share, asked for or not, so that it can start; what nobody asks for is spread equally over those
/// who ask for more than that (over all, when nobody does), so that demand that rises finds room before the next split.
/// The shares add up to the bound exactly. O(n log n).
///
/// ```
/// use forebay_scheduling::share_bound;
///
/// let shares = share_bound(100, &[("a", 10), ("b", 80), ("c", 500)]);
/// assert_eq!(shares, [("a", 10), ("b", 45), ("c", 45)]);
/// assert_eq!(share_bound(100, &[("a", 0), ("b", 0)]), [("a", 50), ("b", 50)]);
/// assert_eq!(share_bound(120, &[("a", 0), ("b", 20), ("c", 20)]), [("a", 2), ("b", 59), ("c", 59)]);
/// ```
pub fn share_bound<Who: Copy + Ord>(bound_bytes_per_sec: u64, demands: &[(Who, u64)]) -> Vec<(Who, u64)> {
    let needs: Vec<_> = demands.iter().map(|(who, demand)| Need { who: *who, demand: *demand, background: 0 }).collect();
    share_bound_by_need(bound_bytes_per_sec, &needs)
}

/// What one would take of a bound, in bytes a second, were there none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<Who> {
    /// Who.
    pub who: Who,
    /// What somebody waits for, or will soon.
    pub demand: u64,
    /// What nobody waits for, beside that.
    pub background: u64,
}

/// Splits a bound as [`share_bound`] does by what each has demand for, whatever anybody has in the background. What is left over goes to
/// background work, max-min fair as well, before it is spread. O(n log n).
///
/// ```
/// use forebay_scheduling::{Need, share_bound_by_need};
///
/// let needs = [Need { who: "reads", demand: 70, background: 0 }, Need { who: "loads", demand: 0, background: 500 }];
/// assert_eq!(share_bound_by_need(100, &needs), [("reads", 70), ("loads", 30)]);
/// ```
pub fn share_bound_by_need<Who: Copy + Ord>(bound_bytes_per_sec: u64, needs: &[Need<Who>]) -> Vec<(Who, u64)> {
    let count = needs.len() as u64;
    if count == 0 {
        return Vec::new();
    }
    let floor = bound_bytes_per_sec / (count * FLOOR_PART);
    let mut shares: Vec<(Who, u64)> = needs.iter().map(|need| (need.who, 0)).collect();
    let demands: Vec<u64> = needs.iter().map(|need| need.demand.max(floor)).collect();
    let backgrounds: Vec<u64> = needs.iter().map(|need| need.background).collect();
    let left = fill(&mut shares, &demands, bound_bytes_per_sec);
    let left = fill(&mut shares, &backgrounds, left);
    let mut all: Vec<usize> = (0..needs.len()).collect();
    let mut asking = all.clone();
    asking.retain(|at| needs[*at].demand.saturating_add(needs[*at].background) > floor);
    spread(&mut shares, if asking.is_empty() { &mut all } else { &mut asking }, left);
    assert_eq!(shares.iter().map(|(_, share)| share).sum::<u64>(), bound_bytes_per_sec, "shares add up to the bound");
    shares
}

/// Adds what each wants to its share as far as `left` goes; gives what is left then.
fn fill<Who: Copy + Ord>(shares: &mut [(Who, u64)], wanted: &[u64], mut left: u64) -> u64 {
    // Smallest first: each takes what it wants up to an equal part of what is left, and leaves the rest.
    let mut by_want: Vec<usize> = (0..wanted.len()).collect();
    by_want.sort_by_key(|at| (wanted[*at], shares[*at].0));
    for (served, at) in by_want.iter().enumerate() {
        let equal = left / (wanted.len() - served) as u64;
        if wanted[*at] > equal {
            // All others want more than an equal part, too.
            spread(shares, &mut by_want[served..].to_vec(), left);
            return 0;
        }
        shares[*at].1 += wanted[*at];
        left -= wanted[*at];
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
