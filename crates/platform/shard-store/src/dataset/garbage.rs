//! Which objects of a dataset nobody needs any more.

use std::collections::HashSet;
use std::time::Duration;

/// How long an object that no manifest names stays, and a manifest counts after the next one came: whoever stores objects says so in a
/// manifest within half of it, and whoever has opened a manifest reads by it so long.
pub const GARBAGE_AFTER: Duration = Duration::from_secs(24 * 3600);

/// An object, by its name, with the time of its last modification in milliseconds, as shared storage tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<N> {
    /// Its name; the number of a manifest.
    pub name: N,
    /// When it was written.
    pub modified_ms: i64,
}

/// The numbers of the manifests that may be read by still, in order: the last one, and those whose next one is younger than `after`.
pub fn needed(manifests: &[Stored<u64>], now_ms: i64, after: Duration) -> Vec<u64> {
    let mut sorted: Vec<&Stored<u64>> = manifests.iter().collect();
    sorted.sort_by_key(|manifest| manifest.name);
    let is_needed = |place: usize| sorted.get(place + 1).is_none_or(|next| !is_old(next.modified_ms, now_ms, after));
    (0..sorted.len()).filter(|place| is_needed(*place)).map(|place| sorted[place].name).collect()
}

/// The objects below `data/`, of those that were listed before anything else was read, that are not among the names of what is needed
/// and that nobody can be about to name; at most `most` of them.
pub fn garbage<'o>(
    objects: &'o [Stored<String>],
    named: &HashSet<String>,
    now_ms: i64,
    after: Duration,
    most: usize,
) -> Vec<&'o str> {
    let is_garbage = |object: &&Stored<String>| !named.contains(&object.name) && is_old(object.modified_ms, now_ms, after);
    let garbage: Vec<&str> = objects.iter().filter(is_garbage).map(|object| object.name.as_str()).take(most).collect();
    debug_assert!(garbage.iter().all(|name| !named.contains(*name)), "what is named stays");
    garbage
}

fn is_old(modified_ms: i64, now_ms: i64, after: Duration) -> bool {
    let age = now_ms.saturating_sub(modified_ms);
    u128::try_from(age).is_ok_and(|age| age > after.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_millis(100);

    fn stored<N>(name: N, modified_ms: i64) -> Stored<N> {
        Stored { name, modified_ms }
    }

    #[test]
    fn a_manifest_counts_until_the_next_one_is_old() {
        let manifests = [stored(3, 500), stored(1, 0), stored(2, 100)];
        assert_eq!(needed(&manifests, 500, AFTER), [2, 3], "the first one's next one is of 100, and it is 500 now");
        assert_eq!(needed(&manifests, 601, AFTER), [3]);
        assert_eq!(needed(&manifests, 150, AFTER), [1, 2, 3]);
        assert_eq!(needed(&[stored(9, 0)], i64::MAX, AFTER), [9], "the last one always");
        assert!(needed(&[], 0, AFTER).is_empty());
    }

    #[test]
    fn what_is_named_or_young_stays() {
        let objects = ["a", "b", "c", "d"].map(|name| stored(name.to_string(), 0));
        let objects = [&objects[..], &[stored("young".to_string(), 950)]].concat();
        let needed = HashSet::from(["a", "x", "c"].map(str::to_string));
        assert_eq!(garbage(&objects, &needed, 1000, AFTER, 10), ["b", "d"]);
        assert_eq!(garbage(&objects, &needed, 1000, AFTER, 1), ["b"], "a part at a time");
        assert!(garbage(&objects, &needed, 100, AFTER, 10).is_empty(), "not old yet");
        assert!(garbage(&objects, &needed, i64::MIN, AFTER, 10).is_empty(), "of the future");
    }
}
