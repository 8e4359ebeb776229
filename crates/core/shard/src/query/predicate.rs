//! What may be asked of records, and which questions are one interval of rows.

use std::ops::{Bound, Range};

use forebay_types::{Error, Result};

use crate::interval::{Suffixes, nulls};
use crate::model::alphabet::Place;
use crate::model::value::{Value, ValueType};

/// What records to search for. Attributes are named by their index in the schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// Every record.
    All,
    /// The attribute has this value; null finds those without one.
    Eq {
        /// Index of the attribute.
        attribute: usize,
        /// The value.
        value: Value,
    },
    /// The string begins with these bytes.
    Prefix {
        /// Index of the attribute.
        attribute: usize,
        /// The bytes.
        prefix: Vec<u8>,
    },
    /// The string ends with these bytes.
    Suffix {
        /// Index of the attribute.
        attribute: usize,
        /// The bytes.
        suffix: Vec<u8>,
    },
    /// The string has these bytes somewhere.
    Contains {
        /// Index of the attribute.
        attribute: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The string has a match of this regular expression somewhere.
    Regex {
        /// Index of the attribute.
        attribute: usize,
        /// The expression, in the syntax of the crate `regex`.
        pattern: String,
    },
    /// The value lies between these; null never does.
    Range {
        /// Index of the attribute.
        attribute: usize,
        /// The lower end.
        from: Bound<Value>,
        /// The upper end.
        to: Bound<Value>,
    },
    /// All of these hold.
    And(Vec<Query>),
    /// At least one of these holds.
    Or(Vec<Query>),
    /// This does not hold: of an attribute that is null, no test but that for null does.
    Not(Box<Query>),
}

impl Query {
    /// The attribute has this value.
    pub fn eq(attribute: usize, value: Value) -> Self {
        Self::Eq { attribute, value }
    }

    /// The string begins with `prefix`.
    pub fn prefix(attribute: usize, prefix: impl AsRef<[u8]>) -> Self {
        Self::Prefix { attribute, prefix: prefix.as_ref().to_vec() }
    }

    /// The string ends with `suffix`.
    pub fn suffix(attribute: usize, suffix: impl AsRef<[u8]>) -> Self {
        Self::Suffix { attribute, suffix: suffix.as_ref().to_vec() }
    }

    /// The string has `bytes` somewhere.
    pub fn contains(attribute: usize, bytes: impl AsRef<[u8]>) -> Self {
        Self::Contains { attribute, bytes: bytes.as_ref().to_vec() }
    }

    /// The string has a match of `pattern`.
    pub fn regex(attribute: usize, pattern: impl Into<String>) -> Self {
        Self::Regex { attribute, pattern: pattern.into() }
    }

    /// The value lies in a range such as `Included(a), Excluded(b)`.
    pub fn range(attribute: usize, from: Bound<Value>, to: Bound<Value>) -> Self {
        Self::Range { attribute, from, to }
    }

    /// `query` does not hold.
    pub fn negated(query: Self) -> Self {
        Self::Not(Box::new(query))
    }

    /// The attribute it is about, if it is about one.
    pub(crate) fn attribute(&self) -> Option<usize> {
        match self {
            Self::Eq { attribute, .. }
            | Self::Prefix { attribute, .. }
            | Self::Suffix { attribute, .. }
            | Self::Contains { attribute, .. }
            | Self::Regex { attribute, .. }
            | Self::Range { attribute, .. } => Some(*attribute),
            Self::All | Self::And(_) | Self::Or(_) | Self::Not(_) => None,
        }
    }

    /// The same without what stands around one query alone.
    pub(crate) fn alone(&self) -> &Self {
        match self {
            Self::And(queries) | Self::Or(queries) => match &queries[..] {
                [query] => query.alone(),
                _ => self,
            },
            _ => self,
        }
    }

    /// The attribute and the values, for a query that asks only whether one attribute has one of some values.
    pub(crate) fn equalities(&self) -> Option<(usize, Vec<&Value>)> {
        match self {
            Self::Eq { attribute, value } => Some((*attribute, vec![value])),
            Self::Or(queries) => {
                let of = queries.first()?.attribute()?;
                let mut values = Vec::with_capacity(queries.len());
                for query in queries {
                    match query {
                        Self::Eq { attribute, value } if *attribute == of => values.push(value),
                        _ => return None,
                    }
                }
                Some((of, values))
            }
            _ => None,
        }
    }

    /// The rows of its attribute's column where it holds; `None` if it isn't decided by one interval.
    pub(crate) fn rows(&self, base: &impl Suffixes) -> Result<Option<Range<u32>>> {
        if let Some(attribute) = self.attribute()
            && attribute >= base.schema().attributes.len()
        {
            return Err(Error::invalid(format!(
                "there is no attribute {attribute}; the shard has {}",
                base.schema().attributes.len()
            )));
        }
        let kind = |attribute: usize| base.schema().attributes[attribute].value_type;
        let strings = |attribute: usize, what: &str| {
            let name = &base.schema().attributes[attribute].name;
            let message = || Error::invalid(format!("{what} searches strings; {name} is of type {:?}", kind(attribute)));
            kind(attribute).is_string().then_some(()).ok_or_else(message)
        };
        match self {
            Self::Eq { attribute, value } => equal(base, *attribute, kind(*attribute), value).map(Some),
            Self::Prefix { attribute, prefix } => {
                strings(*attribute, "a prefix")?;
                let mut pattern = vec![base.alphabet().delimiter(*attribute)];
                if !base.alphabet().encode(prefix, &mut pattern) {
                    return Ok(Some(0..0));
                }
                let rows = base.prefix(&pattern);
                // The empty prefix begins every string, and null is none.
                Ok(Some(if prefix.is_empty() { rows.start..nulls(base, *attribute).min(rows.end) } else { rows }))
            }
            Self::Range { attribute, from, to } => range(base, *attribute, kind(*attribute), from, to).map(Some),
            Self::Suffix { attribute, suffix } if suffix.is_empty() => {
                strings(*attribute, "a suffix")?;
                Self::prefix(*attribute, b"").rows(base)
            }
            Self::Suffix { attribute, .. } => strings(*attribute, "a suffix").map(|()| None),
            Self::Contains { attribute, bytes } if bytes.is_empty() => {
                strings(*attribute, "a substring")?;
                Self::prefix(*attribute, b"").rows(base)
            }
            Self::Contains { attribute, .. } => strings(*attribute, "a substring").map(|()| None),
            Self::Regex { attribute, .. } => strings(*attribute, "a regular expression").map(|()| None),
            Self::All => Ok(Some({
                let column = base.column(base.alphabet().delimiter(0));
                column.start..column.end()
            })),
            Self::And(_) | Self::Or(_) | Self::Not(_) => Ok(None),
        }
    }
}

fn equal(base: &impl Suffixes, attribute: usize, kind: ValueType, value: &Value) -> Result<Range<u32>> {
    let (mut bytes, mut symbols) = (Vec::new(), Vec::new());
    if !kind.encode(value, &mut bytes)? {
        let Some(null) = base.alphabet().null else { return Ok(0..0) };
        return Ok(base.prefix(&[base.alphabet().delimiter(attribute), null]));
    }
    Ok(if base.alphabet().encode(&bytes, &mut symbols) { base.equal(attribute, &symbols) } else { 0..0 })
}

fn range(base: &impl Suffixes, attribute: usize, kind: ValueType, from: &Bound<Value>, to: &Bound<Value>) -> Result<Range<u32>> {
    let column = base.column(base.alphabet().delimiter(attribute));
    // The rows of the values at a bound: empty, at the right place, if there are none.
    let at = |value: &Value| -> Result<Range<u32>> {
        let (mut bytes, mut symbols) = (Vec::new(), Vec::new());
        if !kind.encode(value, &mut bytes)? {
            return Err(Error::invalid("a range can't end at null"));
        }
        symbols.push(base.alphabet().delimiter(attribute));
        let row = match base.alphabet().encode_bound(&bytes, &mut symbols) {
            Place::At => {
                let equal = base.equal(attribute, &symbols[1..]);
                if !equal.is_empty() {
                    return Ok(equal);
                }
                base.lower(&symbols)
            }
            Place::Before => base.lower(&symbols),
            Place::After => base.upper(&symbols),
        };
        Ok(row..row)
    };
    let start = match from {
        Bound::Unbounded => column.start,
        Bound::Included(value) => at(value)?.start,
        Bound::Excluded(value) => at(value)?.end,
    };
    let end = match to {
        Bound::Unbounded => column.end(),
        Bound::Included(value) => at(value)?.end,
        Bound::Excluded(value) => at(value)?.start,
    };
    let end = end.min(nulls(base, attribute));
    Ok(if start < end { start..end } else { 0..0 })
}
