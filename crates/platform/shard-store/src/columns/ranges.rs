//! Keys between two values, as ranges in the order that keys are kept in.

use std::ops::Bound;

use forebay_shard::{Key, KeyRange};

use super::{ColumnKind, Columns};

/// The least number below zero, as keys are kept: behind all others.
const BELOW_ZERO: u64 = 1 << 63;

impl Columns {
    /// The keys behind one, or all, as ranges in the order in which keys are printed and paged.
    pub fn keys_after(&self, after: Option<&Key>) -> Vec<KeyRange> {
        self.keys_between(after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone())), Bound::Unbounded)
    }

    /// The keys between two ends by their value: numbers below zero come first, and are kept behind the others.
    pub fn keys_between(&self, from: Bound<Key>, to: Bound<Key>) -> Vec<KeyRange> {
        if self.key().kind != ColumnKind::Int {
            return vec![KeyRange { from, to }];
        }
        let is_below_zero = |bound: &Bound<Key>| match bound {
            Bound::Included(Key::U64(key)) | Bound::Excluded(Key::U64(key)) => Some(*key >= BELOW_ZERO),
            _ => None,
        };
        let (first, last) = (is_below_zero(&from), is_below_zero(&to));
        let below = (first != Some(false)).then(|| KeyRange {
            from: if first.is_some() { from.clone() } else { Bound::Included(Key::U64(BELOW_ZERO)) },
            to: if last == Some(true) { to.clone() } else { Bound::Unbounded },
        });
        let others = (last != Some(true)).then(|| KeyRange {
            from: if first == Some(false) { from } else { Bound::Included(Key::U64(0)) },
            to: if last.is_some() { to } else { Bound::Excluded(Key::U64(BELOW_ZERO)) },
        });
        below.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Column;

    fn columns(kind: ColumnKind) -> Columns {
        Columns::new(vec![Column::new("k", kind), Column::new("v", ColumnKind::Text)], "k").unwrap()
    }

    #[test]
    fn numbers_on_both_sides_of_zero_are_in_the_ranges_and_no_others_are() {
        let (columns, ends) = (columns(ColumnKind::Int), [i64::MIN, -7, -1, 0, 1, 9, i64::MAX]);
        let bounds = || ends.into_iter().flat_map(|end| [Some((end, true)), Some((end, false))]).chain([None]);
        for (from, to) in bounds().flat_map(|from| bounds().map(move |to| (from, to))) {
            let bound = |end: Option<(i64, bool)>| match end {
                Some((end, true)) => Bound::Included(Key::U64(end as u64)),
                Some((end, false)) => Bound::Excluded(Key::U64(end as u64)),
                None => Bound::Unbounded,
            };
            let ranges = columns.keys_between(bound(from), bound(to));
            for key in ends.into_iter().flat_map(|end| [end.saturating_sub(1), end, end.saturating_add(1)]) {
                let is_from = from.is_none_or(|(end, belongs)| end < key || belongs && end == key);
                let is_to = to.is_none_or(|(end, belongs)| key < end || belongs && key == end);
                let is_in = ranges.iter().any(|range| range.contains(&Key::U64(key as u64)));
                assert_eq!(is_in, is_from && is_to, "{key} of {from:?} to {to:?}");
            }
        }
    }

    #[test]
    fn what_is_behind_a_key_comes_in_the_order_of_values() {
        let signed = columns(ColumnKind::Int);
        let has = |after: Option<i64>| {
            let ranges = signed.keys_after(after.map(|key| Key::U64(key as u64)).as_ref());
            ranges.iter().map(|range| [-8i64, -2, 3].map(|key| range.contains(&Key::U64(key as u64)))).collect::<Vec<_>>()
        };
        assert_eq!(has(None), [[true, true, false], [false, false, true]]);
        assert_eq!(has(Some(-5)), [[false, true, false], [false, false, true]]);
        assert_eq!(has(Some(2)), [[false, false, true]]);
        assert_eq!(columns(ColumnKind::Uint).keys_after(None), [KeyRange::all()]);
    }
}
