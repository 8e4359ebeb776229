//! The workload of Getafix's evaluation: queries over recent hours, with more hours to come.

use crate::random::Random;
use crate::workload::{Micros, Query, Zipf};

/// The longest interval of a query, in segments: a day of hours.
const LONGEST: usize = 24;

/// Queries over a time series, as in the evaluation of Getafix (section 5.2): the newest hour of a query is biased
/// to the latest ones (Zipf over age), the number of hours is Zipf from 1 to 24.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Segments at the start.
    pub segments: usize,
    /// Zipf exponent of the age of what is asked; 0.99 is that of YCSB.
    pub theta: f64,
    /// Zipf exponent of the length of what is asked.
    pub length_theta: f64,
    /// A new, newest segment comes this often; never without.
    pub fresh_every: Option<Micros>,
    /// How many come at most.
    pub fresh_most: usize,
    /// From then on the oldest segments are read as the newest were; never without.
    pub turned_at: Option<Micros>,
}

impl Synthetic {
    /// `segments` with exponent `theta`, and none to come.
    pub fn new(segments: usize, theta: f64) -> Self {
        Self { segments, theta, length_theta: 1.0, fresh_every: None, fresh_most: 0, turned_at: None }
    }

    /// Accesses of a query, on average, with the segments of the start.
    pub fn mean_accesses(&self) -> f64 {
        let (starts, lengths) = (Zipf::new(self.segments, self.theta), Zipf::new(LONGEST, self.length_theta));
        (0..self.segments)
            .flat_map(|start| (1..=LONGEST).map(move |length| (start, length)))
            .map(|(start, length)| {
                let reached = length.min(self.segments - start);
                starts.probability(start) * lengths.probability(length - 1) * reached as f64
            })
            .sum()
    }

    pub(crate) fn segments_at(&self, at: Micros) -> usize {
        let come = self.fresh_every.map_or(0, |every| (at / every) as usize).min(self.fresh_most);
        self.segments + come
    }

    /// The queries of a run, at `queries_per_sec`.
    pub(crate) fn queries(&self, queries_per_sec: f64, clients: usize, seed: u64) -> impl Iterator<Item = Query> + use<> {
        let (mut times, mut contents) = (Random::new(seed, 1), Random::new(seed, 2));
        let lengths = Zipf::new(LONGEST, self.length_theta);
        let mut starts = Zipf::new(self.segments, self.theta);
        let mut known = self.segments;
        let workload = self.clone();
        let mean = 1e6 / queries_per_sec;
        let mut at = 0.0;
        std::iter::from_fn(move || {
            at += times.exponential(mean);
            let count = workload.segments_at(at as Micros);
            if count != known {
                (starts, known) = (Zipf::new(count, workload.theta), count);
            }
            let age = starts.sample(&mut contents);
            let length = 1 + lengths.sample(&mut contents);
            let newest = count - 1 - age;
            let turned = workload.turned_at.is_some_and(|turned| at as Micros >= turned);
            let place = |segment: usize| if turned { count - 1 - segment } else { segment };
            let segments = (newest.saturating_sub(length - 1)..=newest).map(|segment| place(segment) as u32).collect();
            Some(Query { at: at as Micros, client: contents.below(clients), segments })
        })
    }
}
