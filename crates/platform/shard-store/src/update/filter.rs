//! Conditions on records whose values are at hand.

use forebay_shard::{Query, Value};
use forebay_types::{Result, ResultExt};

use super::matches::REGEX_BYTES_MAX;
use super::{Matcher, Values};
use crate::columns::Columns;
use crate::question::Condition;

/// A condition that is looked at record by record, with the answers that a shard gives.
pub struct Filter {
    matcher: Matcher,
    attributes: Vec<usize>,
}

impl Filter {
    /// Prepares a condition on records of these columns. Its regular expressions, which whoever asks makes, take no more memory all together
    /// than one may, in processes that serve many. May take a tenth of a second.
    pub fn new(condition: &Condition, columns: &Columns) -> Result<Self> {
        let query = condition.query(columns)?;
        let each = REGEX_BYTES_MAX / regexes(&query).max(1);
        let matcher = Matcher::limited(&query, each)
            .context(|| format!("to give columns, regular expressions have {} MiB together", REGEX_BYTES_MAX >> 20))?;
        Ok(Self { matcher, attributes: Self::attributes(condition, columns)? })
    }

    /// The attributes that a condition tests, by their places, ascending.
    pub fn attributes(condition: &Condition, columns: &Columns) -> Result<Vec<usize>> {
        let mut attributes = Vec::new();
        add_attributes(condition, columns, &mut attributes)?;
        attributes.sort_unstable();
        attributes.dedup();
        Ok(attributes)
    }

    /// Whether a record of these values meets it: one for each attribute, and any where it does not test the attribute.
    pub fn holds(&self, values: &[Value]) -> bool {
        debug_assert!(self.attributes.last().is_none_or(|last| *last < values.len()), "what is tested is there");
        // What all records meet is met without a look.
        matches!(&self.matcher, Matcher::And(all) if all.is_empty()) || self.matcher.matches(&Values::new(values))
    }
}

fn regexes(query: &Query) -> usize {
    match query {
        Query::Regex { .. } => 1,
        Query::And(all) | Query::Or(all) => all.iter().map(regexes).sum(),
        Query::Not(one) => regexes(one),
        _ => 0,
    }
}

fn add_attributes(condition: &Condition, columns: &Columns, attributes: &mut Vec<usize>) -> Result<()> {
    match condition {
        Condition::Column { column, .. } => {
            attributes.push(columns.attribute(column)?.0);
            Ok(())
        }
        Condition::And(all) | Condition::Or(all) => all.iter().try_for_each(|one| add_attributes(one, columns, attributes)),
        Condition::Not(one) => add_attributes(one, columns, attributes),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::columns::{Column, ColumnKind};

    #[test]
    fn a_record_is_tested_by_the_columns_that_a_condition_names() {
        let column = |name: &str, kind| Column { name: name.to_string(), kind };
        let all = vec![
            column("id", ColumnKind::Int),
            column("name", ColumnKind::Text),
            column("note", ColumnKind::Text),
            column("day", ColumnKind::Date),
        ];
        let columns = Columns::new(all, "id").unwrap();
        let condition = |json| Condition::from_json(&json).unwrap();
        let filter = |json| Filter::new(&condition(json), &columns);
        let attributes = |json| Filter::attributes(&condition(json), &columns).unwrap();
        let of_two = json!({"and": [{"attr": "day", "eq": null}, {"not": {"attr": "name", "in": ["x", "y"]}}]});
        assert_eq!(attributes(of_two.clone()), [0, 2]);
        let of_two = filter(of_two).unwrap();
        let record = |name: &str, day| [Value::Text(name.into()), Value::Null, day];
        assert!(of_two.holds(&record("z", Value::Null)));
        assert!(!of_two.holds(&record("x", Value::Null)) && !of_two.holds(&record("z", Value::Date(1))));
        assert!(attributes(json!({"and": []})).is_empty());
        assert!(filter(json!({"and": []})).unwrap().holds(&record("z", Value::Null)));
        assert!(!filter(json!({"or": []})).unwrap().holds(&record("z", Value::Null)));
        assert!(filter(json!({"attr": "nothing", "eq": 1})).is_err());
        let regexes = |count: usize, regex: &str| {
            let all: Vec<_> = (0..count).map(|_| json!({"attr": "name", "regex": regex})).collect();
            filter(json!({"or": all}))
        };
        assert!(regexes(1, r"\w{20}").is_ok() && regexes(32, "(?i)gr\u{fc}n.*x+").is_ok());
        assert!(regexes(32, r"\w{20}").is_err(), "a megabyte each");
    }
}
