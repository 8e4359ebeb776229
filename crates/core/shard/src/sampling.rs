//! What a shard is asked: counted while it answers, aged by what is asked later.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::schema::ATTRIBUTES_MAX;

/// Of this many queries of a thread one is counted, for all of them, so that counters do not slow down the others.
const EVERY: u64 = 16;

/// How often what was asked of a shard: what the dial goes by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryCounters {
    /// Gets of whole records.
    pub gets: f64,
    /// By attribute: gets that named it among their columns.
    pub columns: Vec<f64>,
    /// By attribute: searches that one interval of rows answers.
    pub searches: Vec<f64>,
    /// By attribute: the rows that those searches had to find records for.
    pub hits: Vec<f64>,
    /// Rows of substring searches.
    pub substring_hits: f64,
}

/// Hits of one substring search, for want of a count of searches.
pub(crate) const SUBSTRING_HITS: f64 = 100.0;

/// After so many later questions one counts half. One in 16 of them is counted, which tells shares well below a hundredth
/// apart; a shard that nobody asks has nothing to forget, so time plays no part.
const HALF_LIFE_QUESTIONS: f64 = 100_000.0;

impl QueryCounters {
    /// Questions of all kinds.
    pub fn questions(&self) -> f64 {
        let of = |counts: &[f64]| counts.iter().sum::<f64>();
        self.gets + of(&self.columns) + of(&self.searches) + self.substring_hits / SUBSTRING_HITS
    }

    /// All of it and what was asked later, by which this has aged.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let weight = 0.5f64.powf(later.questions() / HALF_LIFE_QUESTIONS);
        self.with(later, |before, later| before * weight + later)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    /// What was asked since these same counters stood at `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, |now, before| (now - before).max(0.0))
    }

    /// Number by number.
    fn with(&self, other: &Self, call: impl Fn(f64, f64) -> f64) -> Self {
        let all = |one: &[f64], other: &[f64]| -> Vec<f64> {
            let at = |counts: &[f64], index: usize| counts.get(index).copied().unwrap_or_default();
            (0..one.len().max(other.len())).map(|index| call(at(one, index), at(other, index))).collect()
        };
        Self {
            gets: call(self.gets, other.gets),
            columns: all(&self.columns, &other.columns),
            searches: all(&self.searches, &other.searches),
            hits: all(&self.hits, &other.hits),
            substring_hits: call(self.substring_hits, other.substring_hits),
        }
    }
}

/// The live counters.
pub(crate) struct Sampler {
    gets: AtomicU64,
    columns: Vec<AtomicU64>,
    searches: Vec<AtomicU64>,
    hits: Vec<AtomicU64>,
    substring_hits: AtomicU64,
}

thread_local! {
    static TICK: Cell<u64> = const { Cell::new(0) };
}

/// Whether this query of the thread is counted.
#[inline]
fn due() -> bool {
    TICK.with(|tick| {
        let now = tick.get();
        // Scattered, so that a pattern in what is asked (one get, one search, one get) is not taken for its half.
        tick.set(now.wrapping_add(1));
        now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (EVERY - 1) == 0
    })
}

impl Sampler {
    pub(crate) fn new(attributes: usize) -> Self {
        let counters = || (0..attributes.min(ATTRIBUTES_MAX)).map(|_| AtomicU64::new(0)).collect();
        Self {
            gets: AtomicU64::new(0),
            columns: counters(),
            searches: counters(),
            hits: counters(),
            substring_hits: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn get(&self, columns: Option<&[usize]>) {
        if !due() {
            return;
        }
        match columns {
            None => {
                self.gets.fetch_add(EVERY, Ordering::Relaxed);
            }
            Some(columns) => columns.iter().filter_map(|column| self.columns.get(*column)).for_each(|counter| {
                counter.fetch_add(EVERY, Ordering::Relaxed);
            }),
        }
    }

    #[inline]
    pub(crate) fn search(&self, attribute: usize, hits: u64) {
        if due() {
            self.searches[attribute].fetch_add(EVERY, Ordering::Relaxed);
            self.hits[attribute].fetch_add(hits * EVERY, Ordering::Relaxed);
        }
    }

    pub(crate) fn substring(&self, hits: u64) {
        self.substring_hits.fetch_add(hits, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> QueryCounters {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
        let numbers = |counters: &[AtomicU64]| counters.iter().map(number).collect();
        QueryCounters {
            gets: number(&self.gets),
            columns: numbers(&self.columns),
            searches: numbers(&self.searches),
            hits: numbers(&self.hits),
            substring_hits: number(&self.substring_hits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(gets: f64, searches: f64) -> QueryCounters {
        QueryCounters { gets, searches: vec![0.0, searches], hits: vec![0.0, searches * 3.0], ..QueryCounters::default() }
    }

    #[test]
    fn what_was_asked_long_ago_weighs_less_than_what_was_asked_lately() {
        let old = asked(0.0, 1e6);
        let now = (0..10).fold(old.clone(), |counters, _| counters.then(&asked(HALF_LIFE_QUESTIONS, 0.0)));
        assert!(now.searches[1] < now.gets / 100.0, "{now:?}");
        assert_eq!(old.then(&asked(HALF_LIFE_QUESTIONS, 0.0)), asked(HALF_LIFE_QUESTIONS, 5e5));
        // However it is cut into pieces, and what was asked since is all of what is new.
        let pieces = old.then(&asked(2e4, 0.0)).then(&asked(0.0, 3e4));
        let at_once = old.then(&asked(2e4, 3e4));
        assert!((pieces.searches[1] - at_once.searches[1]).abs() < 1.0, "{pieces:?} {at_once:?}");
        assert_eq!(asked(5.0, 7.0).since(&asked(2.0, 3.0)).plus(&asked(2.0, 3.0)), asked(5.0, 7.0));
        assert_eq!(old.then(&QueryCounters::default()), old);
    }
}
