//! Connections that a port serves for whoever comes, and how many of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use super::Seldom;

/// One use of descriptors takes one in so many that the process may have: whoever comes may drive four to that, which are the connections of HTTP,
/// S3 and Flight SQL and the parts of uploads, and who has not said yet what he wants takes some too.
const SHARE: u64 = 5;
/// Connections of one port at most, since each takes memory.
const CONNECTIONS_MAX: usize = 20_000;

/// How many connections a port that is open to whoever comes serves at a time: [`some_descriptors`], and 20,000 at most.
pub fn connections_max() -> usize {
    some_descriptors(CONNECTIONS_MAX)
}

/// A fifth of the descriptors that the process may have, and no more than `most`: for one of the uses that take many.
pub fn some_descriptors(most: usize) -> usize {
    some_of(getrlimit(Resource::Nofile).current, most)
}

fn some_of(descriptors: Option<u64>, most: usize) -> usize {
    let share = descriptors.map_or(u64::MAX, |descriptors| descriptors / SHARE);
    usize::try_from(share).unwrap_or(usize::MAX).clamp(1, most.max(1))
}

/// The connections that a port serves. A host gets no more while it has as many as are left, so that some are left whoever comes. Clones are the
/// same.
#[derive(Clone)]
pub struct Served(Arc<Mutex<Counts>>);

struct Counts {
    port: &'static str,
    most: usize,
    all: usize,
    by_host: HashMap<IpAddr, usize>,
    refusing: Seldom,
}

/// A connection that is served, until this is dropped.
pub struct Counted {
    of: Served,
    host: IpAddr,
}

impl Served {
    /// So many at most, of a port of this name.
    pub fn new(port: &'static str, most: usize) -> Self {
        Self(Arc::new(Mutex::new(Counts { port, most, all: 0, by_host: HashMap::new(), refusing: Seldom::default() })))
    }

    /// Counts one from this host; none where that has too many, which the log is told.
    pub fn count(&self, host: IpAddr) -> Option<Counted> {
        let mut counts = self.0.lock();
        let own = counts.by_host.get(&host).copied().unwrap_or(0);
        if own >= counts.most.saturating_sub(counts.all) {
            if let Some(times) = counts.refusing.happens(forebay_runtime::now()) {
                let Counts { port, most, all, .. } = *counts;
                tracing::warn!(port, %host, own, all, most, times, "too many connections: the newest are refused");
            }
            return None;
        }
        counts.all += 1;
        counts.by_host.insert(host, own + 1);
        Some(Counted { of: self.clone(), host })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.of.0.lock();
        counts.all -= 1;
        if let Entry::Occupied(mut own) = counts.by_host.entry(self.host) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_has_all_connections_and_one_that_ends_leaves_its_place() {
        let served = Served::new("test", 8);
        let host = |number: u8| IpAddr::from([10, 0, 0, number]);
        let all_of = |number| std::iter::from_fn(|| served.count(host(number))).collect::<Vec<_>>();
        let mut first = all_of(1);
        let others: Vec<_> = (2..6).map(all_of).collect();
        assert_eq!((first.len(), others.iter().map(Vec::len).collect::<Vec<_>>()), (4, vec![2, 1, 1, 0]));
        drop(first.pop());
        assert!(served.count(host(1)).is_none(), "it is for who has none");
        assert!(served.count(host(5)).is_some());
        drop((first, others));
        let counts = served.0.lock();
        assert!(counts.all == 0 && counts.by_host.is_empty());
    }

    #[test]
    fn descriptors_are_left_for_others() {
        let bounds = [Some(0), Some(160), Some(4096), Some(1 << 20), None].map(|all| some_of(all, 20_000));
        assert_eq!(bounds, [1, 32, 819, 20_000, 20_000]);
        assert!((1..=20_000).contains(&connections_max()));
    }
}
