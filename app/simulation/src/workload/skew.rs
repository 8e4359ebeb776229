//! How a load falls on segments: by popularity, by age, and how much of a window's load is still the same some windows later.

use crate::workload::Micros;

/// Points of a curve at most, beside the one that it begins with.
const POINTS: usize = 100;

/// How often segments were read, in the orders that curves go by.
#[derive(Debug)]
pub(crate) struct Skew {
    /// Of each segment, the most read one first.
    by_popularity: Vec<u64>,
    /// Of each age: how many segments came into being after the one that is read.
    by_age: Vec<u64>,
}

impl Skew {
    /// Of reads in the order of time, each of a segment by the order in which they came into being. So many segments are there from the start;
    /// each further one comes into being when it, or a later one, is first read.
    pub(crate) fn of(reads: impl Iterator<Item = u32>, known: usize) -> Self {
        let (mut by_popularity, mut by_age) = (vec![0; known], vec![0; known]);
        for segment in reads {
            let place = segment as usize;
            if place >= by_popularity.len() {
                by_popularity.resize(place + 1, 0);
                by_age.resize(place + 1, 0);
            }
            by_popularity[place] += 1;
            let newest = by_age.len() - 1;
            by_age[newest - place] += 1;
        }
        by_popularity.sort_unstable_by(|one, other| other.cmp(one));
        Self { by_popularity, by_age }
    }

    /// Percent of the reads that so many percent of the segments have, those that are read most.
    pub(crate) fn popularity(&self) -> Vec<(f64, f64)> {
        curve(&self.by_popularity)
    }

    /// The same of those that are newest when they are read.
    pub(crate) fn age(&self) -> Vec<(f64, f64)> {
        curve(&self.by_age)
    }
}

/// Sums of `counts` up to each of the points, both in percent.
fn curve(counts: &[u64]) -> Vec<(f64, f64)> {
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let (all, len) = (counts.iter().sum(), counts.len() as u64);
    let (mut places, mut sum) = (0, 0);
    let mut points = vec![(0.0, 0.0)];
    for part in counts.chunks(counts.len().div_ceil(POINTS).max(1)) {
        places += part.len() as u64;
        sum += part.iter().sum::<u64>();
        points.push((percent(places, len), percent(sum, all)));
    }
    points
}

/// Percent of a window's reads that fall on segments as those of so many windows before did, for 1 to `most` windows, on average: 100 where
/// popularity stays as it is. What a plan of then is worth now.
pub(crate) fn overlap(reads: impl Iterator<Item = (Micros, u32)>, window: Micros, most: usize) -> Vec<(f64, f64)> {
    let mut windows: Vec<Vec<u64>> = Vec::new();
    for (at, segment) in reads {
        let (number, place) = ((at / window) as usize, segment as usize);
        if number >= windows.len() {
            windows.resize(number + 1, Vec::new());
        }
        let counts = &mut windows[number];
        if place >= counts.len() {
            counts.resize(place + 1, 0);
        }
        counts[place] += 1;
    }
    let shares = windows.iter().map(|counts| {
        let sum = counts.iter().sum::<u64>().max(1) as f64;
        counts.iter().map(|count| *count as f64 / sum).collect::<Vec<f64>>()
    });
    let shares: Vec<Vec<f64>> = shares.collect();
    let same = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one.min(*other)).sum::<f64>();
    let apart = (1..=most).take_while(|apart| *apart < shares.len()).map(|apart| {
        let pairs = shares.iter().zip(&shares[apart..]).map(|(one, other)| same(one, other));
        (apart as f64, 100.0 * pairs.sum::<f64>() / (shares.len() - apart) as f64)
    });
    apart.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_reads_are_of_the_most_popular_quarter() {
        let skew = Skew::of([0, 1, 1, 1, 1, 2, 3, 3].into_iter(), 4);
        assert_eq!(skew.popularity(), [(0.0, 0.0), (25.0, 50.0), (50.0, 75.0), (75.0, 87.5), (100.0, 100.0)]);
        assert_eq!(skew.age(), [(0.0, 0.0), (25.0, 25.0), (50.0, 37.5), (75.0, 87.5), (100.0, 100.0)]);
    }

    #[test]
    fn a_segment_is_as_old_as_it_is_when_it_is_read() {
        // Each of them the newest of its time, and then the first one again.
        let skew = Skew::of([0, 1, 2, 3, 0].into_iter(), 0);
        assert_eq!(skew.age(), [(0.0, 0.0), (25.0, 80.0), (50.0, 80.0), (75.0, 80.0), (100.0, 100.0)]);
        assert_eq!(Skew::of(std::iter::empty(), 0).popularity(), [(0.0, 0.0)]);
    }

    #[test]
    fn a_curve_of_many_segments_has_few_points_and_all_of_the_reads() {
        let skew = Skew::of(0..12_345, 0);
        let curve = skew.popularity();
        assert!(curve.len() <= POINTS + 1 && curve.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{curve:?}");
        assert_eq!(curve.last(), Some(&(100.0, 100.0)));
    }

    #[test]
    fn windows_overlap_as_far_as_they_read_the_same() {
        let reads = [(0, 0), (1, 1), (10, 1), (11, 2), (20, 5), (21, 5)];
        assert_eq!(overlap(reads.into_iter(), 10, 5), [(1.0, 25.0), (2.0, 0.0)]);
        let same = [(0, 3), (5, 4), (10, 4), (17, 3)];
        assert_eq!(overlap(same.into_iter(), 10, 5), [(1.0, 100.0)]);
        assert!(overlap([(0, 1)].into_iter(), 10, 5).is_empty());
    }
}
