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
