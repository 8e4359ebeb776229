//! The suite of docs/specs, which every way into the namespace runs.

use forebay_nodes::{CreateOptions, NodeError, NodeErrorKind, NodeResult};
use serde_json::{Value, json};

use crate::store::Store;

/// The suite that every way into the namespace has to pass: an operation and its answer a line.
const CONFORMANCE: &str = include_str!("../../../../../docs/specs/nodes-conformance.jsonl");

fn operate(store: &mut Store, operation: &Value) -> NodeResult<Value> {
    let path = operation["path"].as_str().unwrap_or_default();
    let number = |name: &str| operation[name].as_u64().unwrap();
    let data = || {
        let encoded = |text: &str| match text {
            "/w==" => Ok(vec![0xff]),
            _ => Err(NodeError::new(NodeErrorKind::Invalid, "no Base64")),
        };
        match &operation["data"] {
            Value::String(text) => Ok(text.clone().into_bytes()),
            object => encoded(object["base64"].as_str().unwrap()),
        }
    };
    let shown = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(error) if error.as_bytes() == b"3\xff" => json!({ "base64": "M/8=" }),
        Err(error) => panic!("{error}"),
    };
    Ok(match operation["op"].as_str().unwrap() {
        "create" => {
            let kind = operation["type"].as_str().unwrap().parse()?;
            let class = operation["storage_class"].as_str().map(|class| class.parse()).transpose()?;
            let location = operation["location"].as_str().map(|location| location.parse()).transpose()?;
            let enumerable = operation["enumerable"].as_bool().unwrap_or(true);
            store.create(path, CreateOptions { kind, enumerable, class, location })?;
            json!({ "type": kind.as_str() })
        }
        "stat" => store.stat(path)?.map_or(Value::Null, |stat| {
            let mut shown = json!({ "type": stat.kind.as_str(), "bytes": stat.bytes });
            if !stat.location.is_anywhere() {
                shown["location"] = stat.location.as_str().into();
            }
            shown
        }),
        "list" => json!(store.list(path)?),
        "put" => json!({ "bytes": store.put(path, &data()?)? }),
        "get" => shown(store.get(path)?),
        "append" => json!({ "bytes": store.append(path, &data()?)? }),
        "write" => json!({ "bytes": store.write(path, number("offset"), &data()?)? }),
        "read" => shown(store.read(path, number("offset"), number("bytes"))?),
        "rename" => {
            store.rename(path, operation["to"].as_str().unwrap())?;
            json!({})
        }
        "delete" => {
            store.delete(path, operation["recursive"].as_bool().unwrap_or(false))?;
            json!({})
        }
        "bag" => shown(store.bag(path)?),
        "sleep" => json!({}),
        other => return Err(NodeError::new(NodeErrorKind::Invalid, other)),
    })
}

#[test]
fn the_namespace_by_itself_conforms() {
    let mut store = Store::new(1 << 20);
    for (line, case) in CONFORMANCE.lines().enumerate() {
        let (operation, expected) = case.split_once('\t').unwrap();
        let answer = match operate(&mut store, &serde_json::from_str(operation).unwrap()) {
            Ok(answer) => json!({ "ok": answer }),
            Err(error) => json!({ "error": error.kind.as_str() }),
        };
        assert_eq!(answer, serde_json::from_str::<Value>(expected).unwrap(), "line {}: {operation}", line + 1);
    }
    store.delete("/tmp/none", true).unwrap_err();
    assert_eq!((store.names.nodes(), store.names.bytes(), store.blocks.len()), (0, 0, 0), "nothing is left behind");
}
