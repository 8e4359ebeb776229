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
        self.check()?;
        self.query_of(columns)
    }

    fn query_of(&self, columns: &Columns) -> Result<Query> {
        let several = |all: &[Self]| all.iter().map(|one| one.query_of(columns)).collect::<Result<Vec<_>>>();
        match self {
            Self::And(all) => several(all).map(Query::And),
            Self::Or(all) => several(all).map(Query::Or),
            Self::Not(one) => one.query_of(columns).map(Query::negated),
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
            Self::In(literals) => {
                let equal = |literal: &Literal| Self::Eq(literal.clone()).query(attribute, column);
                let mut all = literals.iter().map(equal).collect::<Result<Vec<_>>>()?;
                if all.len() == 1 { all.remove(0) } else { Query::Or(all) }
            }
            Self::Prefix(literal) => Query::Prefix { attribute, prefix: string(column, literal, "begins with")? },
            Self::Suffix(literal) => Query::Suffix { attribute, suffix: string(column, literal, "ends with")? },
            Self::Contains(literal) => Query::Contains { attribute, bytes: string(column, literal, "contains")? },
            Self::Regex(literal) => Query::Regex { attribute, pattern: pattern(column, literal)? },
            Self::Range(from, to) => {
                Query::Range { attribute, from: bound(column, from.as_ref())?, to: bound(column, to.as_ref())? }
            }
            Self::IgnoringCase(test) => Query::Regex { attribute, pattern: test.ignoring_case(column)? },
        })
    }

    /// A test as a regular expression that ignores case. Its letters are looked up in all their cases, a few of them at a time.
    fn ignoring_case(&self, column: &Column) -> Result<String> {
        let escaped = |literal: &Literal| string(column, literal, "ignores the case of").map(|bytes| escape(&bytes));
        Ok(match self {
            Self::Regex(literal) => format!("(?i){}", pattern(column, literal)?),
            Self::Eq(literal) => format!(r"(?i)\A{}\z", escaped(literal)?),
            Self::Prefix(literal) => format!(r"(?i)\A{}", escaped(literal)?),
            Self::Suffix(literal) => format!(r"(?i){}\z", escaped(literal)?),
            Self::Contains(literal) => format!("(?i){}", escaped(literal)?),
            Self::In(_) | Self::Range(..) | Self::IgnoringCase(_) => {
                return Err(Error::invalid("case is ignored by =, prefix, suffix, contains and regex alone"));
            }
        })
    }
}

/// An expression that matches these bytes.
fn escape(bytes: &[u8]) -> String {
    let mut pattern = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        pattern.push_str(&regex::escape(chunk.valid()));
        chunk.invalid().iter().for_each(|byte| pattern.push_str(&format!(r"(?-u:\x{byte:02x})")));
    }
    pattern
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_matches_itself_in_all_cases() {
        for bytes in [&b"a.b*(c)"[..], b"\xff\x00A\xfe", "Gr\u{fc}n # x".as_bytes(), b""] {
            let regex = regex::bytes::Regex::new(&format!(r"(?i)\A{}\z", escape(bytes))).unwrap();
            assert!(regex.is_match(bytes), "{bytes:?}");
            assert!(regex.is_match(&bytes.to_ascii_uppercase()) && regex.is_match(&bytes.to_ascii_lowercase()), "{bytes:?}");
            assert!(!regex.is_match(&[bytes, b"x"].concat()), "{bytes:?}");
        }
        let regex = regex::bytes::Regex::new(&format!("(?i){}", escape("\u{fc}".as_bytes()))).unwrap();
        assert!(regex.is_match("\u{dc}".as_bytes()));
    }
}
