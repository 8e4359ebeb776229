//! Spans as OTLP has them, in its form of JSON (`ExportTraceServiceRequest`).

use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};

use crate::record::{Kind, Record, Value};

/// The body of a request with these spans of a process that is so called.
pub(crate) fn body(roles: &str, instance: &str, records: &[Record]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("service.name", Value::from("forebay")),
        ("service.version", Value::from(version)),
        ("service.instance.id", Value::from(instance)),
        ("forebay.roles", Value::from(roles)),
    ];
    let spans: Vec<Json> = records.iter().map(span).collect();
    let spans = json!([{ "scope": { "name": "forebay", "version": version }, "spans": spans }]);
    let resource = json!({ "attributes": attributes(&resource) });
    json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": spans }] }).to_string().into_bytes()
}

fn span(record: &Record) -> Json {
    let began = record.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut span = json!({
        "traceId": format!("{:032x}", record.context.trace),
        "spanId": format!("{:016x}", record.context.span),
        "name": record.name,
        "kind": match record.kind {
            Kind::Internal => 1,
            Kind::Server => 2,
            Kind::Client => 3,
        },
        "startTimeUnixNano": nanos(began),
        "endTimeUnixNano": nanos(began + record.took),
        "attributes": attributes(&record.attributes),
    });
    if let Some(parent) = record.parent {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    if let Some(error) = &record.error {
        span["status"] = json!({ "code": 2, "message": error });
    }
    span
}

/// Numbers of 64 bits are text in JSON of protocol buffers.
fn nanos(time: Duration) -> String {
    time.as_nanos().to_string()
}

fn attributes(of: &[(&'static str, Value)]) -> Vec<Json> {
    let value = |value: &Value| match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
    };
    of.iter().map(|(key, of)| json!({ "key": key, "value": value(of) })).collect()
}

#[cfg(test)]
mod tests {
    use forebay_protocol::TraceContext;

    use super::*;

    #[test]
    fn a_span_is_as_collectors_read_it() {
        let record = Record {
            context: TraceContext { trace: 0xab, span: 0xcd },
            parent: Some(0xef),
            name: "read",
            kind: Kind::Client,
            began: SystemTime::UNIX_EPOCH + Duration::from_secs(7),
            took: Duration::from_nanos(5),
            attributes: vec![("bytes", Value::Number(9)), ("key", Value::from("a \"b\""))],
            error: Some("gone".to_string()),
        };
        let written: Json = serde_json::from_slice(&body("worker", "host:1", std::slice::from_ref(&record))).unwrap();
        let span = &written["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        let expected = json!({
            "traceId": "000000000000000000000000000000ab",
            "spanId": "00000000000000cd",
            "parentSpanId": "00000000000000ef",
            "name": "read",
            "kind": 3,
            "startTimeUnixNano": "7000000000",
            "endTimeUnixNano": "7000000005",
            "attributes": [
                {"key": "bytes", "value": {"intValue": "9"}},
                {"key": "key", "value": {"stringValue": "a \"b\""}},
            ],
            "status": {"code": 2, "message": "gone"},
        });
        assert_eq!(*span, expected);
        let of_process = &written["resourceSpans"][0]["resource"]["attributes"];
        assert_eq!(of_process[0], json!({"key": "service.name", "value": {"stringValue": "forebay"}}));
        let first = Record { parent: None, error: None, ..record };
        let written: Json = serde_json::from_slice(&body("worker", "host:1", &[first])).unwrap();
        let span = &written["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert!(span.get("parentSpanId").is_none() && span.get("status").is_none());
    }
}
