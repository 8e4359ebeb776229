//! Jobs, transfers and statements: what the coordinator does not know itself.

use forebay_client::{CreateOptions, NodeType};
use serde_json::json;

use crate::bed::Bed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_and_transfers_are_those_of_the_scheduler() {
    let bed = Bed::start(1).await;
    let all = async |path: &str| bed.ask_as(Some(bed.token("read")), "GET", path, "").await.json();
    let jobs = all("/api/v1/jobs").await;
    assert_eq!(jobs["has_scheduler"], true);
    assert_eq!((&jobs["jobs"][0]["id"], &jobs["jobs"][0]["tasks_done"]), (&json!("a1"), &json!(3)));
    let tasks = all("/api/v1/tasks").await;
    assert_eq!(
        tasks["tasks"],
        json!([{"job": "a1", "stage": 2, "partition": 3, "state": "done", "worker": "w1", "bytes": 4096, "bytes_local": 1024,
            "seconds": 0.25, "ended_seconds_ago": 2.0}])
    );
    let transfers = all("/api/v1/transfers").await;
    assert_eq!(
        transfers["transfers"],
        json!([{"path": "/lake/a.csv", "start": 0, "bytes": 4096, "worker": "w1", "seconds": 0.5}])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_listed_without_what_their_holders_show() {
    let bed = Bed::start(1).await;
    let answer = bed.ask_as(Some(bed.token("admin")), "GET", "/api/v1/tokens", "").await;
    let listed = answer.json();
    let find = |id: &str| listed["tokens"].as_array().unwrap().iter().find(|token| token["id"] == id).unwrap();
    let lake = find("read-lake.1");
    assert_eq!((&lake["role"], &lake["mounts"], &lake["expires"]), (&json!("read"), &json!(["lake"]), &json!(null)));
    assert_eq!((&find("admin.1")["role"], &find("admin.1")["mounts"]), (&json!("admin"), &json!(null)));
    assert!(find("expired.1")["expires"].as_str().unwrap().starts_with("at "), "{listed}");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    for name in crate::bed::TOKENS {
        let secret = bed.token(name).rsplit('.').next().unwrap();
        assert!(!secret.is_empty() && !text.contains(secret), "{name} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_nodes_are_listed_page_by_page() {
    let bed = Bed::start(2).await;
    let nodes = bed.client.nodes();
    nodes.create("/tmp/job", CreateOptions::new(NodeType::Table)).await.unwrap();
    for name in ["a", "b", "c"] {
        nodes.put(&format!("/tmp/job/{name}"), name.repeat(3).into_bytes()).await.unwrap();
    }
    let list =
        async |parameters: &str| bed.ask_as(Some(bed.token("read tmp")), "GET", &format!("/api/v1/nodes?{parameters}"), "").await;
    let node = |name: &str| json!({"name": name, "type": "key-value", "bytes": 3});
    assert_eq!(list("path=/tmp/job&limit=2").await.json(), json!({"nodes": [node("a"), node("b")], "is_whole": false}));
    assert_eq!(list("path=/tmp/job&after=b").await.json(), json!({"nodes": [node("c")], "is_whole": true}));
    assert_eq!(list("").await.json()["nodes"][0], json!({"name": "job", "type": "table", "bytes": 0}));
    assert_eq!(list("path=/tmp/none").await.wrong(), (404, "not found".into()));
    for parameters in ["path=/lake", "limit=0", "limit=10001", "more=1", "timeout=10"] {
        assert_eq!(list(parameters).await.wrong(), (400, "invalid".into()), "{parameters}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_door_is_open_it_is_said() {
    let bed = Bed::closed(1).await;
    for (method, path) in [
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/tasks"),
        ("GET", "/api/v1/transfers"),
        ("POST", "/api/v1/load?path=/lake/x"),
        ("POST", "/api/v1/sql"),
        ("POST", "/api/v1/sql/rows"),
    ] {
        let answer = bed.ask_as(Some(bed.token("read")), method, path, "select 1").await;
        assert_eq!(answer.wrong(), (404, "not found".into()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_reads_what_its_caller_may_and_no_more() {
    let bed = Bed::start(1).await;
    let sql = "select /lake/orders.shards/";
    for credential in ["owner", "read", "read lake"] {
        let answer = bed.sql(credential, "", sql).await.json();
        assert_eq!(answer["columns"], json!([{"name": "key", "kind": "Utf8"}]));
        assert!(!answer["rows"].as_array().unwrap().is_empty() && answer["is_whole"] == true, "{credential}: {answer}");
        assert_eq!((&answer["plan"], &answer["read"]), (&json!("ListExec"), &json!({"bytes_read": 11, "tasks": 0})));
        assert_eq!(answer["notice"], "it runs in a test");
    }
    let other = bed.sql("read other", "", sql).await;
    assert!(matches!(other.status, 403 | 404), "{other:?}");
    assert!(!String::from_utf8_lossy(&other.body).contains("manifest"), "{other:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_writes_is_refused_before_anybody_runs_it() {
    let bed = Bed::start(1).await;
    for sql in ["", "drop table t", "copy (select 1) to '/lake/x'", "explain analyze insert into t values (1)", "set a = 1"] {
        assert_eq!(bed.sql("owner", "", sql).await.wrong(), (400, "invalid".into()), "{sql}");
    }
    for parameters in ["rows=0", "rows=10001", "rows=x", "rows=", "rows=1&rows=2", "more=1", "timeout=301s"] {
        assert_eq!(bed.sql("owner", parameters, "select 1").await.wrong(), (400, "invalid".into()), "{parameters}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_has_so_many_rows_bytes_and_seconds() {
    let bed = Bed::start(1).await;
    let some = bed.sql("read", "rows=7", "select many").await.json();
    assert_eq!((some["rows"].as_array().unwrap().len(), &some["is_whole"]), (7, &json!(false)));
    let all = bed.sql("read", "rows=100", "select many").await.json();
    assert_eq!((all["rows"].as_array().unwrap().len(), &all["is_whole"]), (100, &json!(true)));
    let long = format!("select '{}'", "x".repeat(64 << 10));
    assert_eq!(bed.sql("read", "", &long).await.wrong(), (413, "invalid".into()));
    assert_eq!(bed.sql("read", "timeout=50ms", "select forever").await.wrong(), (504, "retry".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rows_come_as_lines_to_who_may_read_them() {
    let bed = Bed::start(1).await;
    let many = bed.sql_rows("read", "", "select many").await.lines();
    assert_eq!((many.len(), &many[0], &many[99]), (100, &json!({"key": "000"}), &json!({"key": "099"})));
    assert!(!bed.sql_rows("read lake", "", "select /lake/orders.shards/").await.lines().is_empty());
    let other = bed.sql_rows("read other", "", "select /lake/orders.shards/").await;
    assert!(matches!(other.status, 403 | 404) && other.wrong().1 != "internal", "{other:?}");
    assert_eq!(bed.sql_rows("owner", "", "drop table t").await.wrong(), (400, "invalid".into()));
    assert_eq!(
        bed.sql_rows("owner", "rows=1", "select many").await.wrong(),
        (400, "invalid".into()),
        "there is no bound on them"
    );
    assert_eq!(bed.sql_rows("read", "timeout=50ms", "select forever").await.wrong(), (504, "retry".into()));
    assert_eq!(bed.sql_rows("read", "", "select panic").await.wrong(), (500, "internal".into()));
    // They are statements as others are, and have the same places.
    let answers = futures::future::join_all((0..5).map(|_| bed.sql_rows("read", "timeout=2s", "select forever"))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [429, 504, 504, 504, 504]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rows_come_as_arrow_to_who_accepts_that() {
    let (bed, kind) = (Bed::start(1).await, "application/vnd.apache.arrow.stream");
    let ask = async |credential: &str, parameters: &str, sql: &str| {
        let shown = format!("Bearer {}", bed.token(credential));
        let headers = [("authorization", shown.as_str()), ("accept", kind)];
        bed.ask_as_far(&headers, "POST", &format!("/api/v1/sql?{parameters}"), sql.to_string()).await
    };
    let (many, is_whole) = ask("read", "", "select many").await;
    assert_eq!((many.status, many.header("content-type"), is_whole), (200, kind, true), "{many:?}");
    assert!(many.body.starts_with(b"HEAD 000,001,") && many.body.ends_with(b",099 END"), "{many:?}");
    // What fails in the midst of it is not taken for the end.
    let (part, is_whole) = ask("read", "", "select breaks").await;
    assert_eq!((part.status, part.body.starts_with(b"HEAD 000,"), is_whole), (200, true, false), "{part:?}");
    let (other, _) = ask("read other", "", "select /lake/orders.shards/").await;
    assert!(matches!(other.status, 403 | 404) && other.wrong().1 != "internal", "{other:?}");
    for (parameters, sql, wrong) in [
        ("rows=10", "select many", (400, "invalid")),
        ("", "drop table t", (400, "invalid")),
        ("timeout=50ms", "select forever", (504, "retry")),
        ("", "select panic", (500, "internal")),
    ] {
        let (refused, _) = ask("owner", parameters, sql).await;
        assert_eq!(refused.wrong(), (wrong.0, wrong.1.to_string()), "{parameters} {sql}");
    }
    // Who takes anything gets JSON.
    let shown = format!("Bearer {}", bed.token("read"));
    let headers = [("authorization", shown.as_str()), ("accept", "application/json, */*;q=0.1")];
    let json = bed.ask_saying(&headers, "POST", "/api/v1/sql", "select many").await;
    assert_eq!(json.header("content-type"), "application/json");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_has_four_statements_at_a_time() {
    let bed = Bed::start(1).await;
    let answers = futures::future::join_all((0..5).map(|_| bed.sql("read", "timeout=2s", "select forever"))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [429, 504, 504, 504, 504]);
    assert_eq!(bed.sql("read", "", "select many").await.status, 200, "and has its places back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_by_a_defect_is_answered_so_and_others_go_on() {
    let bed = Bed::start(1).await;
    let other = bed.sql("read", "", "select forever");
    let (mut forever, mut rounds) = (Box::pin(other), 0);
    while rounds < 100 {
        let answer = tokio::select! {
            biased;
            _ = &mut forever => panic!("nobody ends it"),
            answer = bed.sql("read", "", "select panic") => answer,
        };
        assert_eq!(answer.wrong(), (500, "internal".into()), "{answer:?}");
        assert_eq!(bed.sql("read", "rows=7", "select many").await.status, 200);
        rounds += 1;
    }
}
