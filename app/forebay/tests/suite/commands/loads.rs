//! Loads over HTTP, beside the command's.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::http::{ask, body, post};
use crate::support::{Bucket, csv, forebay, lake};

#[test]
fn a_load_over_http_brings_what_the_command_does() {
    let bucket = Bucket::s3();
    let (_home, up, at) = lake(&bucket);
    let data = csv(20_000);
    for key in ["sales/a.csv", "sales/b.csv", "salesmen.csv"] {
        bucket.put(key, &data);
    }
    let added = forebay(&at, &["token", "add", "loader", "--read", "--mount", "lake", "--json"]).ok().json();
    let headers = format!("Authorization: Bearer {}\r\n", added[0]["token"].as_str().unwrap());
    let host = up.place("console").trim_start_matches("http://").trim_end_matches('/').to_string();
    let over = |parameters: &str| -> Value {
        let begun = body(&post(&host, &format!("/api/v1/load?{parameters}"), &headers, ""));
        let began = Instant::now();
        loop {
            let listed = body(&ask(&host, "/api/v1/load", &headers));
            let load = listed["loads"].as_array().unwrap().iter().find(|load| load["id"] == begun["id"]).unwrap().clone();
            if !["planning", "running"].map(Value::from).contains(&load["state"]) {
                return load;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{load}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let (done, both) = (over("path=/lake/sales"), 2 * data.len() as u64);
    assert_eq!((&done["state"], &done["error"], &done["objects"]), (&json!("done"), &json!(""), &json!(2)), "{done}");
    assert_eq!((&done["bytes"], &done["done_bytes"]), (&json!(both), &json!(both)), "{done}");
    assert!(done["fetched_bytes"].as_u64().unwrap() > 0, "{done}");
    assert_eq!(forebay(&at, &["load", "/lake/sales", "--json"]).ok().json()[0]["fetched_bytes"], 0);
    assert_eq!(forebay(&at, &["du", "/lake/salesmen.csv", "--json"]).ok().json()[0]["cached_bytes"], 0);
    for (parameters, word) in [("path=/lake/none", "/lake/none"), ("path=/lake/sales&columns=nosuch", "nosuch")] {
        let failed = over(parameters);
        assert_eq!(failed["state"], "failed", "{failed}");
        assert!(failed["error"].as_str().unwrap().contains(word), "{failed}");
    }
    assert!(ask(&host, "/api/v1/explain?path=/lake/sales/a.csv", &headers).contains("\"missing_bytes\":0"));
}
