//! One answer of several shards'.

use std::cmp::Ordering;

use forebay_shard::Key;
use forebay_shard_store::ColumnKind;

/// The order in which keys of a column are printed and paged: numbers by their value, all else by its bytes.
pub(crate) fn order(kind: ColumnKind, a: &Key, b: &Key) -> Ordering {
    match (a, b) {
        // Numbers are kept without sign.
        (Key::U64(a), Key::U64(b)) if kind == ColumnKind::Int => (*a as i64).cmp(&(*b as i64)),
        _ => a.cmp(b),
    }
}

/// The lowest `limit` of ascending lists.
pub(crate) fn lowest(kind: ColumnKind, lists: Vec<Vec<Key>>, limit: Option<usize>) -> Vec<Key> {
    let mut all: Vec<Key> = lists.into_iter().flatten().collect();
    all.sort_by(|a, b| order(kind, a, b));
    all.truncate(limit.unwrap_or(usize::MAX));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_zero_come_first() {
        let keys = |numbers: &[i64]| numbers.iter().map(|number| Key::U64(*number as u64)).collect::<Vec<_>>();
        let lists = vec![keys(&[-5, 3]), keys(&[-7, 9]), vec![]];
        assert_eq!(lowest(ColumnKind::Int, lists.clone(), Some(3)), keys(&[-7, -5, 3]));
        assert_eq!(lowest(ColumnKind::Uint, lists, None), keys(&[3, 9, -7, -5]), "without sign they are the largest");
    }

    #[test]
    fn text_is_in_the_order_of_its_bytes() {
        let lists = vec![vec![Key::from("b")], vec![Key::from("a"), Key::from("ab")]];
        assert_eq!(lowest(ColumnKind::Text, lists, None), ["a", "ab", "b"].map(Key::from));
    }
}
