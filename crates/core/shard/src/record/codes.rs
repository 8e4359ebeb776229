//! Values that repeat all over a shard, as numbers of a few bits beside the compressed text.

use std::collections::HashMap;

use xxhash_rust::xxh3::Xxh3DefaultBuilder;

use super::varint;
use crate::bits::word::width_of;

/// Attributes of few different values, which the record text has by number in a few bits each: quicker to read than what
/// zstd makes of them, and less of it. A number that is not there is damage.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    /// By attribute; `None` for those that are text.
    columns: Vec<Option<Column>>,
    /// Bits of one record's numbers.
    pub(crate) bits: usize,
    /// The attributes that are text, in order.
    pub(crate) texts: Vec<usize>,
}

/// The values of one attribute, in order; null comes first.
#[derive(Debug)]
struct Column {
    /// Where the number stands in a record's, and its width.
    at: usize,
    width: u32,
    nulls: bool,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

/// From the values of an attribute to numbers; empty for one that is text.
#[derive(Debug, Default)]
pub(crate) struct ColumnNumbers {
    null: Option<u64>,
    values: HashMap<Vec<u8>, u64, Xxh3DefaultBuilder>,
}

/// From values to numbers, by attribute.
pub(crate) type Numbers = Vec<ColumnNumbers>;

impl ColumnNumbers {
    /// The number of a value, or of null.
    #[inline]
    pub(crate) fn find(&self, value: Option<&[u8]>) -> Option<u64> {
        value.map_or(self.null, |value| self.values.get(value).copied())
    }
}

/// Where an attribute's number stands in a record's, and its width.
#[derive(Clone, Copy)]
pub(crate) struct CodePlace {
    pub(crate) at: usize,
    pub(crate) width: u32,
}

/// The section: for each attribute how many values are numbered, and for each of them its length plus one (0 for null) and
/// its bytes.
pub(crate) fn encode<'v>(columns: impl Iterator<Item = Vec<Option<&'v [u8]>>>) -> Vec<u8> {
    let mut out = Vec::new();
    for values in columns {
        debug_assert!(values.is_sorted_by(|one, next| one < next), "values are in order, each once");
        varint::write(values.len() as u64, &mut out);
        for value in values {
            varint::write(value.map_or(0, |value| value.len() as u64 + 1), &mut out);
            out.extend_from_slice(value.unwrap_or_default());
        }
    }
    out
}

impl Codes {
    /// No value is numbered.
    pub(crate) fn none(attributes: usize) -> Self {
        Self { columns: (0..attributes).map(|_| None).collect(), bits: 0, texts: (0..attributes).collect() }
    }

    /// Reads a section; `None` if it can't be one.
    pub(crate) fn read(section: &[u8], attributes: usize) -> Option<Self> {
        let mut codes = Self::default();
        let mut at = 0;
        for attribute in 0..attributes {
            if at >= section.len() {
                return None;
            }
            let (count, next) = varint::read(section, at);
            at = next;
            if count == 0 {
                codes.texts.push(attribute);
                codes.columns.push(None);
                continue;
            }
            let width = width_of(count - 1);
            let mut column = Column { at: codes.bits, width, nulls: false, ends: Vec::new(), bytes: Vec::new() };
            for number in 0..count {
                if at >= section.len() {
                    return None;
                }
                let (length, next) = varint::read(section, at);
                if length == 0 && number > 0 {
                    return None;
                }
                column.nulls |= length == 0;
                let end = next.checked_add(length.saturating_sub(1) as usize)?;
                column.bytes.extend_from_slice(section.get(next..end)?);
                column.ends.push(column.bytes.len() as u32);
                at = end;
            }
            codes.bits += width as usize;
            codes.columns.push(Some(column));
        }
        (at == section.len()).then_some(codes)
    }

    /// Where the number of an attribute is; `None` for one that is text.
    #[inline]
    pub(crate) fn place(&self, attribute: usize) -> Option<CodePlace> {
        self.columns[attribute].as_ref().map(|column| CodePlace { at: column.at, width: column.width })
    }

    /// Whether all of some attributes are numbered.
    pub(crate) fn have_all(&self, columns: &[usize]) -> bool {
        columns.iter().all(|column| self.columns[*column].is_some())
    }

    /// The value of a number: its bytes, none for null; `None` if there is no such number.
    #[inline]
    #[expect(clippy::option_option, reason = "null is not the same as damage")]
    pub(crate) fn value(&self, attribute: usize, number: usize) -> Option<Option<&[u8]>> {
        let column = self.columns[attribute].as_ref()?;
        let end = *column.ends.get(number)? as usize;
        let from = number.checked_sub(1).map_or(0, |before| column.ends[before] as usize);
        Some((number > 0 || !column.nulls).then(|| &column.bytes[from..end]))
    }

    /// How many attributes there are.
    pub(crate) fn attributes(&self) -> usize {
        self.columns.len()
    }

    /// From values to numbers, for those who write.
    pub(crate) fn numbers(&self) -> Numbers {
        let of = |attribute: usize| {
            let mut numbers = ColumnNumbers::default();
            let count = self.columns[attribute].as_ref().map_or(0, |column| column.ends.len());
            for number in 0..count {
                match self.value(attribute, number).flatten() {
                    Some(value) => _ = numbers.values.insert(value.to_vec(), number as u64),
                    None => numbers.null = Some(number as u64),
                }
            }
            numbers
        };
        (0..self.columns.len()).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Vec<u8> {
        let few: Vec<Option<&[u8]>> = vec![None, Some(b""), Some(b"red")];
        encode([few, Vec::new(), vec![Some(b"one")]].into_iter())
    }

    #[test]
    fn numbers_are_values_and_values_numbers() {
        let codes = Codes::read(&section(), 3).unwrap();
        assert_eq!((codes.bits, &codes.texts[..]), (2, &[1][..]));
        assert_eq!(codes.value(0, 0), Some(None));
        assert_eq!(codes.value(0, 1), Some(Some(&b""[..])));
        assert_eq!(codes.value(0, 2), Some(Some(&b"red"[..])));
        assert_eq!(codes.value(0, 3), None);
        assert_eq!(codes.value(2, 0), Some(Some(&b"one"[..])));
        let numbers = codes.numbers();
        assert_eq!([None, Some(&b"red"[..]), Some(b"blue")].map(|value| numbers[0].find(value)), [Some(0), Some(2), None]);
        assert!(codes.have_all(&[0, 2]) && !codes.have_all(&[0, 1]));
    }

    #[test]
    fn a_section_that_ends_early_or_late_is_none() {
        let whole = section();
        for end in 0..whole.len() {
            assert!(Codes::read(&whole[..end], 3).is_none(), "{end}");
        }
        assert!(Codes::read(&[&whole[..], &[0]].concat(), 3).is_none());
    }
}
