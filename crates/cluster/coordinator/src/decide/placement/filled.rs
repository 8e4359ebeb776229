//! What fills the workers' tiers, by mount and by table: who holds how much of the segments that are known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use forebay_protocol::{Filled, FilledBytes, FilledPart};
use forebay_types::{Cell, MountId, MountName, WorkerId};

use super::Placement;
use super::segments::Tracked;
use super::status::first;

/// Workers that are told of one by one at most.
const WORKERS_MAX: usize = 256;

/// What is held of a mount, or of a table in it.
struct Sum<'a> {
    mount: MountId,
    table: Option<&'a str>,
    held: FilledBytes,
    /// Bytes on workers that hold some of it, by the workers' places, ascending: there may be as many tables as segments.
    on: Vec<(usize, u64)>,
}

impl<'a> Sum<'a> {
    fn of(mount: MountId, table: Option<&'a str>) -> Self {
        Self { mount, table, held: FilledBytes::default(), on: Vec::new() }
    }

    fn add(&mut self, of: &FilledBytes) {
        let held = &mut self.held;
        held.segments += of.segments;
        held.popularity += of.popularity;
        held.bytes = held.bytes.saturating_add(of.bytes);
        held.decoded_bytes = held.decoded_bytes.saturating_add(of.decoded_bytes);
        held.distinct_bytes = held.distinct_bytes.saturating_add(of.distinct_bytes);
    }

    fn add_on(&mut self, worker: usize, bytes: u64) {
        match self.on.binary_search_by_key(&worker, |(place, _)| *place) {
            Ok(at) => self.on[at].1 = self.on[at].1.saturating_add(bytes),
            Err(at) => self.on.insert(at, (worker, bytes)),
        }
    }

    /// Bytes on each of the workers at these places.
    fn by_worker(&self, columns: &[usize]) -> Vec<u64> {
        debug_assert!(self.on.is_sorted_by_key(|(worker, _)| *worker), "workers are in the order of their places");
        let on = |place: &usize| self.on.binary_search_by_key(place, |(worker, _)| *worker).map_or(0, |at| self.on[at].1);
        columns.iter().map(on).collect()
    }
}

impl Placement {
    /// What workers hold of what is known: so many mounts and so many tables at most, those of which most is held.
    pub(crate) fn filled(&self, limit: usize, name: impl Fn(MountId) -> Option<MountName>) -> Filled {
        let workers: Vec<WorkerId> = self.workers.iter().copied().collect();
        let tables = self.tables(&workers);
        let mut all = Sum::of(MountId(0), None);
        let mut mounts: BTreeMap<MountId, Sum<'_>> = BTreeMap::new();
        for table in &tables {
            let mount = mounts.entry(table.mount).or_insert_with(|| Sum::of(table.mount, None));
            mount.add(&table.held);
            table.on.iter().for_each(|(worker, bytes)| mount.add_on(*worker, *bytes));
            all.add(&table.held);
        }
        let mounts: Vec<Sum<'_>> = mounts.into_values().collect();
        debug_assert!(mounts.len() <= tables.len(), "a mount is here by a table in it");
        let columns = columns(&mounts, workers.len());
        let part = |sum: &Sum<'_>| {
            let table = sum.table.map(str::to_string);
            Some(FilledPart { mount: name(sum.mount)?, table, held: sum.held, by_worker: sum.by_worker(&columns) })
        };
        Filled {
            workers_known: workers.len() as u64,
            mounts_known: mounts.len() as u64,
            tables_known: tables.len() as u64,
            all: all.held,
            mounts: most(&mounts, limit).into_iter().filter_map(part).collect(),
            tables: most(&tables, limit).into_iter().filter_map(part).collect(),
            workers: columns.iter().map(|column| workers[*column]).collect(),
        }
    }

    /// What is held of each table. There may be half a million segments, and the state is locked: each is looked at once, and its table is
    /// looked for once a folder.
    fn tables(&self, workers: &[WorkerId]) -> Vec<Sum<'_>> {
        let mut tables: Vec<Sum<'_>> = Vec::new();
        let (mut of_folder, mut of_root) = (HashMap::new(), HashMap::new());
        for tracked in self.segments.values() {
            let table: usize = *of_folder.entry(tracked.folder).or_insert_with(|| {
                let (mount, key) = (tracked.version.mount, tracked.version.key.as_str());
                let root = self.datasets.of(mount, key);
                *of_root.entry((mount, root)).or_insert_with(|| {
                    tables.push(Sum::of(mount, Some(root)));
                    tables.len() - 1
                })
            });
            let table = &mut tables[table];
            for (worker, replica) in tracked.replicas.iter().filter(|(_, replica)| replica.held_bytes > 0) {
                if let Ok(place) = workers.binary_search(&worker) {
                    table.add_on(place, replica.held_bytes);
                }
            }
            table.add(&self.held_of(tracked));
        }
        tables
    }

    /// One segment's copies.
    fn held_of(&self, tracked: &Tracked) -> FilledBytes {
        let bytes = tracked.replicas.iter().map(|(_, replica)| replica.held_bytes).fold(0, u64::saturating_add);
        FilledBytes {
            segments: 1,
            popularity: tracked.heat.at(self.popularity.window()),
            bytes,
            decoded_bytes: if Cell::of_index(tracked.index).is_some() { bytes } else { 0 },
            distinct_bytes: tracked.used_bytes(),
        }
    }
}

/// Those of which most is held, that with most first.
fn most<'s, 'a>(sums: &'s [Sum<'a>], limit: usize) -> Vec<&'s Sum<'a>> {
    let by_bytes = |one: &&Sum<'_>, other: &&Sum<'_>| {
        other.held.bytes.cmp(&one.held.bytes).then_with(|| (one.mount, one.table).cmp(&(other.mount, other.table)))
    };
    first(sums.iter(), limit, by_bytes)
}

/// Of so many workers the places of those that hold most, ascending.
fn columns(mounts: &[Sum<'_>], workers: usize) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..workers).collect();
    if workers > WORKERS_MAX {
        let mut held = vec![0u64; workers];
        for (worker, bytes) in mounts.iter().flat_map(|mount| &mount.on) {
            held[*worker] = held[*worker].saturating_add(*bytes);
        }
        columns.sort_by_key(|worker| Reverse(held[*worker]));
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
        // Not in the order of what they hold.
        (0..300).rev().for_each(|worker| sum.add_on(worker, if worker == 7 { 999 } else { worker as u64 }));
        sum.add_on(299, 1);
        let told = columns(std::slice::from_ref(&sum), 300);
        assert_eq!((told.len(), told[0], told[1]), (WORKERS_MAX, 7, 45));
        assert!(told.is_sorted());
        let by_worker = sum.by_worker(&told);
        assert_eq!((by_worker[0], by_worker[1], by_worker[WORKERS_MAX - 1]), (999, 45, 300));
        assert_eq!((columns(&[], 3), Sum::of(MountId(1), None).by_worker(&[0, 2])), (vec![0, 1, 2], vec![0, 0]));
    }
}
