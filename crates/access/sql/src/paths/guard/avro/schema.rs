//! An Avro schema as the [shape](Shape) of its values. A pure decision.

use std::collections::HashMap;

use serde_json::Value;

use super::shape::Shape;
use crate::paths::guard::fault::{Fault, Result, damage};

/// Types in types.
const DEPTH_MAX: usize = 64;
/// Types of a schema, each use of a named one counted with all that is in it: the decoder makes them all.
const TYPES_MAX: usize = 20_000;

/// A shape, and what it takes to make a decoder of it.
#[derive(Clone)]
struct Sized {
    shape: Shape,
    types: usize,
    depth: usize,
}

/// The shape of a schema's values.
pub(super) fn shape_of(schema: &str) -> Result<Shape> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| Fault::Damage(format!("its schema is no JSON ({error})")))?;
    let root = Names::default().sized(&schema, "")?;
    match root.shape {
        Shape::Record(_) => Ok(root.shape),
        _ => Err(Fault::Unsupported("its rows are no records".to_string())),
    }
}

/// The named types that a schema has defined so far, by namespace and name.
#[derive(Default)]
struct Names(HashMap<(String, String), Sized>);

impl Names {
    fn sized(&mut self, schema: &Value, space: &str) -> Result<Sized> {
        match schema {
            Value::String(name) => self.named(name, space),
            Value::Array(branches) if branches.iter().any(Value::is_array) => damage("its schema has a union in a union"),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.sized(branch, space)).collect::<Result<Vec<_>>>()?;
                over(branches, |branches| Shape::Union(branches.into()))
            }
            Value::Object(_) => self.complex(schema, space),
            _ => damage("its schema has a type that is none"),
        }
    }

    fn complex(&mut self, schema: &Value, space: &str) -> Result<Sized> {
        let Some(kind) = text(schema, "type") else { return damage("its schema has a type without a name") };
        let own = text(schema, "namespace").unwrap_or(space);
        match kind {
            "array" => over(vec![self.below(schema, "items", space)?], |mut item| Shape::Array(item.remove(0).into())),
            "map" => over(vec![self.below(schema, "values", space)?], |mut value| Shape::Map(value.remove(0).into())),
            "record" => {
                let Some(fields) = schema["fields"].as_array() else { return damage("its schema has a record without fields") };
                let fields = fields.iter().map(|field| self.below(field, "type", own)).collect::<Result<Vec<_>>>()?;
                let sized = over(fields, |fields| Shape::Record(fields.into()))?;
                self.define(schema, own, sized)
            }
            "fixed" => {
                let width = schema["size"].as_u64().and_then(|width| i32::try_from(width).ok());
                let Some(width) = width else { return damage("its schema has a fixed type without a size") };
                self.define(schema, own, one(Shape::Fixed(width as usize)))
            }
            "enum" => {
                let Some(symbols) = schema["symbols"].as_array() else { return damage("its schema has an enum without symbols") };
                self.define(schema, own, one(Shape::Enum(symbols.len())))
            }
            // A type with properties, which don't change how its values are.
            _ => self.named(kind, space),
        }
    }

    fn below(&mut self, schema: &Value, key: &str, space: &str) -> Result<Sized> {
        match schema.get(key) {
            Some(below) => self.sized(below, space),
            None => damage(format!("its schema has a type without {key}")),
        }
    }

    /// Named types are known as the decoder knows them: of two with one name the last counts.
    fn define(&mut self, schema: &Value, space: &str, sized: Sized) -> Result<Sized> {
        let Some(name) = text(schema, "name") else { return damage("its schema has a type without a name") };
        self.0.insert((space.to_string(), name.to_string()), sized.clone());
        Ok(sized)
    }

    fn named(&self, name: &str, space: &str) -> Result<Sized> {
        Ok(one(match name {
            "null" => Shape::Nothing,
            "boolean" => Shape::Boolean,
            "int" => Shape::Int,
            "long" => Shape::Long,
            "float" => Shape::Fixed(4),
            "double" => Shape::Fixed(8),
            "bytes" | "string" => Shape::Bytes,
            _ => {
                let (space, own) = name.rsplit_once('.').unwrap_or((space, name));
                let known = self.0.get(&(space.to_string(), own.to_string())).cloned();
                return known
                    .ok_or_else(|| Fault::Unsupported(format!("its schema has not yet defined '{name}' where it uses it")));
            }
        }))
    }
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key)?.as_str()
}

fn one(shape: Shape) -> Sized {
    Sized { shape, types: 1, depth: 1 }
}

/// A type over others.
fn over(below: Vec<Sized>, shape: impl FnOnce(Vec<Shape>) -> Shape) -> Result<Sized> {
    let types = below.iter().fold(1usize, |sum, below| sum.saturating_add(below.types));
    let depth = 1 + below.iter().map(|below| below.depth).max().unwrap_or_default();
    if types > TYPES_MAX || depth > DEPTH_MAX {
        return Err(Fault::Unsupported(format!("its schema has more than {TYPES_MAX} types, or {DEPTH_MAX} in each other")));
    }
    Ok(Sized { shape: shape(below.into_iter().map(|below| below.shape).collect()), types, depth })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_become_shapes() {
        let shape = shape_of(
            r#"{"type": "record", "name": "Row", "namespace": "a.b", "fields": [
                {"name": "id", "type": {"type": "long", "logicalType": "timestamp-micros"}},
                {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 3}},
                {"name": "again", "type": ["null", "a.b.Code"]},
                {"name": "kinds", "type": {"type": "array", "items": {"type": "enum", "name": "Kind", "symbols": ["x", "y"]}}},
                {"name": "named", "type": {"type": "map", "values": "Kind"}}]}"#,
        );
        let code = Shape::Fixed(3);
        let fields = [
            Shape::Long,
            code.clone(),
            Shape::Union([Shape::Nothing, code].into()),
            Shape::Array(Shape::Enum(2).into()),
            Shape::Map(Shape::Enum(2).into()),
        ];
        assert_eq!(shape.unwrap(), Shape::Record(fields.into()));
    }

    #[test]
    fn schemas_that_grow_without_bound_are_refused() {
        // Each record has the one before it twice: 2^40 of the first.
        let record = |at: usize, below: &str| {
            format!(
                r#"{{"type": "record", "name": "r{at}", "fields": [{{"name": "a", "type": {below}}}, {{"name": "b", "type": "r{}"}}]}}"#,
                at.max(1) - 1
            )
        };
        let first = r#"{"type": "record", "name": "r0", "fields": [{"name": "a", "type": "int"}]}"#.to_string();
        let schema = (1..40).fold(first, |below, at| record(at, &below));
        assert!(matches!(shape_of(&schema), Err(Fault::Unsupported(_))));
        let itself = r#"{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]}"#;
        assert!(matches!(shape_of(itself), Err(Fault::Unsupported(_))));
        assert!(matches!(shape_of(r#""int""#), Err(Fault::Unsupported(_))));
        assert!(matches!(shape_of("{"), Err(Fault::Damage(_))));
    }
}
