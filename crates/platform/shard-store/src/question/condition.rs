use forebay_types::{Error, Result};
use serde_json::{Map, Value};

use super::Literal;

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
    /// Reads an expression, as in `o_clerk = Clerk#000000951 and o_comment ~ "special.*requests"`.
    ///
    /// Tests are `=`, `^=` or `prefix`, `*=` or `contains`, `~` or `regex`, `<`, `<=`, `>`, `>=` and `between V and W`. A value
    /// is bare up to the next ` and `, in single or double quotes (twice for a quote itself), or bytes in hex as `x'00ff'`.
    pub fn parse(text: &str) -> Result<Self> {
        super::parse::parse(text)
    }

    /// From JSON: `{"attr": a, "eq" | "prefix" | "contains" | "regex": value}`, `{"attr": a, "from": v, "to": w}` with both
    /// bounds belonging to it and either missing, or `{"and": [..]}`.
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
}

fn test(object: &Map<String, Value>, whole: &Value) -> Result<Test> {
    let mut names = object.keys().map(String::as_str).filter(|&name| name != "attr").collect::<Vec<_>>();
    names.sort_unstable();
    let literal = |name: &str| Literal::from_json(&object[name]);
    let bound = |name: &str| object.get(name).map(|value| Literal::from_json(value).map(|literal| (literal, true))).transpose();
    match names[..] {
        ["eq"] => literal("eq").map(Test::Eq),
        ["prefix"] => literal("prefix").map(Test::Prefix),
        ["contains"] => literal("contains").map(Test::Contains),
        ["regex"] => literal("regex").map(Test::Regex),
        ["from"] | ["to"] | ["from", "to"] => Ok(Test::Range(bound("from")?, bound("to")?)),
        _ => Err(Error::invalid(format!(
            "{whole} has not exactly one of \"eq\", \"prefix\", \"contains\", \"regex\", or \"from\" and \"to\""
        ))),
    }
}
