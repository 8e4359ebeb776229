//! Names and types of a shard's attributes, what of it no shard can hold, and its bytes in the base.

use forebay_types::{Error, Result};

use super::key::KeyType;
use super::value::ValueType;

/// A shard has at most this many attributes: each takes one of 256 symbols, and values need the rest.
pub const ATTRIBUTES_MAX: usize = 120;

/// One attribute of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, unique in the shard.
    pub name: String,
    /// What its values are.
    pub value_type: ValueType,
}

/// What the records of a shard look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The name of the key.
    pub key_name: String,
    /// The type of the key.
    pub key_type: KeyType,
    /// The attributes, in the order of the values.
    pub attributes: Vec<Attribute>,
}

impl Schema {
    /// A schema without attributes yet.
    pub fn new(key_name: impl Into<String>, key_type: KeyType) -> Self {
        Self { key_name: key_name.into(), key_type, attributes: Vec::new() }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value_type: ValueType) -> Self {
        self.attributes.push(Attribute { name: name.into(), value_type });
        self
    }

    /// The index of the attribute called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }

    /// Refuses what no shard can hold.
    pub fn validate(&self) -> Result<()> {
        let count = self.attributes.len();
        if count == 0 || count > ATTRIBUTES_MAX {
            return Err(Error::invalid(format!("a shard has 1 to {ATTRIBUTES_MAX} attributes, this one would have {count}")));
        }
        for (index, attribute) in self.attributes.iter().enumerate() {
            if self.index_of(&attribute.name) != Some(index) || attribute.name.len() > usize::from(u16::MAX) {
                return Err(Error::invalid(format!("two attributes are called {}", attribute.name)));
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let name = |out: &mut Vec<u8>, name: &str| {
            out.extend_from_slice(&(name.len() as u16).to_le_bytes());
            out.extend_from_slice(name.as_bytes());
        };
        out.push(match self.key_type {
            KeyType::U64 => 0,
            KeyType::Bytes => 1,
        });
        out.push(self.attributes.len() as u8);
        name(out, &self.key_name);
        for attribute in &self.attributes {
            out.extend_from_slice(&attribute.value_type.code());
            name(out, &attribute.name);
        }
    }

    /// The schema at the beginning of `bytes`; `None` if there is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        fn name(bytes: &[u8]) -> Option<(String, &[u8])> {
            let (length, rest) = bytes.split_first_chunk::<2>()?;
            let (name, rest) = rest.split_at_checked(u16::from_le_bytes(*length) as usize)?;
            Some((String::from_utf8(name.to_vec()).ok()?, rest))
        }
        let ([key_type, count], rest) = bytes.split_first_chunk::<2>()?;
        let key_type = match key_type {
            0 => KeyType::U64,
            1 => KeyType::Bytes,
            _ => return None,
        };
        let (key_name, mut rest) = name(rest)?;
        let mut attributes = Vec::new();
        for _ in 0..*count {
            let (code, after) = rest.split_first_chunk::<2>()?;
            let value_type = ValueType::from_code(*code)?;
            let (name, after) = name(after)?;
            attributes.push(Attribute { name, value_type });
            rest = after;
        }
        Some(Self { key_name, key_type, attributes })
    }
}
