//! Many questions with one request.

use std::io;
use std::time::Duration;

use forebay_testbed::until_asked;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Bed, DATASET, query};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_a_batch_is_answered_as_forebay_shard_batch_does() {
    let bed = Bed::start(2).await;
    let shards = bed.shards().await;
    let questions = [
        r#"{"get": 5}"#,
        r#"{"get": -100, "columns": ["note"]}"#,
        r#"{"get": 99999}"#,
        r#"{"get": 5, "versioned": true}"#,
        r#"{"get": 99999, "versioned": true}"#,
        r#"{"get": 5, "versioned": true, "columns": ["note"]}"#,
        r#"{"search": {"attr": "name", "eq": "clerk031"}, "limit": 4}"#,
        r#"{"search": {"attr": "name", "eq": "clerk031"}, "limit": 4, "after": 100}"#,
        r#"{"count": {"attr": "note", "contains": "of 1"}}"#,
        r#"{"count": null}"#,
        r#"{"get": "text"}"#,
        r#"{"get": 5, "columns": ["nothing"]}"#,
        r#"{"get": 5, "limit": 1}"#,
        "{}",
    ];
    let answers = bed.batch(&[], questions.join("\n\n") + "\r\n").await.lines();
    let mut expected = Vec::new();
    for question in questions {
        expected.push(shards.answer(question.as_bytes()).await);
    }
    assert_eq!(answers, expected);
    assert_eq!(bed.batch(&[], "\n").await.lines(), Vec::<Json>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_answers_stay_in_the_order_of_their_questions() {
    let bed = Bed::start(2).await;
    let keys: Vec<i64> = (0..3000).map(|number| number * 7 % 1400 - 400).collect();
    let questions: String = keys.iter().map(|key| json!({"get": key, "columns": ["id"]}).to_string() + "\n").collect();
    let answers = bed.batch(&[], questions).await.lines();
    assert_eq!(answers, keys.iter().map(|key| json!({"id": key})).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_changes_nothing_and_asks_for_nothing_without_an_end() {
    let bed = Bed::start(1).await;
    let wrong = [
        r#"{"put": {"id": 5, "name": "x"}}"#,
        r#"{"get": 5, "delete": 5}"#,
        r#"{"search": {"attr": "name", "prefix": ""}}"#,
        r#"{"search": {"attr": "name", "prefix": ""}, "limit": 10001}"#,
        "nothing",
    ];
    let answers = bed.batch(&[], wrong.join("\n") + "\n{\"count\": null}").await.lines();
    assert!(answers[..wrong.len()].iter().all(|answer| answer["error"] == "invalid"), "{answers:?}");
    assert_eq!(answers[wrong.len()], 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_much_is_refused_before_it_is_read() {
    let bed = Bed::start(1).await;
    assert_eq!(bed.batch(&[], "{}\n".repeat(10_001)).await.wrong(), (413, "invalid".into()));
    let mut socket = begin_batch(&bed, &[], "content-length: 8388609").await;
    let answer = read_answer(&mut socket).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // One that does not say how much it has.
    let mut socket = begin_batch(&bed, &[], "transfer-encoding: chunked").await;
    let chunk = format!("100000\r\n{}\r\n", "\n".repeat(1 << 20));
    for _ in 0..9 {
        // It may be refused while it is written.
        let _ = socket.write_all(chunk.as_bytes()).await;
    }
    let answer = read_answer(&mut socket).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_late_has_no_part_of_an_answer() {
    let bed = Bed::start(1).await;
    let count = 10_000;
    let answer = bed.batch(&[("timeout", "20ms")], "{\"get\": 5}\n".repeat(count)).await;
    if answer.status == 504 {
        assert_eq!(answer.wrong(), (504, "retry".into()));
        return;
    }
    let lines = answer.lines();
    assert_eq!(lines.len(), count, "each question has its line");
    let last = &lines[count - 1];
    assert!(last["error"] == "retry" || last["id"] == 5, "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_not_waited_for_longer_than_the_timeout() {
    let bed = Bed::start(1).await;
    let mut socket = begin_batch(&bed, &[("timeout", "50ms")], "content-length: 100").await;
    let answer = read_answer(&mut socket).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_too_many_requests_is_told_and_those_of_who_went_away_end() {
    let bed = Bed::start(1).await;
    // Each waits for a body that does not come.
    let mut sockets = Vec::new();
    let refused = loop {
        sockets.push(begin_batch(&bed, &[("timeout", "5m")], "content-length: 100").await);
        // What asks takes a place too, and may have that of one of them.
        let answer = bed.of_dataset("count", &[]).await;
        match answer.status {
            200 => assert!(sockets.len() < 200, "no end of requests"),
            _ => break answer,
        }
    };
    assert_eq!((refused.wrong(), refused.header("retry-after")), ((429, "retry".into()), "1"));
    assert!(sockets.len() >= 64, "{}", sockets.len());
    let other = query("/api/v1/shards/count", &[("dataset", DATASET)]);
    assert_eq!(bed.ask_as(Some(bed.token("read")), "GET", &other, "").await.status, 200, "another caller");
    drop(sockets);
    // The server hears of sockets when it does.
    until_asked("requests of those who went away end", async || bed.of_dataset("count", &[]).await.status == 200).await;
}

/// The head of a batch, without its body.
async fn begin_batch(bed: &Bed, parameters: &[(&str, &str)], header: &str) -> TcpStream {
    let path = query("/api/v1/shards/batch", &[&[("dataset", DATASET)], parameters].concat());
    let token = bed.token("read lake");
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{header}\r\n\r\n");
    let mut socket = TcpStream::connect(bed.address).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

pub async fn read_answer(socket: &mut TcpStream) -> io::Result<String> {
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(60), socket.read(&mut answer)).await.expect("an answer")?;
    Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
}
