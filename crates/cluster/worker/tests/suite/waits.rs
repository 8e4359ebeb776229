//! What a worker does for a caller who waits no longer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_demo::Fault;
use forebay_protocol::{DataReply, DataRequest, PutCondition, encode};
use forebay_runtime::deadline;
use forebay_transport::{Answer, Connection, Security};
use forebay_types::{Error, ErrorKind, Key, MountOptions, ObjectVersion, Result, Validate};

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, start_worker, until};

/// How long a caller waits, and how long nothing may be asked of shared storage afterwards for it to be over.
const LONGEST: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_secs(3);
/// More than are asked of shared storage by anyone here.
const ALWAYS: usize = 100_000;

/// A worker that is as patient with shared storage as they are.
async fn patient() -> Bed {
    Bed::new(Plan { patience: Duration::from_secs(120), ..Plan::default() }).await
}

fn read(version: &ObjectVersion, start: u64, len: u32) -> DataRequest {
    DataRequest::Read { operation: OPERATION, version: version.clone(), start, len, in_place: false }
}

/// Asks for somebody whose process hangs when his time is over: he says so long, and cancels nothing.
async fn ask_and_hang(client: &Client, request: DataRequest, longest: Duration) -> Result<Answer> {
    let mut call = Box::pin(client.connection.call(encode(&request), Vec::new()));
    if let Ok(answer) = deadline::within(longest, &mut call).await { answer } else { call.await }
}

fn error_of(answer: &Answer) -> Error {
    forebay_protocol::decode::<DataReply>(&answer.meta).unwrap().or_error().unwrap_err()
}

/// Whether nobody asks shared storage anything that `counted` counts for a while, after a second for what was under way.
async fn is_quiet(bed: &Bed, counted: impl Fn(&Bed) -> u64) -> bool {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = counted(bed);
    tokio::time::sleep(QUIET).await;
    counted(bed) == before
}

fn gets(bed: &Bed) -> u64 {
    let counters = bed.s3.counters();
    counters.gets + counters.heads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_that_hangs_or_throttles_is_not_asked_again_for_who_waits_no_longer() {
    let bed = patient().await;
    let (_, client, version) = bed.opened("a", MIB).await;
    for fault in [Fault::Status(503), Fault::Hang] {
        bed.s3.reset_counters();
        bed.s3.inject(fault, ALWAYS);
        let open = DataRequest::Open { mount: bed.mount.id, key: Key::new("b").unwrap() };
        for request in [read(&version, 0, 4096), open] {
            let began = Instant::now();
            let answer = ask_and_hang(&client, request, LONGEST).await.unwrap();
            let took = began.elapsed();
            assert_eq!(error_of(&answer).kind(), ErrorKind::Retry);
            assert!(took >= LONGEST && took < LONGEST + Duration::from_secs(2), "{took:?}");
        }
        assert!(gets(&bed) >= 2, "it was asked");
        assert!(is_quiet(&bed, gets).await, "{fault:?}: {:?}", bed.s3.counters());
        bed.s3.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_wait_for_goes_on_for_who_waits_longer() {
    let bed = patient().await;
    let data = bed.object("a", MIB);
    let (client, other) = (bed.client().await, bed.client().await);
    let version = client.version("a").await;
    bed.object("b", 100);
    let open = || DataRequest::Open { mount: bed.mount.id, key: Key::new("b").unwrap() };
    for request in [read(&version, 0, 4096), open()] {
        bed.s3.inject(Fault::Status(503), ALWAYS);
        let hasty = ask_and_hang(&client, request.clone(), Duration::from_millis(700));
        let longer = async {
            // Behind the other one, who has begun it.
            tokio::time::sleep(Duration::from_millis(200)).await;
            deadline::within(Duration::from_secs(60), other.connection.call(encode(&request), Vec::new())).await.unwrap()
        };
        let there = async {
            tokio::time::sleep(LONGEST).await;
            bed.s3.clear_faults();
        };
        let (hasty, longer, ()) = tokio::join!(hasty, longer, there);
        assert_eq!(error_of(&hasty.unwrap()).kind(), ErrorKind::Retry);
        let answer = longer.unwrap();
        match forebay_protocol::decode(&answer.meta).unwrap() {
            DataReply::Read { .. } => assert_eq!(answer.payload, data[..4096]),
            DataReply::Info(info) => assert_eq!(info.version.size, 100),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_writer_was_told_nothing_is_not_tried_again() {
    let bed = patient().await;
    let puts = |bed: &Bed| bed.s3.counters().puts;
    for is_lost in [false, true] {
        let client = bed.client().await;
        let key = Key::new(if is_lost { "lost" } else { "late" }).unwrap();
        let begin = DataRequest::PutBegin { mount: bed.mount.id, key: key.clone() };
        let DataReply::Upload { upload, .. } = client.call(begin).await.unwrap().0 else { panic!("an upload") };
        let part = DataRequest::PutPart { upload, part: 0 };
        client.send(part, vec![Bytes::from_static(b"bytes")]).await.unwrap();
        bed.s3.inject(Fault::Status(503), ALWAYS);
        let commit = DataRequest::PutCommit { upload, parts: 1, condition: PutCondition::Any };
        match is_lost {
            // Who has asked is gone with his connection.
            true => {
                let gone = async {
                    tokio::time::sleep(LONGEST / 2).await;
                    client.connection.close();
                };
                let (answer, ()) = tokio::join!(client.connection.call(encode(&commit), Vec::new()), gone);
                assert_eq!(answer.unwrap_err().kind(), ErrorKind::Closed);
            }
            false => {
                let answer = ask_and_hang(&client, commit, LONGEST).await.unwrap();
                assert_eq!(error_of(&answer).kind(), ErrorKind::Retry);
            }
        }
        assert!(is_quiet(&bed, puts).await, "{:?}", bed.s3.counters());
        bed.s3.clear_faults();
        let error = bed.client().await.open(key.as_str()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "it does not land later");
    }
    bed.s3.inject(Fault::Status(503), ALWAYS);
    let (client, before) = (bed.client().await, puts(&bed));
    let put = DataRequest::Put { mount: bed.mount.id, key: Key::new("whole").unwrap(), condition: PutCondition::Any };
    let answer = ask_and_hang(&client, put, LONGEST).await.unwrap();
    assert_eq!(error_of(&answer).kind(), ErrorKind::Retry);
    assert!(puts(&bed) > before && is_quiet(&bed, puts).await, "{:?}", bed.s3.counters());
    bed.s3.clear_faults();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_is_not_begun_for_a_writer_who_waits_no_longer() {
    let bed = patient().await;
    let client = bed.client().await;
    let begin = DataRequest::PutBegin { mount: bed.mount.id, key: Key::new("a").unwrap() };
    let DataReply::Upload { upload, .. } = client.call(begin).await.unwrap().0 else { panic!("an upload") };
    let part = |part| client.send(DataRequest::PutPart { upload, part }, vec![Bytes::from_static(b"bytes")]);
    part(0).await.unwrap();
    // The second part is under way for longer than the commit behind it is waited for.
    bed.s3.inject(Fault::Hang, 1);
    let commit = async {
        tokio::time::sleep(LONGEST / 4).await;
        let commit = DataRequest::PutCommit { upload, parts: 1, condition: PutCondition::Any };
        ask_and_hang(&client, commit, LONGEST).await.unwrap()
    };
    let (sent, answer) = tokio::join!(part(1), commit);
    sent.unwrap();
    assert_eq!(error_of(&answer).kind(), ErrorKind::Retry);
    assert!(is_quiet(&bed, |bed| bed.s3.counters().puts).await, "{:?}", bed.s3.counters());
    let error = client.open("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "it was not made after its writer had gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_workers_hear_of_a_write_whose_writer_gave_up() {
    let options = MountOptions { validate: Validate::Immutable, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, patience: Duration::from_secs(120), ..Plan::default() }).await;
    bed.object("a", 100);
    let settings = StoreSettings::new(bed.folder.path().join("second"), 16 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let (writer, reader) = (bed.client().await, Client::connect(&second.address(), bed.mount.id).await);
    let put = || DataRequest::Put { mount: bed.mount.id, key: Key::new("a").unwrap(), condition: PutCondition::Any };
    let before = reader.version("a").await;
    // The first worker has to know of the second.
    until("the second worker knows of writes", async || {
        writer.send(put(), vec![Bytes::from_static(b"known")]).await.unwrap();
        reader.version("a").await != before
    })
    .await;
    let known = reader.version("a").await;
    // It is written, and no answer says so.
    bed.s3.inject(Fault::LoseAnswer, ALWAYS);
    let mut call = Box::pin(writer.connection.call(encode(&put()), vec![Bytes::from_static(b"given up")]));
    assert!(deadline::within(LONGEST, &mut call).await.is_err());
    assert_eq!(error_of(&call.await.unwrap()).kind(), ErrorKind::Retry);
    bed.s3.clear_faults();
    until("the second worker knows of this one too", async || reader.version("a").await != known).await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_a_caller_of_the_version_before_it_is_tried_as_long_as_ever() {
    let bed = patient().await;
    bed.object("a", 100);
    let connection = Connection::connect(&bed.worker().address(), &Security::default().speaking(8)).await.unwrap();
    let before = Client { connection, mount: bed.mount.id };
    bed.s3.inject(Fault::Status(503), ALWAYS);
    let open = DataRequest::Open { mount: bed.mount.id, key: Key::new("a").unwrap() };
    let there = async {
        tokio::time::sleep(LONGEST).await;
        bed.s3.clear_faults();
    };
    let (answer, ()) = tokio::join!(ask_and_hang(&before, open, Duration::from_millis(500)), there);
    let reply = forebay_protocol::decode_from::<DataReply>(8, &answer.unwrap().meta).unwrap();
    assert!(matches!(reply, DataReply::Info(_)), "{reply:?}");
}
