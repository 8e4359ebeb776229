//! What a shard was asked, for those that come to serve the same records elsewhere.

use forebay_shard::QueryCounters;
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};

/// It is told of so many questions: enough to choose layers by, and few beside those that are asked later.
const QUESTIONS: f64 = 1000.0;
/// Attributes of a shard at most.
const ATTRIBUTES_MAX: usize = 128;
/// Bytes of it as it is sent, at most.
const BYTES_MAX: usize = 64 << 10;

/// What of a thousand questions were gets, and searches of which attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedShares {
    gets: u64,
    columns: Vec<u64>,
    searches: Vec<u64>,
    hits: Vec<u64>,
    substring_hits: u64,
}

impl AskedShares {
    /// None where nothing was asked.
    pub(crate) fn of(counters: &QueryCounters) -> Option<Self> {
        let asked = counters.questions();
        if !asked.is_finite() || asked <= 0.0 {
            return None;
        }
        let share = |count: f64| (count * (QUESTIONS / asked)).round() as u64;
        let all = |counts: &[f64]| counts.iter().map(|count| share(*count)).collect();
        let QueryCounters { gets, columns, searches, hits, substring_hits } = counters;
        Some(Self {
            gets: share(*gets),
            columns: all(columns),
            searches: all(searches),
            hits: all(hits),
            substring_hits: share(*substring_hits),
        })
    }

    /// What a shard is asked that has keys of others, each of which counts as much as is said; none where none counts.
    pub fn mixed<'s>(of: impl IntoIterator<Item = (&'s Self, f64)>) -> Option<Self> {
        let mut all = QueryCounters::default();
        for (shares, weight) in of {
            debug_assert!(weight >= 0.0, "nothing counts less than nothing");
            let QueryCounters { gets, columns, searches, hits, substring_hits } = shares.counters();
            all.gets += weight * gets;
            all.substring_hits += weight * substring_hits;
            let lists = [(&mut all.columns, columns), (&mut all.searches, searches), (&mut all.hits, hits)];
            for (sum, counts) in lists {
                sum.resize(sum.len().max(counts.len()), 0.0);
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += weight * count);
            }
        }
        Self::of(&all)
    }

    /// As if these questions had been asked here.
    pub(crate) fn counters(&self) -> QueryCounters {
        let all = |counts: &[u64]| counts.iter().map(|count| *count as f64).collect();
        QueryCounters {
            gets: self.gets as f64,
            columns: all(&self.columns),
            searches: all(&self.searches),
            hits: all(&self.hits),
            substring_hits: self.substring_hits as f64,
        }
    }

    /// Whether a shard can have been asked so.
    pub(crate) fn is_sound(&self) -> bool {
        [&self.columns, &self.searches, &self.hits].iter().all(|counts| counts.len() <= ATTRIBUTES_MAX)
    }

    /// As it is sent to another worker.
    pub fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::internal(format!("what a shard was asked: {error}")))
    }

    /// Reads what [`Self::encode`] wrote, from whoever it comes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::invalid("what a shard was asked can't be read");
        if bytes.len() > BYTES_MAX {
            return Err(wrong());
        }
        let read: Self = serde_json::from_slice(bytes).map_err(|_| wrong())?;
        if read.is_sound() { Ok(read) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_questions() {
        let counters = QueryCounters {
            gets: 30_000.0,
            searches: vec![0.0, 10_000.0],
            hits: vec![0.0, 2_400_000.0],
            ..QueryCounters::default()
        };
        let shares = AskedShares::of(&counters).unwrap();
        assert_eq!((shares.gets, &shares.searches[..], &shares.hits[..]), (750, &[0, 250][..], &[0, 60_000][..]));
        assert!((shares.counters().questions() - 1000.0).abs() < 2.0, "as many as say enough, and no more");
        assert_eq!(AskedShares::of(&shares.counters()), Some(shares.clone()));
        assert_eq!(AskedShares::decode(&shares.encode().unwrap()).unwrap(), shares);
        assert_eq!(AskedShares::of(&QueryCounters::default()), None);
    }

    #[test]
    fn shards_that_become_one_are_asked_as_much_as_each_counts() {
        let of = |gets, searches: &[f64]| {
            AskedShares::of(&QueryCounters { gets, searches: searches.to_vec(), ..QueryCounters::default() }).unwrap()
        };
        let (one, other) = (of(100.0, &[]), of(0.0, &[0.0, 100.0]));
        assert_eq!(AskedShares::mixed([(&one, 3.0), (&other, 1.0)]), Some(of(75.0, &[0.0, 25.0])));
        assert_eq!(AskedShares::mixed([(&other, 0.5)]), Some(other.clone()));
        assert_eq!(AskedShares::mixed([(&one, 0.0)]), None);
        assert_eq!(AskedShares::mixed([]), None);
    }

    #[test]
    fn what_no_shard_was_asked_is_refused() {
        let many = AskedShares { columns: vec![1; ATTRIBUTES_MAX + 1], ..AskedShares::default() };
        assert!(AskedShares::decode(&many.encode().unwrap()).is_err());
        let long = vec![b' '; BYTES_MAX + 1];
        for wrong in [&b"{}"[..], &b"[]"[..], &b""[..], &long[..]] {
            assert!(AskedShares::decode(wrong).is_err());
        }
    }
}
