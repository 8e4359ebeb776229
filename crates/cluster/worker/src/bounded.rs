//! What is remembered up to a number of entries, in memory that grows with those that there are.

use std::hash::Hash;
use std::num::NonZeroUsize;

use lru::LruCache;

/// Remembers at most so many. What a worker may come to remember is megabytes, of which one that has just started, or has little to do,
/// needs none.
pub(crate) fn bounded<K: Hash + Eq, V>(most: usize) -> LruCache<K, V> {
    let mut entries = LruCache::unbounded();
    entries.resize(NonZeroUsize::new(most).expect("not 0"));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_when_there_are_too_many() {
        let mut entries = bounded(3);
        for number in 0..3 {
            assert_eq!(entries.push(number, ()), None);
        }
        assert!(entries.get(&0).is_some());
        assert_eq!(entries.push(3, ()), Some((1, ())));
        assert_eq!((entries.len(), entries.cap().get()), (3, 3));
    }
}
