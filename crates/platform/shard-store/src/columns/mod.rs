//! Columns as they were in the input: names and types, to and from JSON and what people write.

mod json;
mod kind;
mod ranges;
mod text;

use forebay_shard::{Key, KeyType, Schema, Value, ValueType};
use forebay_types::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::literal::Literal;

pub use json::{JsonKinds, JsonRecords};
pub use kind::ColumnKind;

/// One column of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, as it was.
    pub name: String,
    /// Its type, as it was.
    #[serde(rename = "type")]
    pub kind: ColumnKind,
}

/// The columns of a shard: the key and the attributes, in the order of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    all: Vec<Column>,
    key: usize,
}

impl Columns {
    /// Columns with the one called `key` as the key.
    pub fn new(all: Vec<Column>, key: &str) -> Result<Self> {
        let place = all.iter().position(|column| column.name == key).ok_or_else(|| no_such_column(key, &all))?;
        match all[place].kind {
            ColumnKind::Int | ColumnKind::Uint | ColumnKind::Text | ColumnKind::Binary => Ok(Self { all, key: place }),
            other => Err(Error::invalid(format!(
                "{key} can't be the key: it is a {}; a key is an integer, text or bytes",
                other.name()
            ))),
        }
    }

    /// All columns, the key among them.
    pub fn all(&self) -> &[Column] {
        &self.all
    }

    /// The key's column.
    pub fn key(&self) -> &Column {
        &self.all[self.key]
    }

    /// Whether there are times of nanoseconds among them, which not all programs know that read shards.
    pub(crate) fn have_nanoseconds(&self) -> bool {
        self.all.iter().any(|column| matches!(column.kind, ColumnKind::TimestampNanos | ColumnKind::TimestampNanosUtc))
    }

    /// Where the key stands among all columns.
    pub fn key_place(&self) -> usize {
        self.key
    }

    /// The columns beside the key, in the order of a record's values.
    pub fn attributes(&self) -> impl Iterator<Item = &Column> {
        self.all.iter().enumerate().filter(|(place, _)| *place != self.key).map(|(_, column)| column)
    }

    /// How a shard keeps the values of the attribute at a place.
    pub fn attribute_type(&self, place: usize) -> ValueType {
        self.all[place + usize::from(place >= self.key)].kind.value_type()
    }

    /// How a shard keeps keys.
    pub fn key_type(&self) -> KeyType {
        match self.key().kind {
            ColumnKind::Int | ColumnKind::Uint => KeyType::U64,
            _ => KeyType::Bytes,
        }
    }

    /// What a shard calls it.
    pub fn schema(&self) -> Schema {
        let schema = Schema::new(&self.key().name, self.key_type());
        self.attributes().fold(schema, |schema, column| schema.with(&column.name, column.kind.value_type()))
    }

    /// An attribute by name: its place in a record's values, and its column.
    pub fn attribute(&self, name: &str) -> Result<(usize, &Column)> {
        let found = self.attributes().enumerate().find(|(_, column)| column.name == name);
        found.ok_or_else(|| {
            if name == self.key().name {
                return Error::invalid(format!("{name} is the key: it is not searched but read by get"));
            }
            no_such_column(name, &self.all)
        })
    }

    /// A key as a shard keeps it.
    pub fn key_of(&self, literal: &Literal) -> Result<Key> {
        let value = self.key().kind.value(literal).map_err(|error| error.context(format!("the key {}", self.key().name)))?;
        key_of_value(&value).map_err(|error| error.context(format!("the key {}", self.key().name)))
    }

    /// A key as it was given.
    pub fn key_json(&self, key: &Key) -> Json {
        match (self.key().kind, key) {
            (ColumnKind::Int, Key::U64(key)) => Json::from(unfold(*key)),
            (_, Key::U64(key)) => Json::from(*key),
            (_, Key::Bytes(bytes)) => Literal::bytes_to_json(bytes),
        }
    }

    /// A record from a JSON object; columns that it doesn't name are null.
    pub fn record_of(&self, object: &Map<String, Json>) -> Result<(Key, Vec<Value>)> {
        if let Some(unknown) = object.keys().find(|name| !self.all.iter().any(|column| column.name == **name)) {
            return Err(no_such_column(unknown, &self.all));
        }
        let name = &self.key().name;
        let key = object.get(name).ok_or_else(|| Error::invalid(format!("the record has no {name}, which is the key")))?;
        let key = self.key_of(&Literal::from_json(key)?)?;
        Ok((key, self.attributes().map(|column| column.value_of(object.get(&column.name))).collect::<Result<_>>()?))
    }

    /// A record as a JSON object: the columns asked for, or all.
    pub fn record_json(&self, key: &Key, values: &[Value], asked: Option<&[String]>) -> Result<Json> {
        let one = |place: usize| {
            if place == self.key {
                return self.key_json(key);
            }
            self.all[place].kind.json(&values[place - usize::from(place > self.key)])
        };
        let places: Vec<usize> = match asked {
            None => (0..self.all.len()).collect(),
            Some(names) => names.iter().map(|name| self.place(name)).collect::<Result<_>>()?,
        };
        Ok(Json::Object(places.into_iter().map(|place| (self.all[place].name.clone(), one(place))).collect()))
    }

    /// A record as a JSON object of all columns, of values that nobody else needs: their text is not copied.
    pub fn whole_json(&self, key: &Key, values: Vec<Value>) -> Json {
        debug_assert_eq!(values.len() + 1, self.all.len(), "a record has a value for each attribute");
        let mut values = values.into_iter();
        let mut one = |place: usize, column: &Column| {
            if place == self.key {
                return self.key_json(key);
            }
            match values.next() {
                Some(Value::Text(text)) => Json::String(text),
                value => column.kind.json(&value.unwrap_or(Value::Null)),
            }
        };
        let named = |(place, column): (usize, &Column)| (column.name.clone(), one(place, column));
        Json::Object(self.all.iter().enumerate().map(named).collect())
    }

    /// Where a column stands among all of them.
    pub fn place(&self, name: &str) -> Result<usize> {
        self.all.iter().position(|column| column.name == name).ok_or_else(|| no_such_column(name, &self.all))
    }
}

/// Numbers below zero stand behind all others, so that keys without sign, which most are, stay small: their order is that of
/// 64 bits without sign, and answers are sorted once more where there are both.
fn fold(number: i64) -> u64 {
    number as u64
}

fn unfold(key: u64) -> i64 {
    key as i64
}

/// A value of the key's column as a key.
pub fn key_of_value(value: &Value) -> Result<Key> {
    match value {
        Value::Int(number) => Ok(Key::U64(fold(*number))),
        Value::Decimal(number) => u64::try_from(*number)
            .map(Key::U64)
            .map_err(|_| Error::invalid(format!("{number} is no key: it does not fit in 64 bits without sign"))),
        Value::Text(text) => Ok(Key::Bytes(text.clone().into_bytes())),
        Value::Bytes(bytes) => Ok(Key::Bytes(bytes.clone())),
        Value::Null => Err(Error::invalid("a key is never null")),
        _ => Err(Error::invalid("a key is an integer, text or bytes")),
    }
}

impl Column {
    /// A column of that name and type.
    pub fn new(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self { name: name.into(), kind }
    }

    fn value_of(&self, json: Option<&Json>) -> Result<Value> {
        let Some(json) = json else { return Ok(Value::Null) };
        let value = match json {
            // What is nested, or a number among text, is kept as it is written.
            Json::Array(_) | Json::Object(_) | Json::Number(_) | Json::Bool(_) if self.kind == ColumnKind::Text => {
                Ok(Value::Text(json.to_string()))
            }
            _ => Literal::from_json(json).and_then(|literal| self.kind.value(&literal)),
        };
        value.map_err(|error| error.context(format!("column {}", self.name)))
    }
}

fn no_such_column(name: &str, all: &[Column]) -> Error {
    let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
    Error::invalid(format!("there is no column {name}; the columns are {}", names.join(", ")))
}
