//! What a search may ask for, in its two forms: a line of text, and JSON.

use forebay_types::{Error, Result};
use serde_json::{Map, Value, json};

use crate::literal::Literal;

/// Which records a search is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A test on one column.
    Column {
        /// The column's name.
        column: String,
        /// What its value has to be.
        test: Test,
    },
    /// All of them hold.
    And(Vec<Condition>),
}

/// What a value has to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Equal to this one.
    Eq(Literal),
    /// Beginning with this.
    Prefix(Literal),
    /// With this somewhere in it.
    Contains(Literal),
    /// With a match of this regular expression somewhere in it.
    Regex(Literal),
    /// Between two bounds; `true` says that the bound itself belongs to it.
    Range(Option<(Literal, bool)>, Option<(Literal, bool)>),
}

impl Condition {
    /// From JSON: `{"attr": a, "eq" | "prefix" | "contains" | "regex": value}`, `{"attr": a, "from": v, "to": w}` with both
    /// bounds belonging to it and either missing (`"above"` and `"below"` are bounds that do not), or `{"and": [..]}`.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(object) = value else {
            return Err(Error::invalid(format!("{value} is no condition: an object with \"attr\" or \"and\"")));
        };
        if let Some(all) = object.get("and") {
            if object.len() != 1 {
                return Err(Error::invalid("a condition with \"and\" has nothing beside it"));
            }
            let Value::Array(all) = all else {
                return Err(Error::invalid(format!("\"and\" takes an array of conditions, not {all}")));
            };
            return all.iter().map(Self::from_json).collect::<Result<_>>().map(Self::And);
        }
        let column = match object.get("attr") {
            Some(Value::String(name)) => name.clone(),
            _ => return Err(Error::invalid(format!("{value} has no \"attr\" with a column's name"))),
        };
        Ok(Self::Column { column, test: test(object, value)? })
    }

    /// To JSON, which [`Self::from_json`] reads.
    pub fn to_json(&self) -> Value {
        let (column, test) = match self {
            Self::And(all) => return json!({"and": all.iter().map(Self::to_json).collect::<Vec<_>>()}),
            Self::Column { column, test } => (column, test),
        };
        let mut object = Map::from_iter([("attr".to_string(), Value::from(column.as_str()))]);
        let mut put = |name: &str, value: &Literal| object.insert(name.to_string(), value.to_json());
        match test {
            Test::Eq(value) => drop(put("eq", value)),
            Test::Prefix(value) => drop(put("prefix", value)),
            Test::Contains(value) => drop(put("contains", value)),
            Test::Regex(value) => drop(put("regex", value)),
            Test::Range(from, to) => {
                if let Some((value, belongs)) = from {
                    put(if *belongs { "from" } else { "above" }, value);
                }
                if let Some((value, belongs)) = to {
                    put(if *belongs { "to" } else { "below" }, value);
                }
            }
        }
        object.into()
    }
}

fn test(object: &Map<String, Value>, whole: &Value) -> Result<Test> {
    let mut names = object.keys().map(String::as_str).filter(|&name| name != "attr").collect::<Vec<_>>();
    names.sort_unstable();
    let literal = |name: &str| Literal::from_json(&object[name]);
    let bound = |name: &str, other: &str| -> Result<_> {
        match (object.get(name), object.get(other)) {
            (Some(value), _) => Ok(Some((Literal::from_json(value)?, true))),
            (None, Some(value)) => Ok(Some((Literal::from_json(value)?, false))),
            (None, None) => Ok(None),
        }
    };
    match names[..] {
        ["eq"] => literal("eq").map(Test::Eq),
        ["prefix"] => literal("prefix").map(Test::Prefix),
        ["contains"] => literal("contains").map(Test::Contains),
        ["regex"] => literal("regex").map(Test::Regex),
        ["from" | "above" | "to" | "below"] | ["from", "to"] | ["above", "to"] | ["below", "from"] | ["above", "below"] => {
            Ok(Test::Range(bound("from", "above")?, bound("to", "below")?))
        }
        _ => Err(Error::invalid(format!(
            "{whole} has not exactly one of \"eq\", \"prefix\", \"contains\", \"regex\", or \"from\" and \"to\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_line_says_comes_back_from_json() {
        for text in [
            "a = 1",
            "a ^= x and b *= 'y and z'",
            "a ~ \"x.*y\"",
            "a < 5",
            "a <= 5",
            "a > 5",
            "a >= 5",
            "a between 1 and 3 and b = x'00ff'",
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(Condition::from_json(&condition.to_json()).unwrap(), condition, "{text}");
        }
        let both = json!({"attr": "a", "above": 1, "below": 3});
        assert_eq!(Condition::from_json(&both).unwrap().to_json(), both);
        assert!(Condition::from_json(&json!({"attr": "a", "from": 1, "above": 3})).is_err());
    }
}
