//! The routing table with a version for each line, so that clients are sent only what is new to them.

use std::collections::BTreeMap;

use forebay_protocol::{Route, RoutesDelta};
use forebay_types::{RouteKey, WorkerId};

/// Routes that were taken out and are remembered as such; who has an older table gets all of it.
const GONE_MAX: usize = 100_000;

/// The routing table as it is handed out, with the versions of its lines.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) version: u64,
    lines: BTreeMap<RouteKey, (u64, Vec<(WorkerId, u32)>)>,
    /// By version.
    gone: BTreeMap<u64, RouteKey>,
    /// Deltas are given from this version on.
    from: u64,
}

impl Routes {
    pub(super) fn new(version: u64) -> Self {
        Self { version, from: version, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn names(&self, key: RouteKey) -> bool {
        self.lines.contains_key(&key)
    }

    /// Sets a line; without holders it is taken out.
    pub(super) fn set(&mut self, key: RouteKey, holders: Vec<(WorkerId, u32)>) {
        match self.lines.get(&key) {
            None if holders.is_empty() => return,
            Some((_, now)) if *now == holders => return,
            _ => self.version += 1,
        }
        if holders.is_empty() {
            self.lines.remove(&key);
            self.gone.insert(self.version, key);
            if self.gone.len() > GONE_MAX
                && let Some((version, _)) = self.gone.pop_first()
            {
                self.from = version;
            }
        } else {
            self.lines.insert(key, (self.version, holders));
        }
        let (gone, from) = (self.gone.len(), self.from);
        assert!(gone <= GONE_MAX && from <= self.version, "{gone} routes that went since version {from} are remembered");
    }

    pub(super) fn since(&self, have: u64) -> RoutesDelta {
        let base = if (self.from..=self.version).contains(&have) { have } else { 0 };
        let changed = self.lines.iter().filter(|(_, (version, _))| *version > base);
        let mut routes: Vec<_> = changed.map(|(key, (_, holders))| Route { key: *key, holders: holders.clone() }).collect();
        if base > 0 {
            let gone = self.gone.range(base + 1..).filter(|(_, key)| !self.lines.contains_key(key));
            routes.extend(gone.map(|(_, key)| Route { key: *key, holders: Vec::new() }));
        }
        RoutesDelta { version: self.version, base, routes }
    }
}

#[cfg(test)]
mod tests {
    use forebay_protocol::RouteTable;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whoever_follows_has_the_table(steps in prop::collection::vec((0u64..6, 0u64..4, any::<bool>()), 1..80)) {
            let mut routes = Routes::new(1 << 32);
            let mut follower = RouteTable::default();
            for (key, worker, looks) in steps {
                let holders = if worker == 0 { Vec::new() } else { vec![(WorkerId(worker), 1)] };
                routes.set(RouteKey(key), holders);
                if looks {
                    follower = follower.with(routes.since(follower.version())).unwrap();
                    prop_assert_eq!((follower.version(), follower.len()), (routes.version, routes.len()));
                    for (key, (_, holders)) in &routes.lines {
                        prop_assert_eq!(&follower.holders(*key).unwrap()[..], &holders[..]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_table_of_another_coordinator_is_given_anew() {
        let mut routes = Routes::new((2 << 32) + 1);
        routes.set(RouteKey(1), vec![(WorkerId(1), 1)]);
        for have in [0, 7, (1 << 32) + 5, (3 << 32) + 1] {
            let delta = routes.since(have);
            assert_eq!((delta.base, delta.routes.len()), (0, 1));
        }
        assert_eq!(routes.since(routes.version).routes, []);
    }
}
