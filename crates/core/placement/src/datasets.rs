//! Which objects are one dataset: those below the root of a table, however its partitions are laid out below it.

use std::collections::BTreeMap;

use forebay_types::MountId;

/// Roots that are remembered of one operation: a query reads few tables.
const READ_MAX: usize = 8;
/// Roots that are remembered at most; those seen longest ago are forgotten first.
const ROOTS_MAX: usize = 10_000;

/// The folder of a key, without a `/` at its end.
pub fn folder(key: &str) -> &str {
    key.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// What one operation reads, by tables: the longest common prefixes of folders that differ like partitions do.
///
/// ```
/// use forebay_placement::Reading;
/// use forebay_types::MountId;
///
/// let mut reading = Reading::default();
/// for key in ["t/2024/01/a", "t/2024/02/a", "t/2025/01/a", "other/a"] {
///     reading.reads(MountId(1), key);
/// }
/// assert_eq!(reading.roots().collect::<Vec<_>>(), [(MountId(1), "t")], "the other table has one folder only");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reading(Vec<(MountId, String, bool)>);

impl Reading {
    /// An object is read.
    pub fn reads(&mut self, mount: MountId, key: &str) {
        let folder = folder(key);
        for (of, root, is_common) in &mut self.0 {
            if *of != mount {
                continue;
            }
            if is_within(folder, root) {
                return;
            }
            if let Some(len) = common(root, folder) {
                root.truncate(len);
                *is_common = true;
                return;
            }
        }
        if self.0.len() < READ_MAX {
            self.0.push((mount, folder.to_string(), false));
        }
        debug_assert!(self.0.len() <= READ_MAX, "an operation reads few tables");
    }

    /// The roots under which it read several folders.
    pub fn roots(&self) -> impl Iterator<Item = (MountId, &str)> {
        self.0.iter().filter(|(_, _, is_common)| *is_common).map(|(mount, root, _)| (*mount, root.as_str()))
    }
}

/// The datasets that were learned from what operations read together.
///
/// ```
/// use forebay_placement::Datasets;
/// use forebay_types::MountId;
///
/// let mut datasets = Datasets::default();
/// let of = |datasets: &Datasets, key| datasets.of(MountId(1), key).to_string();
/// assert_eq!(of(&datasets, "t/dt=1/hour=02/a.parquet"), "t", "as Hive lays tables out");
/// assert_eq!(of(&datasets, "logs/2024/01/a.json"), "logs/2024/01", "nothing is known of it");
/// datasets.learn(7, MountId(1), "logs");
/// assert_eq!(of(&datasets, "logs/2024/01/a.json"), "logs");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Datasets {
    /// With the window in which each was seen last.
    roots: BTreeMap<MountId, BTreeMap<String, u64>>,
}

impl Datasets {
    /// An operation has read several folders below a root.
    pub fn learn(&mut self, window: u64, mount: MountId, root: &str) {
        let roots = self.roots.entry(mount).or_default();
        if let Some(seen) = roots.get_mut(root) {
            *seen = (*seen).max(window);
            return;
        }
        roots.insert(root.to_string(), window);
        if self.roots.values().map(BTreeMap::len).sum::<usize>() > ROOTS_MAX {
            self.forget_oldest();
        }
    }

    /// The root of the dataset that an object is of: where its partitions begin, the outermost root that was learned, or its folder.
    pub fn of<'k>(&self, mount: MountId, key: &'k str) -> &'k str {
        let folder = folder(key);
        let partitioned = partitions(folder).map_or(folder, |at| &folder[..at]);
        let Some(roots) = self.roots.get(&mount) else { return partitioned };
        let ends = std::iter::once(0).chain(partitioned.match_indices('/').map(|(at, _)| at));
        let root = ends.map(|end| &partitioned[..end]).find(|root| roots.contains_key(*root)).unwrap_or(partitioned);
        debug_assert!(is_within(folder, root), "an object lies below the root of its dataset");
        root
    }

    /// Only these mounts are left.
    pub fn retain(&mut self, stays: impl Fn(MountId) -> bool) {
        self.roots.retain(|mount, _| stays(*mount));
    }

    fn forget_oldest(&mut self) {
        let all = self.roots.iter().flat_map(|(mount, roots)| roots.iter().map(|(root, seen)| (*seen, *mount, root.clone())));
        if let Some((_, mount, root)) = all.min() {
            self.roots.entry(mount).or_default().remove(&root);
        }
    }
}

/// Where the first component that names a partition begins, as in `dt=2024-01-01`, with the `/` before it.
fn partitions(folder: &str) -> Option<usize> {
    let mut start = 0;
    for component in folder.split('/') {
        if component.contains('=') {
            return Some(start.max(1) - 1);
        }
        start += component.len() + 1;
    }
    None
}

fn is_within(folder: &str, root: &str) -> bool {
    root.is_empty() || folder.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The length of what two folders have in common, when they go on from there as partitions do: by components that are alike but for
/// their digits, or but for the value behind a `=`. None for two tables side by side.
fn common(one: &str, other: &str) -> Option<usize> {
    let mut len = 0;
    for (mine, theirs) in one.split('/').zip(other.split('/')) {
        if mine != theirs {
            return are_alike(mine, theirs).then(|| len.max(1) - 1);
        }
        len += mine.len() + 1;
    }
    // One lies within the other: the outer one is it.
    Some(len.max(1) - 1)
}

fn are_alike(one: &str, other: &str) -> bool {
    match (one.split_once('='), other.split_once('=')) {
        (Some((mine, _)), Some((theirs, _))) => mine == theirs,
        (None, None) => one.bytes().any(|byte| byte.is_ascii_digit()) && without_digits(one).eq(without_digits(other)),
        _ => false,
    }
}

fn without_digits(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAKE: MountId = MountId(1);

    fn roots(keys: &[&str]) -> Vec<String> {
        let mut reading = Reading::default();
        keys.iter().for_each(|key| reading.reads(LAKE, key));
        reading.roots().map(|(_, root)| root.to_string()).collect()
    }

    #[test]
    fn tables_that_are_joined_are_no_dataset_and_partitions_are() {
        assert_eq!(roots(&["h/lineitem/1/a", "h/orders/1/a", "h/lineitem/2/b", "h/orders/2/b"]), ["h/lineitem", "h/orders"]);
        assert_eq!(roots(&["h/lineitem/a", "h/orders/a"]), [""; 0]);
        assert_eq!(roots(&["t/dt=1/hour=1/a", "t/dt=2/hour=1/a"]), ["t"]);
        assert_eq!(roots(&["t/country=de/a", "t/country=fr/a", "t/year=1/a"]), ["t"]);
        assert_eq!(roots(&["2024/a", "2025/a"]), [""], "the mount is the table");
        assert_eq!(roots(&["t/a", "t/b", "t/1/c"]), [""; 0], "one folder");
        assert_eq!(roots(&["t/1/c", "t/a"]), ["t"]);
    }

    #[test]
    fn the_root_is_the_outermost_that_was_learned() {
        let mut datasets = Datasets::default();
        assert_eq!(datasets.of(LAKE, "a"), "");
        assert_eq!(datasets.of(LAKE, "dt=1/a"), "");
        assert_eq!(datasets.of(LAKE, "t/dt=1/h=2/a"), "t");
        for root in ["logs/2024", "logs"] {
            datasets.learn(1, LAKE, root);
        }
        assert_eq!(datasets.of(LAKE, "logs/2024/01/a"), "logs");
        assert_eq!(datasets.of(LAKE, "logs/a"), "logs");
        assert_eq!(datasets.of(MountId(2), "logs/2024/01/a"), "logs/2024/01");
        datasets.retain(|mount| mount != LAKE);
        assert_eq!(datasets.of(LAKE, "logs/2024/01/a"), "logs/2024/01");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut datasets = Datasets::default();
        for number in 0..ROOTS_MAX as u64 + 20 {
            datasets.learn(number, LAKE, &format!("t{number}"));
        }
        assert_eq!(datasets.roots[&LAKE].len(), ROOTS_MAX);
        assert_eq!(datasets.of(LAKE, "t0/x/y"), "t0/x", "the oldest are forgotten");
        let mut reading = Reading::default();
        (0..1000).for_each(|number| reading.reads(LAKE, &format!("{}/x", "t".repeat(number))));
        assert!(reading.0.len() <= READ_MAX);
    }

    proptest! {
        #[test]
        fn a_root_holds_what_it_was_learned_from(keys in prop::collection::vec("[a=1/]{0,12}", 1..12)) {
            let mut reading = Reading::default();
            let mut datasets = Datasets::default();
            keys.iter().for_each(|key| reading.reads(LAKE, key));
            reading.roots().for_each(|(mount, root)| datasets.learn(1, mount, root));
            for key in &keys {
                let root = datasets.of(LAKE, key);
                prop_assert!(is_within(folder(key), root), "{} in {}", key, root);
            }
        }
    }
}
