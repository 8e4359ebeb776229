//! The description says what is so: its examples are asked, and what comes back is held against it.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::bed::{Answer, Bed, query};
use crate::schema::check;

struct Path {
    path: String,
    method: String,
    operation: Json,
}

async fn description(bed: &Bed) -> (Json, Vec<Path>) {
    let document = bed.ask_as(None, "GET", "/api/v1/openapi.json", "").await.json();
    let mut paths = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            paths.push(Path { path: path.clone(), method: method.to_uppercase(), operation: operation.clone() });
        }
    }
    (document, paths)
}

impl Path {
    /// What an answer of this status has to be, with its media type.
    fn answer(&self, document: &Json, status: u16) -> (String, Json) {
        let mut response = &self.operation["responses"][status.to_string()];
        if let Some(reference) = response["$ref"].as_str() {
            response = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        }
        let content = response["content"].as_object();
        let content = content.unwrap_or_else(|| panic!("{} has no answer of {status}", self.path));
        let (kind, media) = content.iter().next().unwrap();
        (kind.clone(), media["schema"].clone())
    }

    /// Whom it is for, if there is no reason to take somebody else.
    fn known(&self) -> &'static str {
        if ["/pin", "/freeze", "/ack", "/forgo"].iter().any(|order| self.path.ends_with(order)) {
            return "admin";
        }
        let is_work = self.method == "POST" && (self.path.ends_with("/refresh") || self.path.ends_with("/reshard"));
        let changes = matches!(self.method.as_str(), "PUT" | "DELETE") || self.path.ends_with("/change") || is_work;
        match self.path.as_str() {
            "/api/v1/tokens" => "admin",
            _ if changes => "write",
            _ => "read",
        }
    }

    /// What is asked when all parameters are as their examples.
    fn example(&self, document: &Json) -> (String, String) {
        let mut parameters = Vec::new();
        for parameter in self.operation["parameters"].as_array().into_iter().flatten() {
            let (name, example) = (parameter["name"].as_str().unwrap(), &parameter["schema"]["examples"][0]);
            assert!(parameter["description"].as_str().is_some_and(|about| !about.is_empty()), "{} {name}", self.path);
            check(document, &parameter["schema"], example, name).unwrap();
            match example {
                Json::Array(several) => parameters.extend(several.iter().map(|one| (name, text(one)))),
                one => parameters.push((name, text(one))),
            }
        }
        let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut body = String::new();
        for (kind, media) in self.operation["requestBody"]["content"].as_object().into_iter().flatten() {
            body = media["example"].as_str().unwrap().to_string();
            let values: Vec<Json> = match kind.as_str() {
                "application/x-ndjson" => body.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
                "application/sql" => vec![body.clone().into()],
                "application/json" => vec![serde_json::from_str(&body).unwrap()],
                other => panic!("what is {other}?"),
            };
            for value in values {
                check(document, &media["schema"], &value, &self.path).unwrap();
            }
        }
        (query(&self.path, &parameters), body)
    }

    /// Holds an answer against the description.
    fn check(&self, document: &Json, answer: &Answer) {
        let (kind, schema) = self.answer(document, answer.status);
        assert_eq!(answer.header("content-type"), kind, "{}", self.path);
        let values = if kind == "application/json" { vec![answer.json()] } else { answer.lines() };
        assert!(!values.is_empty(), "{}: there is something to look at", self.path);
        for value in values {
            check(document, &schema, &value, &self.path).unwrap();
        }
    }
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_example_is_answered_as_it_is_described() {
    let bed = Bed::start(2).await;
    let (document, mut paths) = description(&bed).await;
    assert_eq!((document["openapi"].as_str(), paths.len()), (Some("3.1.0"), 38));
    // It merges changes, so that records have later versions behind it.
    paths.sort_by_key(|path| path.path.ends_with("/forgo"));
    for path in &paths {
        let (mut asked, body) = path.example(&document);
        if (path.path.as_str(), path.method.as_str()) == ("/api/v1/load", "DELETE") {
            // One that there is.
            let begin = query(&path.path, &[("path", "/lake/forever")]);
            let begun = bed.ask_as(Some(bed.token(path.known())), "POST", &begin, "").await.json();
            asked = query(&path.path, &[("id", begun["id"].as_str().unwrap())]);
        }
        if path.path == "/api/v1/events" {
            let (kind, schema) = path.answer(&document, 200);
            assert_eq!(kind, "text/event-stream");
            let data = &schema["properties"]["data"];
            assert_eq!((&data["type"], &data["contentMediaType"]), (&"string".into(), &"application/json".into()));
            check(&document, &data["contentSchema"], &bed.first_event(&asked).await, &asked).unwrap();
            continue;
        }
        let answer = bed.ask_as(Some(bed.token(path.known())), &path.method, &asked, body).await;
        assert_eq!(answer.status, 200, "{asked}: {answer:?}");
        if path.path != "/api/v1/openapi.json" {
            path.check(&document, &answer);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_is_one_that_is_described() {
    let mut bed = Bed::start(1).await;
    let (document, paths) = description(&bed).await;
    for path in &paths {
        let (asked, body) = path.example(&document);
        if path.operation["security"] == serde_json::json!([]) {
            continue;
        }
        // SQL is for whoever is known, what that one may read being looked at when it is read; and so are one's own loads, and what was
        // saved of what one may see.
        let of_known = path.path.starts_with("/api/v1/sql") || path.path == "/api/v1/savings";
        let of_own = of_known || (path.path == "/api/v1/load" && path.method != "POST");
        let refused = if of_own { "expired" } else { "read other" };
        for (token, status) in [(None, 401), (Some(bed.token(refused)), 403)] {
            let answer = bed.ask_as(token, &path.method, &asked, body.clone()).await;
            assert_eq!(answer.status, status, "{asked}");
            path.check(&document, &answer);
        }
        if path.operation.get("parameters").is_some() {
            let answer = bed.ask_as(Some(bed.token(path.known())), &path.method, &format!("{asked}&more=1"), body.clone()).await;
            assert_eq!(answer.status, 400, "{asked}");
            path.check(&document, &answer);
        }
        if asked.contains("dataset=") {
            let none = asked.replace("orders", "none");
            let answer = bed.ask_as(Some(bed.token(path.known())), &path.method, &none, body.clone()).await;
            assert_eq!(answer.status, 404, "{none}");
            path.check(&document, &answer);
        }
    }
    bed.stop_workers().await;
    for path in paths.iter().filter(|path| path.path.ends_with("/count")) {
        let asked = path.example(&document).0.replace("30s", "300ms");
        let answer = bed.ask_as(Some(bed.token("read")), &path.method, &asked, "").await;
        assert!(matches!(answer.status, 503 | 504), "{answer:?}");
        path.check(&document, &answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_described_path_is_one_that_there_is_and_stands_in_the_page() {
    let bed = Bed::start(1).await;
    let (document, paths) = description(&bed).await;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/api.md")).unwrap();
    for path in &paths {
        let answer = bed.ask_as(None, &path.method, &path.path, "").await;
        let is_open = path.operation["security"] == serde_json::json!([]);
        // Who shows nothing hears of that first, and not of the parameters that are missing.
        assert_eq!(answer.status, if is_open { 200 } else { 401 }, "{}: {answer:?}", path.path);
        assert!(page.contains(&format!("`{} {}", path.method, path.path)), "{} is not in docs/api.md", path.path);
        // What a program is made of it has a name for each.
        assert!(path.operation["operationId"].as_str().is_some_and(|id| !id.contains(['/', '.'])));
    }
    // The reverse: the page has no other.
    let in_page = ["GET", "POST", "PUT", "DELETE"].map(|method| page.matches(&format!("`{method} /api/v1/")).count());
    assert_eq!(in_page.iter().sum::<usize>(), paths.len());
    let ids: BTreeSet<&str> = paths.iter().map(|path| path.operation["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), paths.len(), "{ids:?}");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let named = "Status Placement Savings DatasetStatus Question Wrong Jobs Tasks Transfers Answer Explained LoadState Change \
        Versioned RefreshStatus ReshardStatus WorkStatus";
    for name in named.split(' ') {
        assert!(schemas.contains_key(name), "{name}: {:?}", schemas.keys());
    }
    leads_somewhere(&document, &document);
    are_of_one_type(&document);
}

/// Programs that read descriptions end where an alternative is of several types, and where a schema is `true` instead of an object.
fn are_of_one_type(part: &Json) {
    for alternatives in [&part["anyOf"], &part["oneOf"]] {
        assert!(alternatives.as_array().into_iter().flatten().all(|one| !one["type"].is_array()), "{part}");
    }
    let properties = part["properties"].as_object().into_iter().flat_map(|properties| properties.values());
    assert!(!part["items"].is_boolean() && properties.into_iter().all(|property| !property.is_boolean()), "{part}");
    match part {
        Json::Object(fields) => fields.values().for_each(are_of_one_type),
        Json::Array(items) => items.iter().for_each(are_of_one_type),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_taken_for_a_change_where_its_schema_has_it_so() {
    let bed = Bed::start(1).await;
    let document = bed.ask_as(None, "GET", "/api/v1/openapi.json", "").await.json();
    let shape = serde_json::json!({"$ref": "#/components/schemas/Change"});
    for (line, is_one) in [
        (r#"{"put": {"id": 80001}}"#, true),
        (r#"{"put": {"id": 80001}, "delete": null, "if_absent": null}"#, true),
        (r#"{"put": null, "delete": 80001}"#, true),
        (r#"{"put": {"id": 80001}, "delete": 80001}"#, false),
        (r#"{"put": null}"#, false),
        (r#"{"delete": null}"#, false),
        ("{}", false),
    ] {
        let said = check(&document, &shape, &serde_json::from_str(line).unwrap(), "it");
        assert_eq!(said.is_ok(), is_one, "{line}: {said:?}");
        let answer = bed.change("POST", "change", &[], line).await;
        assert_eq!(answer.status, if is_one { 200 } else { 400 }, "{line}: {answer:?}");
    }
}

/// Each reference is to something that there is.
fn leads_somewhere(document: &Json, part: &Json) {
    if let Some(reference) = part["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
        assert!(target.is_some_and(Json::is_object), "{reference}");
    }
    match part {
        Json::Object(fields) => fields.values().for_each(|field| leads_somewhere(document, field)),
        Json::Array(items) => items.iter().for_each(|item| leads_somewhere(document, item)),
        _ => {}
    }
}
