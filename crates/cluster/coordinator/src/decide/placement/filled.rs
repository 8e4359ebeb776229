//! What fills the workers' tiers, by mount and by table: who holds how much of the segments that are known.

use std::collections::{BTreeMap, HashMap};

use forebay_placement::folder;
use forebay_protocol::{Filled, FilledBytes, FilledPart};
use forebay_types::{Cell, MountId, MountName, WorkerId};

use super::Placement;
use super::segments::Tracked;

/// Workers that are told of one by one at most.
const WORKERS_MAX: usize = 256;

/// What is held of a mount, or of a table in it.
struct Sum<'a> {
    mount: MountId,
    table: Option<&'a str>,
    held: FilledBytes,
    /// On each worker; empty as long as nobody asks.
    by_worker: Vec<u64>,
}

impl<'a> Sum<'a> {
    fn of(mount: MountId, table: Option<&'a str>) -> Self {
        Self { mount, table, held: FilledBytes::default(), by_worker: Vec::new() }
    }

    fn add(&mut self, of: &FilledBytes) {
        let held = &mut self.held;
        held.segments += of.segments;
        held.popularity += of.popularity;
        held.bytes = held.bytes.saturating_add(of.bytes);
        held.decoded_bytes = held.decoded_bytes.saturating_add(of.decoded_bytes);
        held.distinct_bytes = held.distinct_bytes.saturating_add(of.distinct_bytes);
    }

    fn add_workers(&mut self, tracked: &Tracked, workers: &[WorkerId]) {
        self.by_worker.resize(workers.len(), 0);
        for (worker, replica) in &tracked.replicas {
            if let Ok(place) = workers.binary_search(worker) {
                self.by_worker[place] = self.by_worker[place].saturating_add(replica.held_bytes);
            }
        }
    }
}

impl Placement {
    /// What workers hold of what is known: so many mounts and so many tables at most, those of which most is held.
    pub(crate) fn filled(&self, limit: usize, name: impl Fn(MountId) -> Option<MountName>) -> Filled {
        let workers: Vec<WorkerId> = self.workers.iter().copied().collect();
        let mut all = Sum::of(MountId(0), None);
        let mut mounts: BTreeMap<MountId, Sum<'_>> = BTreeMap::new();
        let mut tables: Vec<Sum<'_>> = Vec::new();
        // There may be half a million segments in few folders, and the state is locked: a table is looked for once a folder.
        let (mut of_folder, mut of_root) = (HashMap::new(), HashMap::new());
        let mut table_of = Vec::with_capacity(self.segments.len());
        for tracked in self.segments.values() {
            let (mount, key) = (tracked.version.mount, tracked.version.key.as_str());
            let table: usize = *of_folder.entry((mount, folder(key))).or_insert_with(|| {
                let root = self.datasets.of(mount, key);
                *of_root.entry((mount, root)).or_insert_with(|| {
                    tables.push(Sum::of(mount, Some(root)));
                    tables.len() - 1
                })
            });
            let held = self.held_of(tracked);
            tables[table].add(&held);
            let of_mount = mounts.entry(mount).or_insert_with(|| Sum::of(mount, None));
            of_mount.add(&held);
            of_mount.add_workers(tracked, &workers);
            all.add(&held);
            table_of.push(table);
        }
        let shown = most(&tables, limit);
        let mut is_shown = vec![false; tables.len()];
        shown.iter().for_each(|table| is_shown[*table] = true);
        for (tracked, table) in self.segments.values().zip(table_of) {
            if is_shown[table] {
                tables[table].add_workers(tracked, &workers);
            }
        }
        let mounts: Vec<Sum<'_>> = mounts.into_values().collect();
        let columns = columns(&mounts, workers.len());
        let part = |sum: &Sum<'_>| {
            Some(FilledPart {
                mount: name(sum.mount)?,
                table: sum.table.map(str::to_string),
                held: sum.held,
                by_worker: columns.iter().map(|column| sum.by_worker[*column]).collect(),
            })
        };
        Filled {
            workers_known: workers.len() as u64,
            mounts_known: mounts.len() as u64,
            tables_known: tables.len() as u64,
            all: all.held,
            mounts: most(&mounts, limit).into_iter().filter_map(|mount| part(&mounts[mount])).collect(),
            tables: shown.into_iter().filter_map(|table| part(&tables[table])).collect(),
            workers: columns.iter().map(|column| workers[*column]).collect(),
        }
    }

    /// One segment's copies.
    fn held_of(&self, tracked: &Tracked) -> FilledBytes {
        let held = tracked.replicas.values().map(|replica| replica.held_bytes);
        let bytes = held.fold(0, u64::saturating_add);
        FilledBytes {
            segments: 1,
            popularity: self.popularity.of(tracked.segment).accesses,
            bytes,
            decoded_bytes: if Cell::of_index(tracked.index).is_some() { bytes } else { 0 },
            distinct_bytes: tracked.used_bytes(),
        }
    }
}

/// The places of those of which most is held, in that order.
fn most(sums: &[Sum<'_>], limit: usize) -> Vec<usize> {
    let by_bytes = |one: &usize, other: &usize| {
        let (one, other) = (&sums[*one], &sums[*other]);
        other.held.bytes.cmp(&one.held.bytes).then_with(|| (one.mount, one.table).cmp(&(other.mount, other.table)))
    };
    let mut places: Vec<usize> = (0..sums.len()).collect();
    if places.len() > limit && limit > 0 {
        places.select_nth_unstable_by(limit - 1, by_bytes);
    }
    places.truncate(limit);
    places.sort_unstable_by(by_bytes);
    places
}

/// Of so many workers the places of those that hold most, ascending.
fn columns(mounts: &[Sum<'_>], workers: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..workers).collect();
    if workers > WORKERS_MAX {
        let held = |worker: &usize| mounts.iter().fold(0u64, |sum, mount| sum.saturating_add(mount.by_worker[*worker]));
        columns.sort_by_cached_key(|worker| std::cmp::Reverse(held(worker)));
        columns.truncate(WORKERS_MAX);
        columns.sort_unstable();
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_workers_those_that_hold_most_are_told_of() {
        let mut sum = Sum::of(MountId(1), None);
        sum.by_worker = (0..300).collect();
        // Places are not the order of what is held.
        sum.by_worker.swap(7, 299);
        let told = columns(std::slice::from_ref(&sum), 300);
        assert_eq!((told.len(), told[0], told[1]), (WORKERS_MAX, 7, 44));
        assert!(told.is_sorted() && !told.contains(&299));
        assert_eq!(columns(&[], 3), [0, 1, 2]);
    }
}
