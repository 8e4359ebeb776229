//! What a decision works on as if on a copy: it counts once the decision is made, and is as it was where that fails in the middle.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A map that remembers what it had where it is changed, until the next decision begins. What is not changed costs nothing.
pub(in crate::decide) struct Kept<K, V> {
    now: BTreeMap<K, V>,
    before: BTreeMap<K, Option<V>>,
}

impl<K: Ord + Clone, V: Clone> Kept<K, V> {
    /// A decision begins: the one before counts.
    pub(in crate::decide) fn begin(&mut self) {
        self.before.clear();
    }

    /// The decision has failed: all is as it was when it began.
    pub(in crate::decide) fn put_back(&mut self) {
        for (key, before) in std::mem::take(&mut self.before) {
            if let Some(value) = before { drop(self.now.insert(key, value)) } else { drop(self.now.remove(&key)) }
        }
    }

    fn remember(&mut self, key: &K) {
        if let Entry::Vacant(entry) = self.before.entry(key.clone()) {
            entry.insert(self.now.get(key).cloned());
        }
    }

    pub(in crate::decide) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.remember(&key);
        self.now.insert(key, value)
    }

    pub(in crate::decide) fn remove(&mut self, key: &K) -> Option<V> {
        self.remember(key);
        self.now.remove(key)
    }

    pub(in crate::decide) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.remember(key);
        self.now.get_mut(key)
    }

    /// Takes those out that don't stay; gives their keys.
    pub(in crate::decide) fn retain(&mut self, stays: impl Fn(&K, &V) -> bool) -> Vec<K> {
        let gone: Vec<K> = self.now.iter().filter(|(key, value)| !stays(key, value)).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| drop(self.remove(key)));
        gone
    }
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), before: BTreeMap::new() }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Kept<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self { now: entries.into_iter().collect(), before: BTreeMap::new() }
    }
}

impl<K, V> Deref for Kept<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.now
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.now.fmt(f)
    }
}

/// What is too large to be copied, and is made anew where a decision has failed that may have changed it.
#[derive(Debug)]
pub(in crate::decide) struct Soft<T> {
    it: T,
    is_touched: bool,
}

impl<T> Soft<T> {
    pub(in crate::decide) fn new(it: T) -> Self {
        Self { it, is_touched: false }
    }

    /// A decision begins.
    pub(in crate::decide) fn begin(&mut self) {
        self.is_touched = false;
    }

    /// Whether it may have been changed since then.
    pub(in crate::decide) fn is_touched(&self) -> bool {
        self.is_touched
    }
}

impl<T> Deref for Soft<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.it
    }
}

impl<T> DerefMut for Soft<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.is_touched = true;
        &mut self.it
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_put_back_is_what_there_was(
            first in prop::collection::btree_map(0u8..8, 0u8..9, 0..8),
            changes in prop::collection::vec((0u8..8, 0u8..4), 0..20),
        ) {
            let mut kept: Kept<u8, u8> = first.clone().into_iter().collect();
            kept.begin();
            for (key, what) in changes {
                match what {
                    0 => drop(kept.insert(key, 99)),
                    1 => drop(kept.remove(&key)),
                    2 => drop(kept.retain(|other, _| *other != key)),
                    _ => if let Some(value) = kept.get_mut(&key) { *value += 1 },
                }
            }
            kept.put_back();
            prop_assert_eq!(&*kept, &first);
        }
    }
}
