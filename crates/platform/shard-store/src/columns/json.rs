//! Records from JSON: read one by one, and the columns and types that they turn out to have.

use std::io::{BufRead, Read};

use forebay_types::{Error, Result};
use serde_json::{Map, Value as Json};

use super::{Column, ColumnKind};
use crate::literal::Literal;

/// JSON objects of a stream, one after the other with any space between, or in one array.
pub struct JsonRecords<R: Read> {
    objects: Objects<R>,
}

enum Objects<R: Read> {
    Array(std::vec::IntoIter<Json>),
    Stream(Box<serde_json::StreamDeserializer<'static, serde_json::de::IoRead<R>, Json>>),
}

impl<R: BufRead> JsonRecords<R> {
    /// Reads `input`; an array is read as a whole, a sequence object by object.
    pub fn new(mut input: R) -> Result<Self> {
        loop {
            let start = input.fill_buf()?;
            let space = start.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            match start.get(space) {
                Some(b'[') => {
                    let all: Vec<Json> = serde_json::from_reader(input).map_err(invalid)?;
                    return Ok(Self { objects: Objects::Array(all.into_iter()) });
                }
                None if space > 0 => input.consume(space),
                _ => {
                    let stream = serde_json::Deserializer::from_reader(input).into_iter();
                    return Ok(Self { objects: Objects::Stream(Box::new(stream)) });
                }
            }
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(format!("it can't be read as JSON: {error}"))
}

impl<R: Read> Iterator for JsonRecords<R> {
    type Item = Result<Map<String, Json>>;

    fn next(&mut self) -> Option<Self::Item> {
        let value = match &mut self.objects {
            Objects::Array(all) => Ok(all.next()?),
            Objects::Stream(stream) => stream.next()?.map_err(invalid),
        };
        Some(value.and_then(|value| match value {
            Json::Object(object) => Ok(object),
            other => Err(Error::invalid(format!("{other} is no record: a record is a JSON object"))),
        }))
    }
}

/// Finds the columns of JSON objects, and for each the type that all its values have.
#[derive(Default)]
pub struct JsonKinds {
    columns: Vec<(String, Option<ColumnKind>)>,
    records: u64,
}

impl JsonKinds {
    /// Takes an object into account.
    pub fn see(&mut self, object: &Map<String, Json>) {
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
        }
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
