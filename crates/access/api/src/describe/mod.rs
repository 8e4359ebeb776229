//! `/api/v1/openapi.json`: what the paths take and answer, as OpenAPI 3.1 has it.
//!
//! Owns: the document, made of the types that are read and written, so that it can't say anything else.
//!
//! Never does: know a path by itself. What is not routed by [`Routes`] is not described, and the reverse.
//!
//! Start with [`document`].

mod path;

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

pub(crate) use path::{Content, Described, Routes, Shape, Verb};

use crate::refusal::Wrong;

const JSON: &str = "application/json";
const JSON_LINES: &str = "application/x-ndjson";

pub(crate) fn document(paths: &[Described]) -> Value {
    let settings = || SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into());
    // What is read may leave out what has a default; what is written has it.
    let mut read = settings().for_deserialize().into_generator();
    let mut written = settings().for_serialize().into_generator();
    let mut items = Map::new();
    for path in paths {
        // What indexes a value that is null makes an object of it.
        let item = items.entry(path.path).or_insert(Value::Null);
        let is_read = paths.iter().any(|other| other.path == path.path && other.verb == Verb::Get);
        item[path.verb.name()] = operation(path, is_read, &mut read, &mut written);
    }
    let refusals = refusals(paths).into_iter().map(|status| (status.to_string(), refusal(status, &mut written)));
    let refusals: Map<String, Value> = refusals.collect();
    let mut schemas = read.take_definitions(true);
    schemas.extend(written.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Forebay",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What a cluster says of itself, and its datasets of shards. Beside each coordinator, at its address for HTTP.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": items,
        "components": {
            "schemas": schemas,
            "responses": refusals,
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token, as `forebay token add NAME --read` makes it, with `--write` for what changes records, \
                                and with `--admin` for orders; with `--mount` \
                                it is for datasets of that mount alone.",
            }},
        },
    })
}

/// How a path is asked; `is_read` where it can be read, too, which has the name of the path alone.
fn operation(path: &Described, is_read: bool, read: &mut SchemaGenerator, written: &mut SchemaGenerator) -> Value {
    let id = path.path.trim_start_matches("/api/v1/").replace(['/', '.'], "_");
    let id = match path.verb {
        Verb::Get => id,
        // What is sent says what it is for.
        Verb::Post if path.body.is_some() || !is_read => id,
        verb => format!("{}_{id}", verb.name()),
    };
    let mut answered = content(&path.answer, written);
    if let Some(other) = &path.or {
        answered["content"][other.kind] = media(other, written);
    }
    let mut responses = Map::from_iter([("200".to_string(), answered)]);
    for status in refusals(std::slice::from_ref(path)) {
        responses.insert(status.to_string(), json!({"$ref": format!("#/components/responses/{status}")}));
    }
    let mut operation = json!({"operationId": id, "summary": path.about, "responses": responses});
    if let Some(shape) = path.parameters {
        operation["parameters"] = parameters(&shape(read));
    }
    if let Some(body) = &path.body {
        operation["requestBody"] = content(body, read);
        // Of lines there may be none.
        operation["requestBody"]["required"] = (body.kind != JSON_LINES).into();
    }
    operation["security"] = if path.is_open { json!([]) } else { json!([{"token": []}]) };
    operation
}

/// What the HTTP server answers by itself where the first line of a request is too long.
const URI_TOO_LONG: u16 = 414;

/// The statuses of refusals, ascending, each once.
fn refusals(paths: &[Described]) -> Vec<u16> {
    let of_token = |path: &Described| if path.is_open { &[][..] } else { &[401, 403][..] };
    // What fails by a defect is answered so, whatever it is, and so is a line that is longer than any is read.
    let all = paths.iter().flat_map(|path| path.refusals.iter().chain(of_token(path)).chain(&[URI_TOO_LONG, 500]));
    let mut all: Vec<u16> = all.copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn content(content: &Content, generator: &mut SchemaGenerator) -> Value {
    json!({"description": content.about, "content": {content.kind: media(content, generator)}})
}

fn media(content: &Content, generator: &mut SchemaGenerator) -> Value {
    let mut media = json!({"schema": (content.shape)(generator)});
    if let Some(example) = content.example {
        media["example"] = example.into();
    }
    media
}

/// A parameter a property. What is said of a property is said of its parameter.
fn parameters(shape: &Schema) -> Value {
    let field = |name: &str| shape.get(name).cloned().unwrap_or_default();
    let (properties, required) = (field("properties"), field("required"));
    let is_required = |name: &str| required.as_array().is_some_and(|required| required.iter().any(|other| other == name));
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
        // One that may be missing is not there, and never null.
        if let Some([kind, Value::String(null)]) = schema["type"].as_array().map(Vec::as_slice)
            && null == "null"
        {
            schema["type"] = kind.clone();
        }
        json!({"name": name, "in": "query", "required": is_required(name), "description": about, "schema": schema})
    };
    properties.as_object().into_iter().flatten().map(parameter).collect()
}

fn refusal(status: u16, generator: &mut SchemaGenerator) -> Value {
    let about = match status {
        400 => "A parameter is missing, unknown, there twice or no value of its kind.",
        401 => "No token, or none that is known.",
        403 => "A token that may not do this.",
        404 => "There is no such mount, dataset or record, or this process does not serve it.",
        408 => "The body did not come in time.",
        409 => "The dataset was replaced in between, or the condition of a change does not hold: read again, then ask.",
        URI_TOO_LONG => "The path and its parameters are longer than 64 KiB.",
        413 => "Too many bytes, questions or changes: send several.",
        429 => "Too many requests of this token are under way.",
        500 => "A fault here, or in what is stored.",
        503 => "Workers are away or have no room, or too many ask.",
        504 => "The timeout has passed.",
        other => unreachable!("{other} is no status of a refusal"),
    };
    if status == URI_TOO_LONG {
        // Nothing of ours has seen it.
        return json!({"description": about});
    }
    let mut response = json!({"description": about, "content": {JSON: {"schema": generator.subschema_for::<Wrong>()}}});
    let header = match StatusCode::from_u16(status) {
        Ok(StatusCode::UNAUTHORIZED) => Some(("WWW-Authenticate", "string", "`Bearer`")),
        Ok(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
            Some(("Retry-After", "integer", "Seconds after which it makes sense to ask again."))
        }
        _ => None,
    };
    if let Some((name, kind, about)) = header {
        response["headers"] = json!({name: {"description": about, "schema": {"type": kind}}});
    }
    response
}
