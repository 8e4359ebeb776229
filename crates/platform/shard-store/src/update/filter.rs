//! Conditions on records whose values are at hand.

use forebay_shard::Value;
use forebay_types::Result;

use super::{Matcher, Values};
use crate::columns::Columns;
use crate::question::Condition;

/// A condition that is looked at record by record, with the answers that a shard gives.
pub struct Filter {
    matcher: Matcher,
    attributes: Vec<usize>,
}

impl Filter {
    /// Prepares a condition on records of these columns.
    pub fn new(condition: &Condition, columns: &Columns) -> Result<Self> {
        let matcher = Matcher::new(&condition.query(columns)?)?;
        let mut attributes = Vec::new();
        add_attributes(condition, columns, &mut attributes)?;
        attributes.sort_unstable();
        attributes.dedup();
        Ok(Self { matcher, attributes })
    }

    /// The attributes that it tests, by their places, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// Whether a record of these values meets it: one for each attribute, and any where it does not test the attribute.
    pub fn holds(&self, values: &[Value]) -> bool {
        debug_assert!(self.attributes.last().is_none_or(|last| *last < values.len()), "what is tested is there");
        self.matcher.matches(&Values::new(values))
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
        let filter = |condition| Filter::new(&Condition::from_json(&condition).unwrap(), &columns);
        let of_two = json!({"and": [{"attr": "day", "eq": null}, {"not": {"attr": "name", "in": ["x", "y"]}}]});
        let of_two = filter(of_two).unwrap();
        assert_eq!(of_two.attributes(), [0, 2]);
        let record = |name: &str, day| [Value::Text(name.into()), Value::Null, day];
        assert!(of_two.holds(&record("z", Value::Null)));
        assert!(!of_two.holds(&record("x", Value::Null)) && !of_two.holds(&record("z", Value::Date(1))));
        assert!(filter(json!({"and": []})).unwrap().attributes().is_empty());
        assert!(filter(json!({"attr": "nothing", "eq": 1})).is_err());
    }
}
