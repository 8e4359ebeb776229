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
            "description": "A test of one column, named by `attr`: one of `eq`, `in` with several values, `prefix`, `suffix`, `contains` and \
                            `regex`, or bounds: `from` or `above`, `to` or `below`. With `ignore_case` a letter is the same in all cases \
                            for `eq`, `prefix`, `suffix`, `contains` and `regex`. Or one of these alone: `and`, with conditions that all \
                            hold, `or`, of which one holds, and `not`, with one that does not hold: no test but that for null holds of \
                            null. 1,000 tests at most, 32 of them by `suffix`, `contains`, `regex` or with \
                            `ignore_case`, and 16 deep. Bytes are `{\"base64\": \"..\"}`.",
            "type": "object",
            "properties": {
                "attr": {"type": "string"},
                "eq": value(),
                "in": {"type": "array", "items": value()},
                "prefix": value(),
                "suffix": value(),
                "contains": value(),
                "regex": value(),
                "from": value(),
                "above": value(),
                "to": value(),
                "below": value(),
                "ignore_case": {"type": "boolean"},
                "and": {"type": "array", "items": generator.subschema_for::<Self>()},
                "or": {"type": "array", "items": generator.subschema_for::<Self>()},
                "not": generator.subschema_for::<Self>(),
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
                "and" | "or" => json!({word.as_str(): [{"attr": "a", "eq": null}]}),
                "not" => json!({"not": {"attr": "a", "eq": null}}),
                "in" => json!({"attr": "a", "in": [1, "x", null]}),
                "ignore_case" => json!({"attr": "a", "suffix": "x", "ignore_case": true}),
                test => json!({"attr": "a", test: 1}),
            };
            let read = Condition::from_json(&condition).unwrap_or_else(|error| panic!("{word}: {error}"));
            assert_eq!(read.to_json(), condition, "{word}");
        }
        assert!(Condition::from_json(&json!({"attr": "a", "more": 1})).is_err());
    }
}
