//! Records from JSON: read one by one, and the columns and types that they turn out to have.

use std::io::BufRead;

use forebay_types::{Error, Result};
use serde_json::{Map, Value as Json};

use super::{Column, ColumnKind};
use crate::exact::exact_json;
use crate::literal::Literal;

/// Bytes of a record at most, as it is written.
const RECORD_BYTES_MAX: usize = 16 << 20;
/// Columns of all records together at most, of which a shard then has some.
const COLUMNS_MAX: usize = 4096;

/// JSON objects of a stream, one after the other with any space between, or in one array. One of them is in memory at a time.
pub struct JsonRecords<R> {
    input: R,
    place: Place,
    /// The record that was read last.
    text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Start,
    Stream,
    /// Behind the `[` of an array.
    Array,
    /// Behind a record of an array.
    Item,
    End,
}

impl<R: BufRead> JsonRecords<R> {
    /// Reads `input`.
    pub fn new(input: R) -> Self {
        Self { input, place: Place::Start, text: Vec::new() }
    }

    fn read(&mut self) -> Result<Option<Map<String, Json>>> {
        let mut first = self.first()?;
        if self.place == Place::Start {
            self.place = Place::Stream;
            if first == Some(b'[') {
                self.place = Place::Array;
                first = self.after_sign()?;
            }
        }
        match (self.place, first) {
            (Place::Stream, None) => return Ok(None),
            (Place::Array | Place::Item, Some(b']')) => {
                return if self.after_sign()?.is_some() { Err(invalid("something follows its array")) } else { Ok(None) };
            }
            (Place::Item, Some(b',')) => first = self.after_sign()?,
            (Place::Item, Some(_)) => return Err(invalid("neither , nor ] follows a record of its array")),
            _ => {}
        }
        match first {
            None => Err(invalid("its array has no end")),
            Some(b'{') => {
                self.read_text()?;
                if self.place == Place::Array {
                    self.place = Place::Item;
                }
                exact_json(&self.text).map(Some).map_err(invalid)
            }
            Some(_) => {
                let rest = self.input.fill_buf()?;
                let said = String::from_utf8_lossy(&rest[..rest.len().min(40)]);
                let said = said.lines().next().unwrap_or_default();
                Err(Error::invalid(format!("{said:?} is no record: a record is a JSON object")))
            }
        }
    }

    /// The next byte that is no space, which stays.
    fn first(&mut self) -> Result<Option<u8>> {
        loop {
            let piece = self.input.fill_buf()?;
            let space = piece.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
            let (first, is_over) = (piece.get(space).copied(), piece.is_empty());
            self.input.consume(space);
            if first.is_some() || is_over {
                return Ok(first);
            }
        }
    }

    /// The same behind the byte that comes next.
    fn after_sign(&mut self) -> Result<Option<u8>> {
        self.input.consume(1);
        self.first()
    }

    /// Reads on to the end of the object that begins here.
    fn read_text(&mut self) -> Result<()> {
        self.text.clear();
        let (mut depth, mut is_in_text, mut is_escaped) = (0usize, false, false);
        loop {
            let piece = self.input.fill_buf()?;
            if piece.is_empty() {
                return Err(invalid("a record has no end"));
            }
            let end = piece.iter().position(|&byte| {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if is_in_text => is_escaped = true,
                    b'"' => is_in_text = !is_in_text,
                    b'{' | b'[' if !is_in_text => depth += 1,
                    b'}' | b']' if !is_in_text => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let length = end.map_or(piece.len(), |end| end + 1);
            if self.text.len() + length > RECORD_BYTES_MAX {
                return Err(invalid(format!("a record has more than {} MiB", RECORD_BYTES_MAX >> 20)));
            }
            self.text.extend_from_slice(&piece[..length]);
            self.input.consume(length);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read as JSON: {error}"))
}

impl<R: BufRead> Iterator for JsonRecords<R> {
    type Item = Result<Map<String, Json>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::End {
            return None;
        }
        let read = self.read().transpose();
        if !matches!(read, Some(Ok(_))) {
            self.place = Place::End;
        }
        read
    }
}

/// Finds the columns of JSON objects, and for each the type that all its values have.
#[derive(Default)]
pub struct JsonKinds {
    columns: Vec<(String, Option<ColumnKind>)>,
    records: u64,
}

impl JsonKinds {
    /// Takes an object into account. `Invalid` where there are too many columns.
    pub fn see(&mut self, object: &Map<String, Json>) -> Result<()> {
        self.records += 1;
        for (place, (name, value)) in object.iter().enumerate() {
            // Most objects have the same columns in the same order.
            let at = match self.columns.get(place) {
                Some(column) if column.0 == *name => Some(place),
                _ => self.columns.iter().position(|column| column.0 == *name),
            };
            let at = at.unwrap_or_else(|| {
                self.columns.push((name.clone(), None));
                self.columns.len() - 1
            });
            let kind = &mut self.columns[at].1;
            if let Some(seen) = kind_of(value) {
                *kind = Some(kind.map_or(seen, |kind| common(kind, seen)));
            }
            if self.columns.len() > COLUMNS_MAX {
                return Err(Error::invalid(format!("its records have more than {COLUMNS_MAX} columns")));
            }
        }
        Ok(())
    }

    /// The columns, in the order in which they first came.
    pub fn columns(&self) -> Vec<Column> {
        let column =
            |(name, kind): &(String, Option<ColumnKind>)| Column { name: name.clone(), kind: kind.unwrap_or(ColumnKind::Text) };
        self.columns.iter().map(column).collect()
    }

    /// How many objects were seen.
    pub fn records(&self) -> u64 {
        self.records
    }
}

fn kind_of(value: &Json) -> Option<ColumnKind> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(_) => ColumnKind::Bool,
        Json::Number(number) if number.is_i64() => ColumnKind::Int,
        Json::Number(number) if number.is_u64() => ColumnKind::Uint,
        Json::Number(_) => ColumnKind::Float64,
        Json::String(_) => ColumnKind::Text,
        Json::Object(_) if Literal::from_json(value).is_ok() => ColumnKind::Binary,
        Json::Array(_) | Json::Object(_) => ColumnKind::Text,
    })
}

/// The type that values of both types have.
fn common(a: ColumnKind, b: ColumnKind) -> ColumnKind {
    use ColumnKind::{Binary, Decimal, Float64, Int, Text, Uint};
    match (a, b) {
        _ if a == b => a,
        (Int | Uint | Decimal(_), Int | Uint | Decimal(_)) => Decimal(0),
        (Int | Uint | Decimal(_) | Float64, Int | Uint | Decimal(_) | Float64) => Float64,
        (Binary | Text, Binary | Text) => Binary,
        // A column of numbers and text, say: its values are kept as they are written.
        _ => Text,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use serde_json::json;

    use super::*;

    /// Reads through a buffer of few bytes.
    fn records(input: impl Read) -> Vec<Result<Json>> {
        JsonRecords::new(BufReader::with_capacity(3, input)).map(|record| record.map(Json::Object)).collect()
    }

    #[test]
    fn records_come_one_after_the_other_or_in_an_array() {
        let expected = [json!({"a": 1, "b": "}]\\\""}), json!({}), json!({"a": [{"c": [1, 2]}]})];
        let texts = expected.each_ref().map(Json::to_string);
        let stream = format!(" {}\n{}{}\n\n", texts[0], texts[1], texts[2]);
        for text in [stream, format!("\n[ {} ]\t", texts.join(" ,\n")), format!("[{}]", texts.join(","))] {
            let read: Vec<Json> = records(text.as_bytes()).into_iter().collect::<Result<_>>().unwrap();
            assert_eq!(read, expected, "{text}");
        }
        for nothing in ["", " \n", "[]", " [ ] "] {
            assert!(records(nothing.as_bytes()).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn what_is_no_record_ends_them_with_an_error() {
        let ends = [
            "[{},]",
            "[{}",
            "[",
            "[{}]]",
            "[{}] {}",
            "[,{}]",
            "[{} {}]",
            "[1]",
            "{},{}",
            "{}[{}]",
            "1",
            "{",
            "{]",
            "{\"a\": \"}",
            "{'a': 1}",
            "nothing",
        ];
        for wrong in ends {
            let read = records(wrong.as_bytes());
            assert!(read[..read.len() - 1].iter().all(Result::is_ok), "{wrong}");
            assert_eq!(read[read.len() - 1].as_ref().unwrap_err().kind(), forebay_types::ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn an_array_is_read_record_by_record_and_none_without_an_end() {
        let input = (&b"[{\"a\": 1}, {\"a\": 2}, "[..]).chain(std::io::repeat(b'x'));
        let mut read = records(input);
        assert!(read.pop().unwrap().is_err());
        assert_eq!(read.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [json!({"a": 1}), json!({"a": 2})]);
        let endless = BufReader::new((&b"{\"a\": \""[..]).chain(std::io::repeat(b'x')));
        let error = JsonRecords::new(endless).next().unwrap().unwrap_err();
        assert!(error.message().contains("16 MiB"), "{error}");
    }

    #[test]
    fn floats_are_the_nearest() {
        let read = records(&br#"[{"a": 7.038531e-26}]"#[..]);
        assert_eq!(read[0].as_ref().unwrap()["a"].as_f64(), Some(7.038531e-26));
    }

    #[test]
    fn ever_more_columns_are_refused() {
        let mut kinds = JsonKinds::default();
        let object = |count: usize| (0..count).map(|at| (format!("c{at}"), Json::from(at))).collect::<Map<_, _>>();
        kinds.see(&object(1000)).unwrap();
        assert_eq!(kinds.columns().len(), 1000);
        let many: Map<_, _> = (0..COLUMNS_MAX).map(|at| (format!("d{at}"), Json::Null)).collect();
        assert_eq!(kinds.see(&many).unwrap_err().kind(), forebay_types::ErrorKind::Invalid);
    }
}
