//! Which keys a test of the key's column leaves.

use std::ops::Bound;

use forebay_shard::{Key, KeyRange, KeyType};

use super::Test;
use crate::columns::Columns;
use crate::literal::Literal;

impl Test {
    /// Ranges that have all keys which pass this test of the key's column; none where it is not known which these are.
    pub fn key_ranges(&self, columns: &Columns) -> Option<Vec<KeyRange>> {
        let key = |literal: &Literal| columns.key_of(literal).ok();
        Some(match (self, columns.key_type()) {
            (Self::Eq(literal), _) => vec![KeyRange::one(key(literal)?)],
            (Self::In(literals), _) => {
                literals.iter().map(|literal| key(literal).map(KeyRange::one)).collect::<Option<Vec<_>>>()?
            }
            (Self::Prefix(Literal::Text(text)), KeyType::Bytes) => vec![KeyRange::beginning(text.as_bytes())],
            (Self::Prefix(Literal::Bytes(bytes)), KeyType::Bytes) => vec![KeyRange::beginning(bytes)],
            (Self::Range(from, to), _) => {
                let bound = |end: &Option<(Literal, bool)>| -> Option<Bound<Key>> {
                    match end {
                        None => Some(Bound::Unbounded),
                        Some((literal, true)) => key(literal).map(Bound::Included),
                        Some((literal, false)) => key(literal).map(Bound::Excluded),
                    }
                };
                columns.keys_between(bound(from)?, bound(to)?)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Column, ColumnKind};

    fn columns(kind: ColumnKind) -> Columns {
        Columns::new(vec![Column::new("k", kind), Column::new("v", ColumnKind::Text)], "k").unwrap()
    }

    fn text(text: &str) -> Literal {
        Literal::Text(text.into())
    }

    #[test]
    fn tests_that_say_where_keys_are_give_ranges_and_others_none() {
        let columns = columns(ColumnKind::Text);
        let ranges = |test: Test| test.key_ranges(&columns);
        let key = |text: &str| KeyRange::one(Key::from(text));
        assert_eq!(ranges(Test::In(vec![text("a"), text("b")])), Some(vec![key("a"), key("b")]));
        assert_eq!(ranges(Test::Eq(text("a"))), Some(vec![key("a")]));
        assert_eq!(ranges(Test::Prefix(text("ab"))), Some(vec![KeyRange::beginning(b"ab")]));
        let between = KeyRange { from: Bound::Excluded(Key::from("a")), to: Bound::Unbounded };
        assert_eq!(ranges(Test::Range(Some((text("a"), false)), None)), Some(vec![between]));
        for unknown in [Test::Suffix(text("a")), Test::Contains(text("a")), Test::IgnoringCase(Box::new(Test::Eq(text("a"))))] {
            assert_eq!(ranges(unknown), None);
        }
    }

    #[test]
    fn numbers_that_are_no_keys_say_nothing() {
        let number = |number: i64| Literal::Number(number.into());
        assert_eq!(Test::Eq(number(-1)).key_ranges(&columns(ColumnKind::Uint)), None);
        assert_eq!(Test::Prefix(text("1")).key_ranges(&columns(ColumnKind::Int)), None);
        let above = Test::Range(Some((number(-2), true)), Some((number(3), true)));
        assert_eq!(above.key_ranges(&columns(ColumnKind::Int)).map(|ranges| ranges.len()), Some(2), "on both sides of zero");
    }
}
