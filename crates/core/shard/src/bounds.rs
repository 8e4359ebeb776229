//! What the values of an attribute lie between, in a few bytes: that no record of a shard meets a query may be known by it without the
//! shard.

use std::iter;
use std::ops::Bound;

use forebay_types::{Error, Result};

use crate::model::schema::Schema;
use crate::model::value::{Value, ValueType};
use crate::query::locate;
use crate::query::predicate::Query;
use crate::record::Record;
use crate::sections::{KEYS, ROWS};
use crate::shard::Shard;

/// The ends of the values of an attribute, in the bytes that are ordered as these are. Null is none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Not above the least value.
    pub least: Vec<u8>,
    /// Not below the greatest one; none where that has too many bytes to be rounded up.
    pub most: Option<Vec<u8>>,
}

impl Bounds {
    /// Bytes of an end at most: numbers of 64 bits, dates and times have fewer.
    pub const BYTES_MAX: usize = 12;

    /// Of the least and the greatest value.
    pub fn of(least: &[u8], greatest: &[u8]) -> Self {
        debug_assert!(least <= greatest, "values are in the order of their bytes");
        Self { least: least[..least.len().min(Self::BYTES_MAX)].to_vec(), most: not_below(greatest) }
    }

    /// Of the values of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (least, most) = (self.least.min(other.least), self.most.zip(other.most).map(|(one, other)| one.max(other)));
        debug_assert!(most.as_ref().is_none_or(|most| least <= *most), "one end is not above the other");
        Self { least, most }
    }

    /// Whether no value is between these.
    fn exclude(&self, of: ValueType, from: Bound<&Value>, to: Bound<&Value>) -> bool {
        let is_below = match (&self.most, end(of, from)) {
            (Some(most), Bound::Included(from)) => *most < from,
            (Some(most), Bound::Excluded(from)) => *most <= from,
            _ => false,
        };
        let is_above = match end(of, to) {
            Bound::Included(to) => self.least > to,
            Bound::Excluded(to) => self.least >= to,
            Bound::Unbounded => false,
        };
        is_below || is_above
    }

    /// Whether no value begins with these bytes.
    fn exclude_prefix(&self, prefix: &[u8]) -> bool {
        let is_below = self.most.as_ref().is_some_and(|most| most.as_slice() < prefix);
        is_below || (self.least.as_slice() > prefix && !self.least.starts_with(prefix))
    }
}

/// The bytes of an end; none of what has none, and nothing is known by.
fn end(of: ValueType, value: Bound<&Value>) -> Bound<Vec<u8>> {
    let bytes = |value: &Value| {
        let mut bytes = Vec::new();
        of.encode(value, &mut bytes).is_ok_and(|is_value| is_value).then_some(bytes)
    };
    match value {
        Bound::Included(value) => bytes(value).map_or(Bound::Unbounded, Bound::Included),
        Bound::Excluded(value) => bytes(value).map_or(Bound::Unbounded, Bound::Excluded),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The value, or what is above all that begin as it does.
fn not_below(value: &[u8]) -> Option<Vec<u8>> {
    if value.len() <= Bounds::BYTES_MAX {
        return Some(value.to_vec());
    }
    let last = value[..Bounds::BYTES_MAX].iter().rposition(|byte| *byte < u8::MAX)?;
    let mut above = value[..=last].to_vec();
    above[last] += 1;
    debug_assert!(above.as_slice() > value, "what is cut is rounded up");
    Some(above)
}

/// Whether no record meets a query, by what the values of each attribute lie between; none where that is not known.
pub fn is_excluded(query: &Query, schema: &Schema, bounds: &[Option<Bounds>]) -> bool {
    let known = |attribute: usize| Some((bounds.get(attribute)?.as_ref()?, schema.attributes.get(attribute)?.value_type));
    match query {
        Query::Eq { attribute, value } => {
            known(*attribute).is_some_and(|(bounds, of)| bounds.exclude(of, Bound::Included(value), Bound::Included(value)))
        }
        Query::Range { attribute, from, to } => {
            known(*attribute).is_some_and(|(bounds, of)| bounds.exclude(of, from.as_ref(), to.as_ref()))
        }
        Query::Prefix { attribute, prefix } => {
            known(*attribute).is_some_and(|(bounds, of)| of.is_string() && bounds.exclude_prefix(prefix))
        }
        Query::And(queries) => queries.iter().any(|query| is_excluded(query, schema, bounds)),
        Query::Or(queries) => queries.iter().all(|query| is_excluded(query, schema, bounds)),
        Query::All | Query::Suffix { .. } | Query::Contains { .. } | Query::Regex { .. } | Query::Not(_) => false,
    }
}

impl Shard {
    /// What the values of each attribute lie between; none of one that has no values. Reads two records for each.
    pub fn bounds(&self) -> Result<Vec<Option<Bounds>>> {
        self.base.need(KEYS | ROWS)?;
        (0..self.schema().attributes.len()).map(|attribute| self.bounds_of(attribute)).collect()
    }

    fn bounds_of(&self, attribute: usize) -> Result<Option<Bounds>> {
        let all = Query::range(attribute, Bound::Unbounded, Bound::Unbounded);
        let Some(rows) = all.rows(&*self.base)?.filter(|rows| !rows.is_empty()) else { return Ok(None) };
        let set = self.layers.load();
        let value = |row: u32| -> Result<Vec<u8>> {
            let lost = || Error::corrupt("a row of a shard is in none of its records; build it again");
            let (mut found, mut record) = (Vec::new(), Record::new());
            locate::records(&self.base, &set, attribute, iter::once(row), &mut found);
            let key = self.base.keys.get(*found.first().ok_or_else(lost)?);
            self.get_into(&key, Some(&[attribute]), &mut record)?;
            record.bytes(0).map(<[u8]>::to_vec).ok_or_else(lost)
        };
        Ok(Some(Bounds::of(&value(rows.start)?, &value(rows.end - 1)?)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::key::{Key, KeyType};

    fn schema() -> Schema {
        Schema::new("key", KeyType::U64).with("word", ValueType::Text).with("number", ValueType::Int).with("void", ValueType::Int)
    }

    fn shard(records: &[(Option<String>, i64)]) -> Shard {
        let mut builder = crate::Builder::new(schema()).unwrap();
        for (key, (word, number)) in (0u64..).zip(records) {
            let word = word.clone().map_or(Value::Null, Value::Text);
            builder.push(&Key::U64(key), &[word, Value::Int(*number), Value::Null]).unwrap();
        }
        Shard::open(builder.finish(0.0).unwrap().base, Vec::<bytes::Bytes>::new()).unwrap()
    }

    #[test]
    fn ends_are_those_of_the_values_in_few_bytes() {
        let long = "z".repeat(40);
        let shard = shard(&[(Some("b".into()), -300), (None, 7), (Some(long.clone()), 70_000)]);
        let bounds = shard.bounds().unwrap();
        let words = bounds[0].as_ref().unwrap();
        assert_eq!((words.least.as_slice(), words.most.as_deref()), (&b"b"[..], Some(&b"zzzzzzzzzzz{"[..])));
        assert_eq!(bounds[2], None, "of no values nothing is said");
        let is_out = |query: Query| {
            let is_out = is_excluded(&query, &schema(), &bounds);
            assert!(!is_out || shard.count(&query).unwrap() == 0, "{query:?}");
            is_out
        };
        let text = |text: &str| Value::Text(text.into());
        let numbers = |from, to| Query::range(1, from, to);
        use Bound::{Excluded, Included, Unbounded};
        for out in [
            Query::eq(0, text("a")),
            Query::eq(0, text("{")),
            Query::eq(1, Value::Int(-301)),
            Query::prefix(0, b"a"),
            Query::prefix(0, b"{"),
            numbers(Excluded(Value::Int(70_000)), Unbounded),
            numbers(Unbounded, Excluded(Value::Int(-300))),
            Query::And(vec![Query::All, Query::eq(0, text(""))]),
            Query::Or(vec![Query::eq(0, text("a")), Query::eq(1, Value::Int(1 << 40))]),
        ] {
            assert!(is_out(out.clone()), "{out:?}");
        }
        for not_out in [
            Query::eq(0, text("b")),
            Query::eq(0, Value::Null),
            Query::eq(0, text(&long)),
            Query::eq(2, Value::Int(1)),
            Query::prefix(0, b""),
            Query::prefix(0, b"zz"),
            Query::suffix(0, b"q"),
            numbers(Included(Value::Int(70_000)), Unbounded),
            numbers(Unbounded, Included(Value::Int(-300))),
            Query::Or(vec![Query::eq(0, text("a")), Query::All]),
            Query::And(vec![]),
            Query::negated(Query::eq(0, text("a"))),
        ] {
            assert!(!is_out(not_out.clone()), "{not_out:?}");
        }
        assert!(!is_excluded(&Query::eq(0, text("a")), &schema(), &[]), "nothing is known");
    }

    #[test]
    fn what_is_cut_is_rounded_outwards() {
        let ends = |least: &[u8], greatest: &[u8]| Bounds::of(least, greatest);
        assert_eq!(ends(b"", &[0xff; 40]).most, None, "nothing is above that");
        let mut value = vec![0xff; 40];
        value[0] = 3;
        assert_eq!(ends(b"", &value).most, Some(vec![4]));
        assert_eq!(ends(&[1; 40], &[1; 40]).least, [1; Bounds::BYTES_MAX]);
        let both = ends(b"c", b"d").and(ends(b"a", b"b"));
        assert_eq!(both, ends(b"a", b"d"));
        assert_eq!(both.and(ends(b"c", &[0xff; 40])).most, None);
    }

    /// Words that are alike, many of them longer than what is kept of them.
    fn word() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]{0,3}", "[ab]{11,14}", Just("\u{10ffff}".repeat(4))]
    }

    proptest! {
        #[test]
        fn no_record_meets_what_is_excluded(
            records in prop::collection::vec((prop::option::of(word()), -200i64..200), 1..12),
            (one, other) in (word(), word()),
            (low, high) in (-300i64..300, -300i64..300),
        ) {
            let shard = shard(&records);
            let bounds = shard.bounds().unwrap();
            let text = |text: &String| Value::Text(text.clone());
            let queries = [
                Query::eq(0, text(&one)),
                Query::prefix(0, one.as_bytes()),
                Query::range(0, Bound::Included(text(&one)), Bound::Excluded(text(&other))),
                Query::range(0, Bound::Excluded(text(&one)), Bound::Included(text(&other))),
                Query::eq(1, Value::Int(low)),
                Query::range(1, Bound::Included(Value::Int(low)), Bound::Excluded(Value::Int(high))),
                Query::range(1, Bound::Excluded(Value::Int(low)), Bound::Unbounded),
            ];
            for query in queries {
                if is_excluded(&query, &schema(), &bounds) {
                    prop_assert_eq!(shard.count(&query).unwrap(), 0, "{:?}", query);
                }
            }
        }
    }
}
