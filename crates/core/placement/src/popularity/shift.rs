//! How much of the past still counts when what is read has changed.

/// How far from the rest a window must be, in multiples of what chance alone makes of two samples of one distribution.
const BEYOND_CHANCE: f64 = 2.0;
/// The mean of the absolute value of a normal variable, in standard deviations.
const MEAN_DEVIATION: f64 = 0.8;

/// The share of the older windows that still tells what is read, by pairs (accesses in the newest window, aged ones of all
/// before it) of the segments: 1 less their distance in total variation, beyond what chance makes of it.
pub(super) fn kept<I: Iterator<Item = (f64, f64)>>(pairs: impl Fn() -> I) -> f64 {
    let (newest, older) = pairs().fold((0.0, 0.0), |(newest, older), pair| (newest + pair.0, older + pair.1));
    if newest <= 0.0 || older <= 0.0 {
        return 1.0;
    }
    let (mut distance, mut chance) = (0.0, 0.0);
    for (new, old) in pairs() {
        distance += (new / newest - old / older).abs() / 2.0;
        // Counts are as good as Poisson; the older ones are taken for a single window's, which they are at least.
        let share = (new + old) / (newest + older);
        chance += MEAN_DEVIATION / 2.0 * (share * (1.0 / newest + 1.0 / older)).sqrt();
    }
    let expected = BEYOND_CHANCE * chance;
    if expected >= 1.0 { 1.0 } else { 1.0 - ((distance - expected) / (1.0 - expected)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn chance_keeps_all_and_a_new_world_nothing() {
        let like = [(520.0, 480.0), (210.0, 250.0), (98.0, 110.0), (3.0, 1.0)];
        assert_eq!(kept(|| like.iter().copied()), 1.0);
        let few = [(1.0, 0.0), (0.0, 2.0), (1.0, 0.0), (0.0, 1.0)];
        assert_eq!(kept(|| few.iter().copied()), 1.0, "too few to tell");
        let other = [(1000.0, 0.0), (0.0, 1000.0)];
        assert_eq!(kept(|| other.iter().copied()), 0.0);
        let half = [(1000.0, 2000.0), (1000.0, 0.0)];
        let kept = kept(|| half.iter().copied());
        assert!((0.5..0.6).contains(&kept), "{kept}");
    }
}
