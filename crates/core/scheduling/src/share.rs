//! A bandwidth bound, split among those who want of it.

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
    let count = demands.len() as u64;
    if count == 0 {
        return Vec::new();
    }
    let floor = bound_bytes_per_sec / (count * FLOOR_PART);
    let wanted: Vec<u64> = demands.iter().map(|(_, demand)| (*demand).max(floor)).collect();

    // Smallest demand first: each takes what it wants up to an equal part of what is left, and leaves the rest.
    let mut by_demand: Vec<usize> = (0..demands.len()).collect();
    by_demand.sort_by_key(|at| (wanted[*at], demands[*at].0));
    let mut shares: Vec<(Who, u64)> = demands.iter().map(|(who, _)| (*who, 0)).collect();
    let mut left = bound_bytes_per_sec;
    for (served, at) in by_demand.iter().enumerate() {
        let equal = left / (count - served as u64);
        if wanted[*at] > equal {
            // All others want more than an equal part, too.
            spread(&mut shares, &mut by_demand[served..].to_vec(), left);
            left = 0;
            break;
        }
        shares[*at].1 = wanted[*at];
        left -= wanted[*at];
    }
    let mut asking: Vec<usize> = by_demand.iter().copied().filter(|at| demands[*at].1 > floor).collect();
    spread(&mut shares, if asking.is_empty() { &mut by_demand } else { &mut asking }, left);
    assert_eq!(shares.iter().map(|(_, share)| share).sum::<u64>(), bound_bytes_per_sec, "shares add up to the bound");
    shares
}

/// Gives `bytes` to those `at` these places in equal parts; odd bytes go to the first of them by name.
fn spread<Who: Copy + Ord>(shares: &mut [(Who, u64)], at: &mut [usize], bytes: u64) {
    at.sort_by_key(|at| shares[*at].0);
    let (each, odd) = (bytes / at.len() as u64, bytes % at.len() as u64);
    for (place, at) in at.iter().enumerate() {
        shares[*at].1 += each + u64::from((place as u64) < odd);
    }
}
