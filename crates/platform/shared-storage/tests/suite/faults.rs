//! What goes wrong on the way to S3, and what comes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_demo::Fault;
use forebay_shared_storage::{Class, Get, GetRange, PutCondition};
use forebay_types::{ErrorKind, crc32c};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::lab::{Lab, get, hasty, key, open, options, patient, pattern, put};

#[tokio::test]
async fn overload_is_waited_out() {
    let lab = Lab::s3();
    put(&lab.storage, "x", "there").await;
    lab.server().inject(Fault::Status(503), 3);
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), "there");
    lab.server().inject(Fault::Status(500), 2);
    assert_eq!(lab.storage.list(&key(""), false, None, 10).await.unwrap().objects.len(), 1);
    lab.server().inject(Fault::Status(503), 1);
    put(&lab.storage, "y", pattern(1_000_000)).await;
    assert_eq!(get(&lab.storage, "y", GetRange::All).await.unwrap(), pattern(1_000_000));
    assert_eq!(lab.storage.counters().retries, 6);
}

#[tokio::test]
async fn retries_end_and_say_so() {
    let lab = Lab::s3();
    let storage = open("s3://lake", options(&lab.server().endpoint()), hasty());
    lab.server().inject(Fault::Status(503), 2);
    let error = get(&storage, "x", GetRange::All).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Retry);
    assert!(error.message().contains("2 tries") && error.message().contains("503 SlowDown"), "{error}");
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_wrong_clock_is_named_with_its_machine_and_is_no_last_word() {
    let lab = Lab::s3();
    put(&lab.storage, "x", "there").await;
    lab.server().inject(Fault::Refused(403, "RequestTimeTooSkewed"), 1);
    let error = get(&lab.storage, "x", GetRange::All).await.unwrap_err();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(error.message().contains(&format!("the clock of machine {:?}", host.trim())), "{error}");
    assert_eq!((error.kind(), lab.storage.counters().retries), (ErrorKind::Retry, 0), "another machine may be asked");
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), "there");
}

#[tokio::test]
async fn the_same_storage_may_be_asked_with_less_patience() {
    let lab = Lab::s3();
    put(&lab.storage, "x", "there").await;
    let storage = lab.storage.again(hasty()).unwrap();
    lab.storage.set_share(Some(1 << 20), 64 << 10);
    lab.server().inject(Fault::Status(503), 2);
    let error = get(&storage, "x", GetRange::All).await.unwrap_err();
    assert!(error.is_in_vain() && error.message().contains("2 tries"), "{error}");
    let missing = get(&storage, "y", GetRange::All).await.unwrap_err();
    assert!(!missing.is_in_vain() && missing.kind() == ErrorKind::NotFound, "{missing}");
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap(), "there");
    assert_eq!(lab.storage.counters().retries, 1, "counted together");
}

#[tokio::test]
async fn a_broken_body_goes_on_where_it_stopped() {
    let lab = Lab::s3();
    let data = pattern(2_000_000);
    put(&lab.storage, "x", data.clone()).await;
    lab.server().reset_counters();
    lab.server().inject(Fault::CutAfter(700_000), 1);
    lab.server().inject(Fault::CutAfter(0), 1);
    lab.server().inject(Fault::CutAfter(300_000), 1);
    assert_eq!(get(&lab.storage, "x", GetRange::Bounded(1..1_900_001)).await.unwrap(), data.slice(1..1_900_001));
    let counters = lab.server().counters();
    assert_eq!(counters.gets, 4);
    // What a broken connection had taken and not delivered comes again, and nothing else.
    assert!(counters.bytes_out < 1_900_000 + 1_000_000, "{counters:?}");
    assert_eq!(lab.storage.counters().bytes_in, 1_900_000);
}

#[tokio::test]
async fn a_whole_object_is_held_to_what_the_store_says_of_it() {
    let lab = Lab::s3();
    let data = pattern(2_000_000);
    put(&lab.storage, "x", data.clone()).await;
    let sum = crc32c(&data);
    lab.server().inject(Fault::Crc32c(sum), 1);
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), data);
    lab.server().inject(Fault::Crc32c(sum ^ 1), 1);
    let error = get(&lab.storage, "x", GetRange::part(0..2_000_000, 2_000_000)).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("/lake/x: "), "{error}");
    assert!(error.message().contains(&format!("x-amz-checksum-crc32c {:x}", sum ^ 1)), "{error}");
    assert_eq!(get(&lab.storage, "x", GetRange::part(1..2_000_000, 2_000_000)).await.unwrap(), data.slice(1..));
}

#[tokio::test]
async fn a_whole_object_whose_length_is_not_told_is_asked_for_as_a_range() {
    let lab = Lab::s3();
    let data = pattern(100_000);
    put(&lab.storage, "x", data.clone()).await;
    lab.server().reset_counters();
    lab.server().inject(Fault::NoLength, 1);
    assert_eq!(get(&lab.storage, "x", GetRange::part(0..100_000, 100_000)).await.unwrap(), data);
    assert_eq!(lab.server().counters().gets, 2);
}

#[tokio::test]
async fn an_object_that_changes_while_it_is_read_conflicts() {
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(5_000_000)).await;
    lab.server().inject(Fault::CutAfter(1_000_000), 1);
    let object = key("x");
    let mut body =
        lab.storage.get(Get { key: &object, range: GetRange::All, if_match: None, class: Class::Demand }).await.unwrap();
    body.next().await.unwrap().unwrap();
    put(&lab.storage, "x", pattern(5_000_001)).await;
    let error = loop {
        match body.next().await.expect("it can't be complete") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(1_000_000)).await;
    let storage = open("s3://lake/some prefix/%2B", options(&lab.server().endpoint()), hasty());
    lab.server().inject(Fault::Hang, 1);
    let began = Instant::now();
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap(), pattern(1_000_000));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    lab.server().inject(Fault::StallAfter(500_000), 1);
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap(), pattern(1_000_000));
    lab.server().inject(Fault::Hang, 2);
    let error = get(&storage, "x", GetRange::All).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Retry && error.message().contains("nothing was received"), "{error}");
}

#[tokio::test]
async fn a_lost_answer_to_a_conditional_write_is_told() {
    let lab = Lab::s3();
    lab.server().inject(Fault::LoseAnswer, 1);
    let error = lab.storage.put(&key("x"), vec!["mine".into()], PutCondition::Absent).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("earlier try"), "{error}");
    assert!(error.is_in_vain(), "it is none that says that nothing has happened");
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), "mine");
}

#[tokio::test]
async fn a_lost_answer_to_a_commit_is_made_good() {
    let lab = Lab::s3();
    let upload = lab.storage.begin_upload(&key("x")).await.unwrap();
    upload.put_part(0, vec!["parts".into()]).await.unwrap();
    lab.server().inject(Fault::LoseAnswer, 1);
    assert_eq!(upload.commit(1, PutCondition::Any).await.unwrap().version.size, 5);
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), "parts");
}

#[tokio::test]
async fn a_server_that_comes_back_is_found_again() {
    let mut lab = Lab::s3();
    put(&lab.storage, "x", "still there").await;
    let server = lab.server.as_mut().unwrap();
    server.stop();
    let storage = lab.storage.clone();
    let reading = tokio::spawn(async move { get(&storage, "x", GetRange::All).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.restart().unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), "still there");
}

#[tokio::test]
async fn a_dropped_body_stops_the_transfer() {
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(64 << 20)).await;
    lab.server().reset_counters();
    let object = key("x");
    let mut body =
        lab.storage.get(Get { key: &object, range: GetRange::All, if_match: None, class: Class::Demand }).await.unwrap();
    let first: Bytes = body.next().await.unwrap().unwrap();
    assert!(!first.is_empty());
    drop(body);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(lab.server().counters().bytes_out < 32 << 20, "{:?}", lab.server().counters());
}

/// A server that answers each request by its head, the same all the time, and hangs up, though a body may be on its way. With how many it has
/// answered.
async fn answering(status: &'static str, says: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut some = [0; 4096];
            if socket.read(&mut some).await.is_ok_and(|read| read > 0) {
                count.fetch_add(1, SeqCst);
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", says.len());
                let _ = socket.write_all(format!("{head}{says}").as_bytes()).await;
            }
        }
    });
    (endpoint, answered)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_that_goes_on_where_it_was_has_an_end() {
    let page =
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
    let (endpoint, _) = answering("200 OK", page).await;
    let storage = open("s3://lake", options(&endpoint), patient());
    let listed = tokio::time::timeout(Duration::from_secs(10), storage.list(&key(""), false, None, 10)).await;
    let error = listed.expect("it is not asked for ever").unwrap_err();
    assert!(error.kind() == ErrorKind::Internal && error.message().contains("doesn't say where"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_says_before_it_hangs_up_is_heard() {
    let says = "<Error><Code>PreconditionFailed</Code><Message>it is there</Message></Error>";
    let (endpoint, refused) = answering("412 Precondition Failed", says).await;
    let storage = open("s3://lake", options(&endpoint), patient());
    let data = pattern(8 << 20);
    for tries in 1..=10 {
        let error = storage.put(&key("x"), vec![data.clone()], PutCondition::Absent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains("412"), "{error}");
        assert_eq!(refused.load(SeqCst), tries, "asked once: {error}");
    }
}
