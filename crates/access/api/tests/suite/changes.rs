//! Records that are changed over HTTP.

use forebay_shard::{Key, KeyMap};
use forebay_shard_store::Literal;
use serde_json::{Value as Json, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::batch::read_answer;
use crate::bed::{Answer, Bed, DATASET, RECORDS, query};

fn version(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["version"].as_u64().unwrap()
}

fn record(key: i64, name: &str) -> Json {
    json!({"id": key, "name": name, "note": "changed"})
}

async fn put(bed: &Bed, key: i64, name: &str, condition: &[(&str, &str)]) -> Answer {
    bed.change("PUT", "record", condition, record(key, name).to_string()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_written_seen_by_all_and_deleted() {
    let bed = Bed::start(2).await;
    let (there, sees) = (record(5000, "clerk007"), [("key", "5000")]);
    let written = version(&put(&bed, 5000, "clerk007", &[]).await);
    assert!(written > 0);
    assert_eq!(bed.of_dataset("record", &sees).await.json(), json!({"record": there, "version": written}));
    assert_eq!(bed.of_dataset("get", &sees).await.lines(), std::slice::from_ref(&there));
    assert_eq!(bed.of_dataset("count", &[]).await.json()["count"], RECORDS + 1);
    let of_program = bed.shards().await.get_versioned(&Literal::from_json(&json!(5000)).unwrap()).await.unwrap();
    assert_eq!((of_program.record, of_program.version), (Some(there), written));
    let deleted = version(&bed.change("DELETE", "record", &sees, "").await);
    assert!(deleted > written);
    assert_eq!(bed.of_dataset("record", &sees).await.json(), json!({"record": null, "version": deleted}));
    assert_eq!(bed.of_dataset("get", &sees).await.wrong(), (404, "not found".into()));
    assert_eq!(bed.of_dataset("count", &[]).await.json()["count"], RECORDS);
    version(&bed.change("DELETE", "record", &[("key", "77777")], "").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_changed_only_as_long_as_it_is_what_was_read() {
    let bed = Bed::start(2).await;
    let conflict = (409, "conflict".to_string());
    assert_eq!(put(&bed, 7, "there already", &[("if", "absent")]).await.wrong(), conflict);
    let read = bed.of_dataset("record", &[("key", "7")]).await.json();
    assert_eq!((&read["record"]["id"], &read["version"]), (&json!(7), &json!(0)), "as it came");
    let first = version(&put(&bed, 7, "one", &[("if", "0")]).await);
    assert_eq!(put(&bed, 7, "two", &[("if", "0")]).await.wrong(), conflict);
    let delete = async |condition: u64| {
        let condition = condition.to_string();
        bed.change("DELETE", "record", &[("key", "7"), ("if", condition.as_str())], "").await
    };
    assert_eq!(delete(0).await.wrong(), conflict);
    let read = bed.of_dataset("record", &[("key", "7")]).await.json();
    assert_eq!(read, json!({"record": record(7, "one"), "version": first}), "what is refused changes nothing");
    assert!(version(&delete(first).await) > first);
    version(&put(&bed, 7, "again", &[("if", "absent")]).await);
    let read = bed.of_dataset("record", &[("key", "7")]).await.json();
    assert_eq!(read["record"], record(7, "again"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_of_changes_has_its_outcome_and_those_of_a_shard_have_the_same() {
    let bed = Bed::start(2).await;
    let shard = |key: i64| KeyMap::Hash(2).shard_of(&Key::U64(key as u64));
    let keys: Vec<i64> = (6000..6040).collect();
    let mut changes: Vec<Json> = keys.iter().map(|key| json!({"put": record(*key, "clerk001")})).collect();
    // There is a record of 7, which keeps its shard from changing.
    changes.push(json!({"put": record(7, "refused"), "if_absent": true}));
    let lines: String = changes.iter().map(|change| format!("{change}\n\n")).collect();
    let answers = bed.change("POST", "change", &[], lines).await.lines();
    assert_eq!(answers.len(), changes.len());
    assert_eq!(answers[keys.len()]["error"], "conflict");
    for (key, answer) in keys.iter().zip(&answers) {
        let is_refused = shard(*key) == shard(7);
        let key = key.to_string();
        let there = bed.of_dataset("record", &[("key", key.as_str())]).await.json();
        assert_eq!(there["record"].is_null(), is_refused, "{key}: {there}");
        match is_refused {
            true => assert_eq!(answer["error"], "conflict", "{key}: {answer}"),
            false => assert_eq!(answer["version"], there["version"], "{key}: {answer}"),
        }
    }
    let refused = keys.iter().filter(|key| shard(**key) == shard(7)).count();
    assert!(0 < refused && refused < keys.len(), "there are both: {refused}");
    let deletes: String = keys.iter().map(|key| format!("{{\"delete\": {key}}}\n")).collect();
    let answers = bed.change("POST", "change", &[], deletes).await.lines();
    assert!(answers.iter().all(|answer| answer["version"].as_u64() > Some(0)), "{answers:?}");
    assert_eq!(bed.of_dataset("count", &[]).await.json()["count"], RECORDS);
    assert_eq!(bed.change("POST", "change", &[], "\n").await.lines(), Vec::<Json>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_change_changes_nothing() {
    let bed = Bed::start(1).await;
    let good = json!({"put": record(7000, "never")}).to_string() + "\n";
    for wrong in [
        r#"{"get": 5}"#,
        r#"{"put": {"id": 5, "nothing": 1}}"#,
        r#"{"put": {"name": "no key"}}"#,
        r#"{"delete": "text"}"#,
        r#"{"put": {"id": 5}, "if_absent": true, "if_version": 1}"#,
        "nothing",
    ] {
        let answer = bed.change("POST", "change", &[], good.clone() + wrong).await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{wrong}");
    }
    for wrong in ["", "[]", "{\"name\": \"no key\"}", "{\"id\": 7000, \"nothing\": 1}", "{\"id\": \"text\"}", "{\"id\": 7000} {}"]
    {
        let answer = bed.change("PUT", "record", &[], wrong).await;
        assert_eq!(answer.wrong(), (400, "invalid".into()), "{wrong}");
    }
    let conditions = [("if", "none"), ("if", "-1"), ("more", "1")];
    for parameter in conditions {
        assert_eq!(put(&bed, 7000, "never", &[parameter]).await.wrong(), (400, "invalid".into()), "{parameter:?}");
    }
    for parameters in [vec![], vec![("key", "text")], vec![("key", "1"), ("key", "2")]] {
        assert_eq!(bed.change("DELETE", "record", &parameters, "").await.wrong(), (400, "invalid".into()), "{parameters:?}");
    }
    let other = bed.change("POST", "record", &[], "{}").await;
    assert_eq!(other.wrong(), (405, "invalid".into()));
    assert!(["GET", "PUT", "DELETE"].iter().all(|method| other.header("allow").contains(method)), "{other:?}");
    assert_eq!(bed.of_dataset("record", &[("key", "7000")]).await.json(), json!({"record": null, "version": 0}));
    assert_eq!(bed.of_dataset("count", &[]).await.json()["count"], RECORDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_are_too_much_are_refused() {
    let bed = Bed::start(1).await;
    let answer = bed.change("POST", "change", &[], "{\"delete\": 1}\n".repeat(8193)).await;
    assert_eq!(answer.wrong(), (413, "invalid".into()));
    for what in ["PUT /api/v1/shards/record", "POST /api/v1/shards/change"] {
        let (head, token) = (query(what, &[("dataset", DATASET)]), bed.token("write lake"));
        let head = format!("{head} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 3145729\r\n\r\n");
        let mut socket = TcpStream::connect(bed.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        let answer = read_answer(&mut socket).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{what}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_workers_a_change_is_to_be_asked_again() {
    let mut bed = Bed::start(1).await;
    version(&put(&bed, 7, "one", &[]).await);
    bed.stop_workers().await;
    let answer = put(&bed, 7, "two", &[("timeout", "300ms")]).await;
    assert_eq!(answer.wrong().1, "retry");
    assert!(matches!(answer.status, 503 | 504), "{answer:?}");
}
