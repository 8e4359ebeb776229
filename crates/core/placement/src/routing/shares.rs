//! Whole numbers in proportion to weights: the routing table's percentages.

/// Percentages in proportion to the counts of (worker, count), summing to 100; equal ones when nothing was counted.
pub(crate) fn percentages(shares: impl Iterator<Item = (u32, u64)>) -> Vec<(u32, u32)> {
    let (workers, counts): (Vec<u32>, Vec<u64>) = shares.unzip();
    workers.into_iter().zip(largest_remainder(&counts, 100)).collect()
}

/// Whole numbers in proportion to `weights` that sum to `whole`: everyone gets the whole part of its quota, and the
/// largest remainders one more, the first of equal ones. Equal parts when all weights are 0.
///
/// ```
/// use forebay_placement::largest_remainder;
/// assert_eq!(largest_remainder(&[4, 1], 100), [80, 20]);
/// assert_eq!(largest_remainder(&[1, 1, 1], 100), [34, 33, 33]);
/// assert_eq!(largest_remainder(&[0, 0], 100), [50, 50]);
/// ```
pub fn largest_remainder(weights: &[u64], whole: u32) -> Vec<u32> {
    if weights.is_empty() {
        return Vec::new();
    }
    let even = weights.iter().all(|weight| *weight == 0);
    let weight = |at: usize| if even { 1 } else { u128::from(weights[at]) };
    let sum: u128 = (0..weights.len()).map(weight).sum();
    let quota = |at: usize| weight(at) * u128::from(whole);
    let mut parts: Vec<u32> = (0..weights.len()).map(|at| (quota(at) / sum) as u32).collect();
    let missing = whole - parts.iter().sum::<u32>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(quota(*at) % sum), *at));
    for at in order.into_iter().take(missing as usize) {
        parts[at] += 1;
    }
    parts
}
