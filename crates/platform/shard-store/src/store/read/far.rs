//! Questions to a shard whose files are elsewhere: what it takes of its cold file to answer them, and the answers.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_shard::{Key, Query, Value};
use forebay_types::{Error, Result};
use serde_json::{Value as Json, json};

use super::search::search_updates;
use crate::columns::{ColumnKind, Columns};
use crate::literal::Literal;
use crate::question::Condition;
use crate::store::answer::{Operation, names, whole};
use crate::store::{Answered, Store};
use crate::update::Values;

/// A question that a cold file answers.
#[derive(Clone, Debug, PartialEq)]
pub enum FarQuestion {
    /// For the record of a key.
    Get {
        /// Of the record.
        key: Key,
        /// The columns asked for; none for all.
        columns: Option<Vec<String>>,
        /// Its version is wanted as well.
        versioned: bool,
    },
    /// For the keys of a value, or how many there are.
    Equal {
        /// The place of the attribute.
        attribute: usize,
        /// What it is to be; not null.
        value: Value,
        /// Keys above this one are wanted.
        after: Option<Key>,
        /// So many of them at most.
        limit: Option<usize>,
        /// How many there are is all that is asked.
        is_count: bool,
    },
    /// For the keys that meet what no record in the files does, or how many there are: what was changed since has them.
    Updated {
        /// What they meet.
        query: Query,
        /// Keys above this one are wanted.
        after: Option<Key>,
        /// So many of them at most.
        limit: Option<usize>,
        /// How many there are is all that is asked.
        is_count: bool,
    },
}

/// What a cold file has to say.
#[derive(Clone, Debug, PartialEq)]
pub enum FarAnswer {
    /// The record of a key, where it has one.
    Record(Option<Vec<Value>>),
    /// The keys of a value.
    Keys(Vec<Key>),
}

impl FarQuestion {
    /// A question in JSON, of files of which it is known what no record meets; none where it needs all of the shard. What is wrong with it is
    /// an error.
    pub fn parse(columns: &Columns, question: &[u8], is_excluded: impl Fn(&Query) -> bool) -> Result<Option<Self>> {
        let question = Operation::parse(question)?;
        if let Some(key) = question.get("get") {
            question.only(&["get", "columns", "versioned"])?;
            let versioned = match question.get("versioned") {
                None => false,
                Some(versioned) => {
                    versioned.as_bool().ok_or_else(|| Error::invalid("\"versioned\" is true or false, beside \"get\""))?
                }
            };
            let names = names(question.get("columns"))?;
            names.iter().flatten().try_for_each(|name| columns.place(name).map(drop))?;
            return Ok(Some(Self::Get { key: columns.key_of(&Literal::from_json(key)?)?, columns: names, versioned }));
        }
        let (condition, is_count) = match (question.get("search"), question.get("count")) {
            (Some(condition), None) => (condition, false),
            (None, Some(condition)) if !condition.is_null() => (condition, true),
            _ => return Ok(None),
        };
        question.only(if is_count { &["count"] } else { &["search", "limit", "after"] })?;
        let query = Condition::from_json(condition)?.query(columns)?;
        let given = |name| question.get(name).filter(|given| !given.is_null());
        let after = given("after").map(|after| columns.key_of(&Literal::from_json(after)?)).transpose()?;
        let limit = given("limit").map(|limit| whole("limit", limit)).transpose()?;
        Ok(match query {
            query if is_excluded(&query) => Some(Self::Updated { query, after, limit, is_count }),
            Query::Eq { attribute, value } if value != Value::Null => {
                Some(Self::Equal { attribute, value, after, limit, is_count })
            }
            _ => None,
        })
    }
}

impl Store {
    /// A store of no files: what is asked of it is answered by what a cold file says, with updates on top
    /// ([`Self::add_updates`]).
    pub fn far(columns: Columns) -> Self {
        let (view, path) = (Arc::default(), PathBuf::from("a shard that is not here"));
        Self { background: Vec::new(), path, columns: Some(columns), view, asked: None, seen: None, writer: None }
    }

    /// The answer to a question, by what the cold file says to it; updates before `log_from` are in that.
    pub fn answer_far(&self, log_from: u64, question: &FarQuestion, said: FarAnswer) -> Answered {
        let answer = match (question, said) {
            (FarQuestion::Get { key, columns, versioned }, FarAnswer::Record(record)) => {
                self.record_far(log_from, key, columns.as_deref(), *versioned, record)
            }
            (FarQuestion::Equal { .. } | FarQuestion::Updated { .. }, FarAnswer::Keys(keys)) => self.keys_far(question, keys),
            _ => Err(Error::internal("an answer to another question")),
        };
        match answer {
            Ok(answer) => Answered::Ok(answer),
            Err(error) => Answered::failed(&error),
        }
    }

    fn record_far(
        &self,
        log_from: u64,
        key: &Key,
        names: Option<&[String]>,
        versioned: bool,
        record: Option<Vec<Value>>,
    ) -> Result<Json> {
        let view = self.view.load();
        let (values, version) = match view.newest(key) {
            Some(update) => (update.values.map(Values::to_vec), update.number),
            None => (record, log_from.saturating_sub(1)),
        };
        let record = values.map(|values| self.records()?.record_json(key, &values, names)).transpose()?.unwrap_or(Json::Null);
        Ok(if versioned { json!({"record": record, "version": version}) } else { record })
    }

    fn keys_far(&self, question: &FarQuestion, mut keys: Vec<Key>) -> Result<Json> {
        let (query, after, limit, is_count) = match question {
            FarQuestion::Equal { attribute, value, after, limit, is_count } => {
                (Query::Eq { attribute: *attribute, value: value.clone() }, after, limit, is_count)
            }
            FarQuestion::Updated { query, after, limit, is_count } => (query.clone(), after, limit, is_count),
            FarQuestion::Get { .. } => return Err(Error::internal("keys are no answer to this")),
        };
        let columns = self.records()?;
        // One view: an update is counted in place of what the file has, not beside it.
        let view = self.view.load_full();
        keys.retain(|key| view.newest(key).is_none());
        keys.extend(search_updates(&view, &query)?);
        if *is_count {
            return Ok(keys.len().into());
        }
        let kind = columns.key().kind;
        keys.sort_unstable_by(|a, b| order(kind, a, b));
        if let Some(after) = after {
            keys.retain(|key| order(kind, key, after).is_gt());
        }
        keys.truncate(limit.unwrap_or(usize::MAX));
        Ok(keys.iter().map(|key| columns.key_json(key)).collect())
    }
}

/// The order of keys that people count in: numbers are kept without sign.
fn order(kind: ColumnKind, a: &Key, b: &Key) -> Ordering {
    if let (ColumnKind::Int, Key::U64(a), Key::U64(b)) = (kind, a, b) { (*a as i64).cmp(&(*b as i64)) } else { a.cmp(b) }
}

#[cfg(test)]
mod tests {
    use super::super::search::search;
    use super::*;
    use crate::columns::Column;
    use crate::update::Change;

    fn columns() -> Columns {
        let all =
            vec![Column::new("id", ColumnKind::Int), Column::new("name", ColumnKind::Text), Column::new("size", ColumnKind::Int)];
        Columns::new(all, "id").unwrap()
    }

    fn values(key: i64) -> Vec<Value> {
        vec![Value::Text(format!("name {}", key.rem_euclid(7))), if key % 5 == 0 { Value::Null } else { Value::Int(key % 3) }]
    }

    fn key(key: i64) -> Key {
        Key::U64(key as u64)
    }

    #[test]
    fn a_far_shard_answers_as_one_that_is_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let mut building = Store::build(&path, columns(), 0.5).unwrap();
        (-50..50).for_each(|number| building.push(key(number), values(number)).unwrap());
        building.finish().unwrap();
        let (here, far) = (Store::open(&path).unwrap(), Store::far(columns()));
        for store in [&here, &far] {
            let put = |number: i64, like: i64| Change::Put(key(number), values(like));
            store.add_updates(7, [put(-3, 4), put(60, 1), put(-60, 1), Change::Delete(key(8)), put(10, 10)]);
        }
        let alone = Store::open(&path).unwrap();
        let mut questions: Vec<Json> = Vec::new();
        for number in -65..65 {
            questions.push(json!({"get": number}));
            questions.push(json!({"get": number, "columns": ["size", "id"], "versioned": true}));
        }
        for name in 0..8 {
            let equal = json!({"attr": "name", "eq": format!("name {name}")});
            questions.push(json!({"count": equal}));
            questions.push(json!({"search": equal, "limit": 1000}));
            questions.push(json!({"search": equal, "limit": 3, "after": -20}));
            questions.push(json!({"search": equal, "limit": 30, "after": 20}));
        }
        questions.push(json!({"search": {"attr": "size", "eq": 1}, "limit": 5}));
        for question in questions {
            let line = question.to_string().into_bytes();
            let parsed = FarQuestion::parse(&columns(), &line, |_| false).unwrap().unwrap();
            let said = match &parsed {
                FarQuestion::Get { key, .. } => FarAnswer::Record(alone.get(key, None).unwrap()),
                FarQuestion::Equal { attribute, value, .. } => {
                    let query = Query::Eq { attribute: *attribute, value: value.clone() };
                    FarAnswer::Keys(search(&alone.view.load(), &query, None, None).unwrap())
                }
                FarQuestion::Updated { .. } => FarAnswer::Keys(Vec::new()),
            };
            assert_eq!(far.answer_far(7, &parsed, said), Answered::to(&here, 7, &line), "{question}");
        }
    }

    #[test]
    fn what_no_file_has_is_answered_by_what_was_changed_since() {
        let far = Store::far(columns());
        let put = |number: i64, like: i64| Change::Put(key(number), values(like));
        far.add_updates(7, [put(1, 1), put(2, 2), put(5, 2), Change::Delete(key(1))]);
        let ask = |question: &str| {
            let parsed = FarQuestion::parse(&columns(), question.as_bytes(), |_| true).unwrap().unwrap();
            assert!(matches!(parsed, FarQuestion::Updated { .. }), "{parsed:?}");
            far.answer_far(7, &parsed, FarAnswer::Keys(Vec::new())).into_result().unwrap()
        };
        assert_eq!(ask(r#"{"search": {"attr": "name", "from": "name 1", "to": "name 2"}, "limit": 9}"#), json!([2, 5]));
        assert_eq!(ask(r#"{"search": {"attr": "name", "prefix": "name"}, "limit": 1, "after": 2}"#), json!([5]));
        assert_eq!(ask(r#"{"count": {"attr": "size", "eq": 2}}"#), json!(2));
        let get = FarQuestion::parse(&columns(), br#"{"get": 1}"#, |_| true).unwrap().unwrap();
        assert!(matches!(get, FarQuestion::Get { .. }));
    }

    #[test]
    fn what_needs_the_shard_is_told_from_what_is_wrong() {
        let parse = |question: &str| FarQuestion::parse(&columns(), question.as_bytes(), |_| false);
        for needs in [
            r#"{"search": {"attr": "name", "contains": "x"}, "limit": 1}"#,
            r#"{"count": null}"#,
            r#"{"search": {"attr": "name", "prefix": "x"}, "limit": 1}"#,
            r#"{"search": {"attr": "name", "eq": null}, "limit": 1}"#,
            r#"{"search": {"and": [{"attr": "name", "eq": "x"}]}, "limit": 1}"#,
            r#"{"search": {"or": [{"attr": "name", "eq": "x"}, {"attr": "size", "eq": 1}]}, "limit": 1}"#,
            r#"{"search": {"not": {"attr": "name", "eq": "x"}}, "limit": 1}"#,
            r#"{"search": {"attr": "name", "in": ["x", "y"]}, "limit": 1}"#,
            r#"{"count": {"attr": "name", "suffix": "x"}}"#,
            r#"{"count": {"attr": "name", "eq": "x", "ignore_case": true}}"#,
        ] {
            assert_eq!(parse(needs).ok(), Some(None), "{needs}");
        }
        let one = parse(r#"{"count": {"attr": "name", "in": ["x"]}}"#).unwrap();
        assert_eq!(one, parse(r#"{"count": {"attr": "name", "eq": "x"}}"#).unwrap());
        for wrong in [
            "x",
            r#"{"get": "text"}"#,
            r#"{"get": 1, "columns": ["none"]}"#,
            r#"{"get": 1, "versioned": 3}"#,
            r#"{"search": {"attr": "none", "eq": 1}, "limit": 1}"#,
            r#"{"search": {"attr": "name", "eq": "x"}, "limit": -1}"#,
            r#"{"search": {"attr": "size", "eq": "x", "ignore_case": true}, "limit": 1}"#,
            r#"{"search": {"or": [{"attr": "none", "eq": 1}]}, "limit": 1}"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
