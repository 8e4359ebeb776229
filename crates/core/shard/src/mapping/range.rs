//! Keys between two ends.

use std::ops::Bound;

use crate::model::key::Key;

/// Keys between two ends, in the order of keys. There may be none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// None of them is below this.
    pub from: Bound<Key>,
    /// None of them is above this.
    pub to: Bound<Key>,
}

impl KeyRange {
    /// All keys.
    pub fn all() -> Self {
        Self { from: Bound::Unbounded, to: Bound::Unbounded }
    }

    /// One key.
    pub fn one(key: Key) -> Self {
        Self { from: Bound::Included(key.clone()), to: Bound::Included(key) }
    }

    /// Keys of bytes that begin with these.
    pub fn beginning(prefix: &[u8]) -> Self {
        let to = match prefix.iter().rposition(|byte| *byte < u8::MAX) {
            None => Bound::Unbounded,
            Some(last) => {
                let mut above = prefix[..=last].to_vec();
                above[last] += 1;
                debug_assert!(!above.starts_with(prefix) && above.as_slice() > prefix, "none of them is as high");
                Bound::Excluded(Key::Bytes(above))
            }
        };
        Self { from: Bound::Included(Key::Bytes(prefix.to_vec())), to }
    }

    /// Whether there are none of them, by their ends: between two numbers one after the other that is not said.
    pub fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        }
    }

    /// Whether a key is one of them.
    pub fn contains(&self, key: &Key) -> bool {
        let is_from = match &self.from {
            Bound::Included(from) => from <= key,
            Bound::Excluded(from) => from < key,
            Bound::Unbounded => true,
        };
        let is_to = match &self.to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        is_from && is_to
    }

    /// The keys of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        // Of two ends that name one key that which leaves it out is the narrower one.
        let end = |bound: &Bound<Key>| match bound {
            Bound::Included(key) => Some((key.clone(), false)),
            Bound::Excluded(key) => Some((key.clone(), true)),
            Bound::Unbounded => None,
        };
        let bound = |end: Option<(Key, bool)>| match end {
            Some((key, true)) => Bound::Excluded(key),
            Some((key, false)) => Bound::Included(key),
            None => Bound::Unbounded,
        };
        let from = end(&self.from).max(end(&other.from));
        let to = match (end(&self.to), end(&other.to)) {
            (Some((one, is_out)), Some((another, is_another_out))) => Some(match one.cmp(&another) {
                std::cmp::Ordering::Less => (one, is_out),
                std::cmp::Ordering::Equal => (one, is_out || is_another_out),
                std::cmp::Ordering::Greater => (another, is_another_out),
            }),
            (one, another) => one.or(another),
        };
        Self { from: bound(from), to: bound(to) }
    }
}
