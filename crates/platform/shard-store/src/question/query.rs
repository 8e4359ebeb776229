//! Conditions in the words of columns become queries in the words of the shard, or the reason why they can't.

use std::ops::Bound;

use forebay_shard::{Query, Value};
use forebay_types::{Error, Result, ResultExt};

use super::{Condition, Test};
use crate::columns::{Column, ColumnKind, Columns};
use crate::literal::Literal;

impl Condition {
    /// The question that a shard of these columns answers.
    pub fn query(&self, columns: &Columns) -> Result<Query> {
        match self {
            Self::And(all) => all.iter().map(|one| one.query(columns)).collect::<Result<_>>().map(Query::And),
            Self::Column { column, test } => {
                let (attribute, column) = columns.attribute(column)?;
                test.query(attribute, column).context(|| format!("column {}", column.name))
            }
        }
    }
}

impl Test {
    fn query(&self, attribute: usize, column: &Column) -> Result<Query> {
        Ok(match self {
            // Text has no such value; nothing has the byte 0xff in it, so nothing is found.
            Self::Eq(Literal::Bytes(bytes)) if column.kind == ColumnKind::Text && std::str::from_utf8(bytes).is_err() => {
                Query::Prefix { attribute, prefix: [bytes, &[0xff][..]].concat() }
            }
            Self::Eq(literal) => Query::Eq { attribute, value: column.kind.value(literal)? },
            Self::Prefix(literal) => Query::Prefix { attribute, prefix: string(column, literal, "begins with")? },
            Self::Contains(literal) => Query::Contains { attribute, bytes: string(column, literal, "contains")? },
            Self::Regex(literal) => Query::Regex { attribute, pattern: pattern(column, literal)? },
            Self::Range(from, to) => {
                Query::Range { attribute, from: bound(column, from.as_ref())?, to: bound(column, to.as_ref())? }
            }
        })
    }
}

/// What is looked for within a value: text or bytes, and a number as it was written.
fn string(column: &Column, literal: &Literal, what: &str) -> Result<Vec<u8>> {
    if !column.kind.value_type().is_string() {
        return Err(Error::invalid(format!("no {} {what} something: use =, < or >", column.kind.name())));
    }
    match literal {
        Literal::Text(text) => Ok(text.clone().into_bytes()),
        Literal::Bytes(bytes) => Ok(bytes.clone()),
        Literal::Number(number) => Ok(number.to_string().into_bytes()),
        other => Err(Error::invalid(format!("{other} is no text"))),
    }
}

fn pattern(column: &Column, literal: &Literal) -> Result<String> {
    let bytes = string(column, literal, "matches")?;
    String::from_utf8(bytes).map_err(|_| Error::invalid("a regular expression is UTF-8; it writes other bytes as (?-u:\\xff)"))
}

fn bound(column: &Column, end: Option<&(Literal, bool)>) -> Result<Bound<Value>> {
    Ok(match end {
        None => Bound::Unbounded,
        Some((literal, belongs)) => match column.kind.value(literal)? {
            Value::Null => return Err(Error::invalid("null is no end of a range")),
            value if *belongs => Bound::Included(value),
            value => Bound::Excluded(value),
        },
    })
}
