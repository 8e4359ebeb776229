//! The routing table, and what is new in it.

use std::collections::HashMap;
use std::sync::Arc;

use forebay_types::{RouteKey, WorkerId};
use serde::{Deserialize, Serialize};

/// Where a route is read that rendezvous hashing would send elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Of which segments.
    pub key: RouteKey,
    /// Holders with their parts of the reads, in any unit; none: rendezvous hashing holds again.
    pub holders: Vec<(WorkerId, u32)>,
}

/// What is new in the routing table since a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesDelta {
    /// Version of the table that this makes.
    pub version: u64,
    /// The table that it is to be applied to; 0: these are all routes.
    pub base: u64,
    /// Routes that are new, changed, or (without holders) gone.
    pub routes: Vec<Route>,
}

/// The routing table: only what differs from rendezvous hashing.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    version: u64,
    routes: HashMap<RouteKey, Arc<[(WorkerId, u32)]>>,
}

impl RouteTable {
    /// Its version; 0 before the first delta.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The holders of a route with their parts of the reads; none where rendezvous hashing says where it is read.
    pub fn holders(&self, key: RouteKey) -> Option<&Arc<[(WorkerId, u32)]>> {
        self.routes.get(&key)
    }

    /// How many routes it names.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether rendezvous hashing holds for all routes.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// The table with a delta applied; none when the delta is for another version than this, so that all is to be asked
    /// for anew.
    pub fn with(&self, delta: RoutesDelta) -> Option<Self> {
        let mut routes = match delta.base {
            0 => HashMap::with_capacity(delta.routes.len()),
            base if base == self.version => self.routes.clone(),
            _ => return None,
        };
        for Route { key, holders } in delta.routes {
            if holders.is_empty() {
                routes.remove(&key);
            } else {
                routes.insert(key, holders.into());
            }
        }
        debug_assert!(routes.values().all(|holders| !holders.is_empty()), "a route without holders is none");
        Some(Self { version: delta.version, routes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(key: u64, holders: &[u64]) -> Route {
        Route { key: RouteKey(key), holders: holders.iter().map(|worker| (WorkerId(*worker), 1)).collect() }
    }

    #[test]
    fn deltas_add_change_and_take_away() {
        let all = RoutesDelta { version: 5, base: 0, routes: vec![route(1, &[7]), route(2, &[7, 8])] };
        let table = RouteTable::default().with(all).unwrap();
        assert_eq!((table.version(), table.len()), (5, 2));
        let delta = RoutesDelta { version: 6, base: 5, routes: vec![route(1, &[]), route(2, &[9]), route(3, &[7])] };
        let next = table.with(delta.clone()).unwrap();
        assert!(next.holders(RouteKey(1)).is_none());
        assert_eq!(next.holders(RouteKey(2)).unwrap()[..], [(WorkerId(9), 1)]);
        assert_eq!((next.version(), next.len(), next.is_empty()), (6, 2, false));
        assert!(next.with(delta).is_none(), "it is for version 5");
        let anew = RoutesDelta { version: 9, base: 0, routes: vec![] };
        assert!(next.with(anew).unwrap().is_empty());
    }
}
