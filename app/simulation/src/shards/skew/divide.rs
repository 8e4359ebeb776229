//! Ways to divide a fixed storage among shards once for all: what navigation is compared with.

use forebay_navigation::Curve;

pub(in crate::shards) fn evenly(curve: &Curve, shards: usize, room_bytes: u64) -> Vec<u32> {
    let fits = |level: &u32| shards as u64 * curve.bytes(*level) <= room_bytes;
    vec![(0..=curve.highest()).rev().find(fits).unwrap_or(0); shards]
}

/// Selective caching: the hottest shards have all layers, as many as fit beside the bases of the others.
pub(in crate::shards) fn selectively(curve: &Curve, shards: usize, room_bytes: u64) -> Vec<u32> {
    let spare = room_bytes.saturating_sub(shards as u64 * curve.bytes(0));
    let whole = (spare / (curve.bytes(curve.highest()) - curve.bytes(0))) as usize;
    (0..shards).map(|shard| if shard < whole { curve.highest() } else { 0 }).collect()
}

/// The best for known shares of the load: the least levels that sustain the most load that fits. Gives the levels and that load.
pub(in crate::shards) fn ideally(curve: &Curve, shares: &[f64], room_bytes: u64) -> (Vec<u32>, f64) {
    let answers = |level: u32| 1e6 / curve.service_us(level);
    let levels = |load: f64| -> Option<Vec<u32>> {
        shares.iter().map(|share| (0..=curve.highest()).find(|level| answers(*level) >= share * load)).collect()
    };
    let fits = |load: &f64| {
        levels(*load).is_some_and(|levels| levels.iter().map(|level| curve.bytes(*level)).sum::<u64>() <= room_bytes)
    };
    // The most load that some shard's level just sustains.
    let loads = shares.iter().flat_map(|share| (0..=curve.highest()).map(move |level| answers(level) / share * (1.0 - 1e-9)));
    let most = loads.filter(fits).fold(0.0, f64::max);
    (levels(most).unwrap_or_default(), most)
}
