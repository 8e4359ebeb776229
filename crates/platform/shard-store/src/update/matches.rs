//! Conditions on records one by one, with the answers that a shard would give, for those not yet in any index.

use std::cmp::Ordering;
use std::ops::Bound;

use forebay_shard::{Query, Value};
use forebay_types::{Error, Result};
use regex::bytes::{Regex, RegexBuilder};

use super::{Held, Values};

/// A query over records that are not in a shard yet.
pub(crate) enum Matcher {
    All,
    Eq(usize, Value),
    Prefix(usize, Vec<u8>),
    Suffix(usize, Vec<u8>),
    Contains(usize, Vec<u8>),
    Regex(usize, Box<Regex>),
    Range(usize, Bound<Value>, Bound<Value>),
    And(Vec<Matcher>),
    Or(Vec<Matcher>),
    Not(Box<Matcher>),
}

/// What a compiled expression takes at most: as much as in a shard.
pub(super) const REGEX_BYTES_MAX: usize = 10 << 20;

impl Matcher {
    pub(crate) fn new(query: &Query) -> Result<Self> {
        Self::limited(query, REGEX_BYTES_MAX)
    }

    /// The same with expressions of so many bytes each at most.
    pub(super) fn limited(query: &Query, regex_bytes: usize) -> Result<Self> {
        let all = |queries: &[Query]| queries.iter().map(|query| Self::limited(query, regex_bytes)).collect::<Result<Vec<_>>>();
        Ok(match query {
            Query::All => Self::All,
            Query::Eq { attribute, value } => Self::Eq(*attribute, value.clone()),
            Query::Prefix { attribute, prefix } => Self::Prefix(*attribute, prefix.clone()),
            Query::Suffix { attribute, suffix } => Self::Suffix(*attribute, suffix.clone()),
            Query::Contains { attribute, bytes } => Self::Contains(*attribute, bytes.clone()),
            Query::Regex { attribute, pattern } => {
                let regex = RegexBuilder::new(pattern).size_limit(regex_bytes).build();
                let regex = regex.map_err(|error| Error::invalid(format!("{pattern:?} is no regular expression: {error}")))?;
                Self::Regex(*attribute, Box::new(regex))
            }
            Query::Range { attribute, from, to } => Self::Range(*attribute, from.clone(), to.clone()),
            Query::And(queries) => Self::And(all(queries)?),
            Query::Or(queries) => Self::Or(all(queries)?),
            Query::Not(one) => Self::Not(Box::new(Self::limited(one, regex_bytes)?)),
        })
    }

    pub(crate) fn matches(&self, values: &Values) -> bool {
        match self {
            Self::All => true,
            Self::Eq(attribute, wanted) => match (values.at(*attribute), wanted) {
                (Held::Other(Value::Null), Value::Null) => true,
                (value, wanted) => order(&value, wanted) == Some(Ordering::Equal),
            },
            Self::Prefix(attribute, prefix) => string(&values.at(*attribute)).is_some_and(|bytes| bytes.starts_with(prefix)),
            Self::Suffix(attribute, suffix) => string(&values.at(*attribute)).is_some_and(|bytes| bytes.ends_with(suffix)),
            Self::Contains(attribute, part) => string(&values.at(*attribute))
                .is_some_and(|bytes| part.is_empty() || bytes.windows(part.len()).any(|window| window == part)),
            Self::Regex(attribute, regex) => string(&values.at(*attribute)).is_some_and(|bytes| regex.is_match(bytes)),
            Self::Range(attribute, from, to) => {
                let value = &values.at(*attribute);
                let above = match from {
                    Bound::Unbounded => *value != Held::Other(Value::Null),
                    Bound::Included(from) => order(value, from).is_some_and(Ordering::is_ge),
                    Bound::Excluded(from) => order(value, from).is_some_and(Ordering::is_gt),
                };
                above
                    && match to {
                        Bound::Unbounded => true,
                        Bound::Included(to) => order(value, to).is_some_and(Ordering::is_le),
                        Bound::Excluded(to) => order(value, to).is_some_and(Ordering::is_lt),
                    }
            }
            Self::And(all) => all.iter().all(|one| one.matches(values)),
            Self::Or(all) => all.iter().any(|one| one.matches(values)),
            Self::Not(one) => !one.matches(values),
        }
    }
}

fn string<'a>(value: &Held<'a>) -> Option<&'a [u8]> {
    match value {
        Held::String(bytes) => Some(bytes),
        Held::Other(_) => None,
    }
}

/// The order that a shard keeps; none between null or types that can't be compared.
fn order(a: &Held<'_>, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Held::Other(Value::Bool(a)), Value::Bool(b)) => Some(a.cmp(b)),
        (Held::Other(Value::Int(a)), Value::Int(b)) | (Held::Other(Value::Timestamp(a)), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Held::Other(Value::Float(a)), Value::Float(b)) => Some(a.total_cmp(b)),
        (Held::Other(Value::Decimal(a)), Value::Decimal(b)) => Some(a.cmp(b)),
        (Held::Other(Value::Date(a)), Value::Date(b)) => Some(a.cmp(b)),
        (Held::String(a), Value::Bytes(b)) => Some((*a).cmp(b.as_slice())),
        (Held::String(a), Value::Text(b)) => Some((*a).cmp(b.as_bytes())),
        _ => None,
    }
}
