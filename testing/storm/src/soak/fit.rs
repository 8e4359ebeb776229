//! Whether numbers grow: by what a few of them can't bend.

/// Fewer numbers of a process at rest say nothing.
const NUMBERS_MIN: usize = 9;

/// What series grow by together: the median of the slopes between any two points of one (Theil and Sen). None of no two points.
pub(super) fn slope(series: &[Vec<(f64, f64)>]) -> Option<f64> {
    let mut slopes: Vec<f64> = Vec::new();
    for points in series {
        for (place, (at, value)) in points.iter().enumerate() {
            let later = points[place + 1..].iter().filter(|(later, _)| later > at);
            slopes.extend(later.map(|(later, other)| (other - value) / (later - at)));
        }
    }
    let middle = slopes.len() / 2;
    if slopes.is_empty() { None } else { Some(*slopes.select_nth_unstable_by(middle, f64::total_cmp).1) }
}

/// The most of the first third of some numbers, and the least of the last: what only goes up and down has the second below the first. None of
/// few numbers.
pub(super) fn thirds(numbers: &[u64]) -> Option<(u64, u64)> {
    let third = numbers.len() / 3;
    if numbers.len() < NUMBERS_MIN {
        return None;
    }
    let (first, last) = (&numbers[..third], &numbers[numbers.len() - third..]);
    Some((first.iter().copied().max()?, last.iter().copied().min()?))
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A look every ten seconds for so many hours, x in hours; a twentieth of them far off.
    fn noisy(seed: u64, from: f64, hours: f64, slope: f64) -> Vec<(f64, f64)> {
        let mut chance = StdRng::seed_from_u64(seed);
        let count = (hours * 360.0) as u32;
        let point = |place: u32| {
            let at = from + f64::from(place) / 360.0;
            let off = if chance.random_ratio(1, 20) { 40.0 } else { chance.random_range(-0.7..0.7) };
            (at, 50.0 + slope * (at - from) + off)
        };
        (0..count).map(point).collect()
    }

    #[test]
    fn a_slope_is_found_under_noise_and_numbers_that_are_far_off() {
        for (seed, true_slope) in [(1, 0.0), (2, 1.0), (3, 5.0), (4, -2.0)] {
            let found = slope(&[noisy(seed, 0.0, 1.2, true_slope)]).unwrap();
            assert!((found - true_slope).abs() < 0.25, "{found} for {true_slope}");
        }
    }

    #[test]
    fn a_process_that_was_started_again_does_not_look_as_if_it_had_grown() {
        // The second series begins far above the first, and neither grows.
        let mut second = noisy(6, 1.0, 0.8, 0.0);
        second.iter_mut().for_each(|(_, value)| *value += 100.0);
        let series = [noisy(5, 0.0, 0.8, 0.0), second];
        assert!(slope(&series).unwrap().abs() < 0.3, "{:?}", slope(&series));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[vec![(1.0, 2.0)], Vec::new()]), None);
        assert_eq!(slope(&[vec![(1.0, 2.0), (1.0, 3.0)]]), None, "at one time");
        assert_eq!(slope(&[vec![(1.0, 2.0), (2.0, 5.0)]]), Some(3.0));
        assert_eq!(thirds(&[1; 8]), None);
    }

    #[test]
    fn what_leaks_is_above_all_that_was_at_first() {
        let swinging: Vec<u64> = (0..60).map(|round| 20 + round % 7).collect();
        let (most, least) = thirds(&swinging).unwrap();
        assert!(least < most, "{least} {most}");
        let leaking: Vec<u64> = (0..60).map(|round| 20 + round % 7 + round / 2).collect();
        let (most, least) = thirds(&leaking).unwrap();
        assert!(least > most + 4, "{least} {most}");
    }
}
