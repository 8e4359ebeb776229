//! What people and programs ask for: conditions as text, operations as JSON.

mod limits;
mod parse;
mod query;
mod ranges;

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
    /// At least one of them holds.
    Or(Vec<Condition>),
    /// It does not hold. No test but that for null holds of a column that is null, so this holds there.
    Not(Box<Condition>),
}

/// What a value has to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Equal to this one.
    Eq(Literal),
    /// Equal to one of these.
    In(Vec<Literal>),
    /// Beginning with this.
    Prefix(Literal),
    /// Ending with this.
    Suffix(Literal),
    /// With this somewhere in it.
    Contains(Literal),
    /// With a match of this regular expression somewhere in it.
    Regex(Literal),
    /// Between two bounds; `true` says that the bound itself belongs to it.
    Range(Option<(Literal, bool)>, Option<(Literal, bool)>),
    /// One of `Eq`, `Prefix`, `Suffix`, `Contains` and `Regex`, for which a letter is the same in all cases (by Unicode's simple
    /// folding).
    IgnoringCase(Box<Test>),
}

impl Condition {
    /// From JSON: `{"attr": a, "eq" | "prefix" | "suffix" | "contains" | "regex": value}`, with `"ignore_case": true` beside it where
    /// wanted, `{"attr": a, "in": [..]}`, `{"attr": a, "from": v, "to": w}` with both bounds belonging to it and either missing
    /// (`"above"` and `"below"` are bounds that do not), `{"and": [..]}`, `{"or": [..]}` or `{"not": ..}`.
    pub fn from_json(value: &Value) -> Result<Self> {
        let condition = read(value, 0)?;
        condition.check()?;
        Ok(condition)
    }

    /// To JSON, which [`Self::from_json`] reads.
    pub fn to_json(&self) -> Value {
        let several = |all: &[Self]| all.iter().map(Self::to_json).collect::<Vec<_>>();
        match self {
            Self::And(all) => json!({"and": several(all)}),
            Self::Or(all) => json!({"or": several(all)}),
            Self::Not(one) => json!({"not": one.to_json()}),
            Self::Column { column, test } => {
                let mut object = Map::from_iter([("attr".to_string(), Value::from(column.as_str()))]);
                write(test, &mut object);
                object.into()
            }
        }
    }
}

fn write(test: &Test, object: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_string(), value));
    match test {
        Test::Eq(value) => put("eq", value.to_json()),
        Test::In(values) => put("in", values.iter().map(Literal::to_json).collect()),
        Test::Prefix(value) => put("prefix", value.to_json()),
        Test::Suffix(value) => put("suffix", value.to_json()),
        Test::Contains(value) => put("contains", value.to_json()),
        Test::Regex(value) => put("regex", value.to_json()),
        Test::Range(from, to) => {
            if let Some((value, belongs)) = from {
                put(if *belongs { "from" } else { "above" }, value.to_json());
            }
            if let Some((value, belongs)) = to {
                put(if *belongs { "to" } else { "below" }, value.to_json());
            }
        }
        Test::IgnoringCase(test) => {
            put(IGNORE_CASE, true.into());
            write(test, object);
        }
    }
}

/// Conditions in conditions: `and`, `or` and `not`.
const DEPTH_MAX: usize = 16;

/// `Invalid` where a condition stands too deep in others.
fn check_depth(depth: usize) -> Result<()> {
    match depth <= DEPTH_MAX {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("conditions stand at most {DEPTH_MAX} deep in others: ask for parts of it one by one")))
        }
    }
}

/// Beside a test.
const IGNORE_CASE: &str = "ignore_case";

/// Reads a condition that stands `depth` others deep.
fn read(value: &Value, depth: usize) -> Result<Condition> {
    check_depth(depth)?;
    let Value::Object(object) = value else {
        return Err(Error::invalid(format!("{value} is no condition: an object with \"attr\", \"and\", \"or\" or \"not\"")));
    };
    for name in ["and", "or", "not"] {
        let Some(inner) = object.get(name) else { continue };
        if object.len() != 1 {
            return Err(Error::invalid(format!("a condition with \"{name}\" has nothing beside it")));
        }
        if name == "not" {
            return read(inner, depth + 1).map(|inner| Condition::Not(Box::new(inner)));
        }
        let Value::Array(all) = inner else {
            return Err(Error::invalid(format!("\"{name}\" takes an array of conditions, not {inner}")));
        };
        let all = all.iter().map(|one| read(one, depth + 1)).collect::<Result<Vec<_>>>()?;
        return Ok(if name == "and" { Condition::And(all) } else { Condition::Or(all) });
    }
    let column = match object.get("attr") {
        Some(Value::String(name)) => name.clone(),
        _ => return Err(Error::invalid(format!("{value} has no \"attr\" with a column's name"))),
    };
    Ok(Condition::Column { column, test: test(object, value)? })
}

fn test(object: &Map<String, Value>, whole: &Value) -> Result<Test> {
    let ignores_case = match object.get(IGNORE_CASE) {
        None | Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(other) => return Err(Error::invalid(format!("\"{IGNORE_CASE}\" is true or false, not {other}"))),
    };
    let mut names = object.keys().map(String::as_str).filter(|&name| name != "attr" && name != IGNORE_CASE).collect::<Vec<_>>();
    names.sort_unstable();
    let literal = |name: &str| Literal::from_json(&object[name]);
    let bound = |name: &str, other: &str| -> Result<_> {
        match (object.get(name), object.get(other)) {
            (Some(value), _) => Ok(Some((Literal::from_json(value)?, true))),
            (None, Some(value)) => Ok(Some((Literal::from_json(value)?, false))),
            (None, None) => Ok(None),
        }
    };
    let test = match names[..] {
        ["eq"] => Test::Eq(literal("eq")?),
        ["prefix"] => Test::Prefix(literal("prefix")?),
        ["suffix"] => Test::Suffix(literal("suffix")?),
        ["contains"] => Test::Contains(literal("contains")?),
        ["regex"] => Test::Regex(literal("regex")?),
        ["in"] => match &object["in"] {
            Value::Array(values) => Test::In(values.iter().map(Literal::from_json).collect::<Result<_>>()?),
            other => return Err(Error::invalid(format!("\"in\" takes an array of values, not {other}"))),
        },
        ["from" | "above" | "to" | "below"] | ["from", "to"] | ["above", "to"] | ["below", "from"] | ["above", "below"] => {
            Test::Range(bound("from", "above")?, bound("to", "below")?)
        }
        _ => {
            return Err(Error::invalid(format!(
                "{whole} has not exactly one of \"eq\", \"in\", \"prefix\", \"suffix\", \"contains\", \"regex\", or \"from\" and \"to\""
            )));
        }
    };
    match (ignores_case, &test) {
        (false, _) => Ok(test),
        (true, Test::In(_) | Test::Range(..)) => Err(Error::invalid(format!(
            "{whole}: \"{IGNORE_CASE}\" goes with \"eq\", \"prefix\", \"suffix\", \"contains\" and \"regex\""
        ))),
        (true, _) => Ok(Test::IgnoringCase(Box::new(test))),
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
            "a $= x or not (b i= y and c in (1, 2, x'00'))",
            "a i^= x or a i$= x or a i*= x or a i~ x",
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(Condition::from_json(&condition.to_json()).unwrap(), condition, "{text}");
        }
        let both = json!({"attr": "a", "above": 1, "below": 3});
        assert_eq!(Condition::from_json(&both).unwrap().to_json(), both);
        let plain = json!({"attr": "a", "eq": "x", "ignore_case": false});
        assert_eq!(Condition::from_json(&plain).unwrap().to_json(), json!({"attr": "a", "eq": "x"}));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for wrong in [
            json!({"attr": "a", "from": 1, "above": 3}),
            json!({"attr": "a", "eq": 1, "in": [2]}),
            json!({"attr": "a", "in": 2}),
            json!({"attr": "a", "in": [[2]]}),
            json!({"attr": "a", "in": ["x"], "ignore_case": true}),
            json!({"attr": "a", "from": "x", "ignore_case": true}),
            json!({"attr": "a", "eq": "x", "ignore_case": "yes"}),
            json!({"attr": "a", "ignore_case": true}),
            json!({"or": {"attr": "a", "eq": 1}}),
            json!({"not": [{"attr": "a", "eq": 1}]}),
            json!({"not": {"attr": "a", "eq": 1}, "and": []}),
        ] {
            assert!(Condition::from_json(&wrong).is_err(), "{wrong}");
        }
    }
}
