//! What a condition looks like in JSON.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// The schema of what `forebay_shard_store::Condition::from_json` reads, which has no type of its own.
pub(super) struct ConditionShape;

impl JsonSchema for ConditionShape {
    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = || json_schema!({"type": ["string", "number", "boolean", "null", "object"]});
        json_schema!({
            "description": "A test of one column, named by `attr`: one of `eq`, `prefix`, `contains` and `regex`, or bounds: `from` or `above`, \
                            `to` or `below`. Or `and` alone, with conditions that all hold. Bytes are `{\"base64\": \"..\"}`.",
            "type": "object",
            "properties": {
                "attr": {"type": "string"},
                "eq": value(),
                "prefix": value(),
                "contains": value(),
                "regex": value(),
                "from": value(),
                "above": value(),
                "to": value(),
                "below": value(),
                "and": {"type": "array", "items": generator.subschema_for::<Self>()},
            },
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use forebay_shard_store::Condition;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_word_of_the_schema_is_one_of_conditions() {
        let schema = ConditionShape::json_schema(&mut SchemaGenerator::default());
        let words = schema.get("properties").and_then(Value::as_object).unwrap();
        for word in words.keys() {
            let condition = match word.as_str() {
                "attr" => json!({"attr": "a", "eq": {"base64": "AA=="}}),
                "and" => json!({"and": [{"attr": "a", "eq": null}]}),
                test => json!({"attr": "a", test: 1}),
            };
            let read = Condition::from_json(&condition).unwrap_or_else(|error| panic!("{word}: {error}"));
            assert_eq!(read.to_json(), condition, "{word}");
        }
        assert!(Condition::from_json(&json!({"attr": "a", "more": 1})).is_err());
    }
}
