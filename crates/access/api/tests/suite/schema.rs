//! Whether a value is what a schema says. Only what the description uses is known here; a word that is not fails the test, so that
//! nothing is passed over. Stricter than JSON Schema in one thing: a property that is not described is wrong.

use serde_json::Value as Json;

/// `Err` with the place of what is wrong. `root` is what references begin at.
pub fn check(root: &Json, schema: &Json, value: &Json, at: &str) -> Result<(), String> {
    let words = match schema {
        Json::Bool(true) => return Ok(()),
        Json::Object(words) => words,
        other => return Err(format!("{at}: {other} is no schema")),
    };
    for (word, rule) in words {
        let is_so = match word.as_str() {
            "$ref" => {
                let pointer = rule.as_str().and_then(|rule| rule.strip_prefix('#')).unwrap();
                let schema = root.pointer(pointer).ok_or_else(|| format!("{at}: {rule} leads nowhere"))?;
                check(root, schema, value, at)?;
                true
            }
            "type" => match rule {
                Json::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
                kind => is_of(kind, value),
            },
            "required" => rule.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some()),
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        check(root, schema, value, &format!("{at}.{name}"))?;
                    }
                }
                let is_known = |name: &String| rule.get(name).is_some() || words.contains_key("additionalProperties");
                value.as_object().into_iter().flatten().all(|(name, _)| is_known(name))
            }
            "additionalProperties" => {
                let properties = words.get("properties");
                let more = value.as_object().into_iter().flatten();
                rule.as_bool().unwrap() || more.into_iter().all(|(name, _)| properties.is_some_and(|all| all.get(name).is_some()))
            }
            "items" => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}[{place}]"))?;
                }
                true
            }
            "enum" => rule.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_none_or(|text| regex::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
            "oneOf" => rule.as_array().unwrap().iter().filter(|schema| check(root, schema, value, at).is_ok()).count() == 1,
            "anyOf" => rule.as_array().unwrap().iter().any(|schema| check(root, schema, value, at).is_ok()),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
            "format" | "description" | "default" | "examples" => true,
            other => panic!("{at}: what does {other} mean?"),
        };
        if !is_so {
            return Err(format!("{at}: {value} is not as {word} has it: {rule}"));
        }
    }
    Ok(())
}

fn is_of(kind: &Json, value: &Json) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("what is a {other}?"),
    }
}

#[test]
fn what_is_wrong_is_found() {
    let root = serde_json::json!({"defs": {"a": {
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"], "minimum": 1}, "of": {"type": "array", "items": {"type": "string"}}},
        "required": ["n"],
    }}});
    let schema = serde_json::json!({"$ref": "#/defs/a"});
    let check = |value: &str| check(&root, &schema, &serde_json::from_str(value).unwrap(), "it").is_ok();
    assert!(check(r#"{"n": 1, "of": ["x"]}"#) && check(r#"{"n": null}"#));
    for wrong in ["[]", "{}", r#"{"n": 0}"#, r#"{"n": 1.5}"#, r#"{"n": 1, "of": [1]}"#, r#"{"n": 1, "more": 1}"#] {
        assert!(!check(wrong), "{wrong}");
    }
}
