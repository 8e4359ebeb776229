//! Writes through a worker: conditions, parts, deletes, and what it may take for known afterwards.

use std::time::Duration;

use bytes::Bytes;
use forebay_demo::Fault;
use forebay_protocol::{AdminRequest, DataReply, DataRequest, DraftCall, PutCondition};
use forebay_shared_storage::{Storage, StorageSettings};
use forebay_types::{ErrorKind, Key, MountOptions, ObjectInfo, OperationId, Result, Validate};

use crate::bed::{Bed, Client, MIB, Plan, add_mount, control, noise, until};

async fn put(client: &Client, key: &str, data: &[u8], condition: PutCondition) -> Result<ObjectInfo> {
    let request = DataRequest::Put { mount: client.mount, key: Key::new(key)?, condition };
    match client.send(request, vec![Bytes::copy_from_slice(data)]).await?.0 {
        DataReply::Info(info) => Ok(info),
        other => panic!("{other:?}"),
    }
}

async fn begin(client: &Client, key: &str) -> Result<(u64, usize)> {
    match client.call(DataRequest::PutBegin { mount: client.mount, key: Key::new(key)? }).await?.0 {
        DataReply::Upload { upload, part_bytes } => Ok((upload, part_bytes as usize)),
        other => panic!("{other:?}"),
    }
}

/// Which of the two came last nobody knows here: shared storage is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_another_that_is_told_during_one_s_own_is_not_forgotten() {
    let options = MountOptions { validate: Validate::Immutable, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let (client, other) = (bed.client().await, bed.client().await);
    let key = Key::new("a").unwrap();
    bed.s3.set_latency(Duration::from_millis(300));
    let put = DataRequest::Put { mount: bed.mount.id, key: key.clone(), condition: PutCondition::Any };
    let told = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        other.call(DataRequest::Changed { mount: bed.mount.id, key, info: None }).await.unwrap();
    };
    let (own, ()) = tokio::join!(client.send(put, vec!["own".into()]), told);
    let DataReply::Info(own) = own.unwrap().0 else { panic!("a version") };
    bed.s3.set_latency(Duration::ZERO);
    bed.s3.put("lake", "a", b"the other's").unwrap();
    assert_ne!(client.version("a").await, own.version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_is_known_and_held() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let data = noise("mine", 300_001);
    let info = put(&client, "dir/mine ä%", &data, PutCondition::Any).await.unwrap();
    assert_eq!(info.version.size, data.len() as u64);
    assert_eq!(client.open("dir/mine ä%").await.unwrap().version, info.version);
    until("the payload is in the tiers", async || bed.worker().report().dram.1 >= 300_001).await;
    assert_eq!(client.read(&info.version, 0, data.len()).await.unwrap(), data);
    let counters = bed.s3.counters();
    assert_eq!((counters.puts, counters.gets, counters.heads), (1, 0, 0));
    // What shared storage has is the same.
    client.call(DataRequest::Free { segments: vec![forebay_types::SegmentId::of(&info.version, 0)] }).await.unwrap();
    assert_eq!(client.read(&info.version, 0, data.len()).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 1);
    let empty = put(&client, "empty", b"", PutCondition::Any).await.unwrap();
    assert_eq!((empty.version.size, client.version("empty").await), (0, empty.version));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_are_kept() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let first = put(&client, "a", b"1", PutCondition::Absent).await.unwrap();
    let error = put(&client, "a", b"2", PutCondition::Absent).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let second = put(&client, "a", b"2", PutCondition::Version(first.version.tag.clone())).await.unwrap();
    let error = put(&client, "a", b"3", PutCondition::Version(first.version.tag)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(client.read(&second.version, 0, 1).await.unwrap(), "2");
}

/// Else who compares and swaps would compare with the same old version until the mount's rule has it looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_by_a_condition_finds_what_is_there_now() {
    let options = MountOptions { validate: Validate::Immutable, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let client = bed.client().await;
    for (key, absent) in [("a", false), ("b", true)] {
        let old = put(&client, key, b"old", PutCondition::Any).await.unwrap();
        bed.s3.put("lake", key, b"newer").unwrap();
        assert_eq!(client.version(key).await, old.version, "{key}: it is believed to stay as it is");
        let condition = if absent { PutCondition::Absent } else { PutCondition::Version(old.version.tag.clone()) };
        let refused = put(&client, key, b"mine", condition).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{key}: {refused}");
        let now = client.version(key).await;
        assert_eq!(now.size, 5, "{key}");
        put(&client, key, b"mine", PutCondition::Version(now.tag)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_parts_appears_when_it_is_committed() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let (upload, part_bytes) = begin(&client, "big").await.unwrap();
    let data = noise("big", 2 * part_bytes + MIB);
    let parts: Vec<_> = data.chunks(part_bytes).enumerate().rev().collect();
    for (part, bytes) in parts {
        let request = DataRequest::PutPart { upload, part: part as u32 };
        client.send(request, vec![Bytes::copy_from_slice(bytes)]).await.unwrap();
    }
    assert_eq!(client.open("big").await.unwrap_err().kind(), ErrorKind::NotFound);
    let commit = DataRequest::PutCommit { upload, parts: 3, condition: PutCondition::Any };
    let DataReply::Info(info) = client.call(commit.clone()).await.unwrap().0 else { panic!() };
    assert_eq!(client.version("big").await, info.version);
    assert_eq!(client.read(&info.version, 0, data.len()).await.unwrap(), data);
    assert_eq!(client.call(commit).await.unwrap_err().kind(), ErrorKind::NotFound, "an upload ends once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_ends_with_its_connection() {
    let bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let (upload, _) = begin(&client, "half").await.unwrap();
    client.send(DataRequest::PutPart { upload, part: 0 }, vec![noise("x", MIB).into()]).await.unwrap();
    // Another connection's upload is none of its business.
    let other = bed.client().await;
    let error = other.call(DataRequest::PutAbort { upload }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(bed.s3.counters().deletes, 0);
    client.connection.close();
    drop(client);
    until("the upload is aborted in shared storage", async || bed.s3.counters().deletes == 1).await;
    assert_eq!(other.open("half").await.unwrap_err().kind(), ErrorKind::NotFound);
    let (upload, _) = begin(&other, "given up").await.unwrap();
    other.call(DataRequest::PutAbort { upload }).await.unwrap();
    assert_eq!(bed.s3.counters().deletes, 2);
}

/// Says something of the drafts of one operation.
async fn drafts(client: &Client, call: DraftCall) -> Result<DataReply> {
    Ok(client.call(DataRequest::Drafts { operation: OperationId(5), call }).await?.0)
}

async fn open_drafts(client: &Client, below: &str) -> Result<DataReply> {
    drafts(client, DraftCall::Open { mount: client.mount, below: Key::new(below)? }).await
}

/// Begins a draft and writes its only part.
async fn draft(client: &Client, key: &str, data: &[u8]) -> Result<u64> {
    let DataReply::Upload { upload, .. } = drafts(client, DraftCall::Begin { mount: client.mount, key: Key::new(key)? }).await?
    else {
        panic!("an upload")
    };
    client.send(DataRequest::PutPart { upload, part: 0 }, vec![Bytes::copy_from_slice(data)]).await?;
    Ok(upload)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_written_by_one_and_committed_by_who_opened_it() {
    let bed = Bed::new(Plan::default()).await;
    let (asks, writes) = (bed.client().await, bed.client().await);
    assert_eq!(draft(&writes, "out/a", b"x").await.unwrap_err().kind(), ErrorKind::NotFound, "nobody has opened any");
    open_drafts(&asks, "out/").await.unwrap();
    assert_eq!(open_drafts(&writes, "out/").await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(draft(&writes, "elsewhere/a", b"x").await.unwrap_err().kind(), ErrorKind::NotFound);
    let data = noise("draft", 300_001);
    let upload = draft(&writes, "out/a", &data).await.unwrap();
    assert_eq!(asks.open("out/a").await.unwrap_err().kind(), ErrorKind::NotFound, "nobody sees a draft");
    let part = asks.send(DataRequest::PutPart { upload, part: 0 }, vec![Bytes::from_static(b"other bytes")]).await;
    assert_eq!(part.unwrap_err().kind(), ErrorKind::NotFound, "its parts are of who began it");
    let commit = DataRequest::PutCommit { upload, parts: 1, condition: PutCondition::Any };
    assert_eq!(writes.call(commit.clone()).await.unwrap_err().kind(), ErrorKind::NotFound, "and its end of who opened it");
    bed.s3.reset_counters();
    let DataReply::Info(info) = asks.call(commit).await.unwrap().0 else { panic!("an object") };
    assert_eq!(asks.read(&info.version, 0, data.len()).await.unwrap(), data);
    assert_eq!(bed.s3.counters().gets, 0, "it is in the tier");
    assert_eq!(bed.s3.uploads_open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_end_with_who_opened_them_and_not_with_who_writes() {
    let bed = Bed::new(Plan::default()).await;
    let (asks, writes) = (bed.client().await, bed.client().await);
    open_drafts(&asks, "").await.unwrap();
    let mut begun = Vec::new();
    for key in ["a", "b"] {
        begun.push(draft(&writes, key, b"some").await.unwrap());
    }
    writes.connection.close();
    drop(writes);
    let commit = DataRequest::PutCommit { upload: begun[0], parts: 1, condition: PutCondition::Any };
    asks.call(commit).await.unwrap();
    assert_eq!(bed.s3.uploads_open(), 1);
    drafts(&asks, DraftCall::End).await.unwrap();
    assert_eq!(bed.s3.uploads_open(), 0, "it is given up before that is answered");
    let late = bed.client().await;
    assert_eq!(draft(&late, "c", b"some").await.unwrap_err().kind(), ErrorKind::NotFound);
    open_drafts(&asks, "").await.unwrap();
    draft(&late, "d", b"some").await.unwrap();
    asks.connection.close();
    drop(asks);
    until("the draft is given up with the connection", async || bed.s3.uploads_open() == 0).await;
    for key in ["b", "c", "d"] {
        assert_eq!(late.open(key).await.unwrap_err().kind(), ErrorKind::NotFound, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_are_given_up_also_where_nobody_waits_for_it() {
    let bed = Bed::new(Plan::default()).await;
    let asks = bed.client().await;
    open_drafts(&asks, "").await.unwrap();
    draft(&asks, "a", b"some").await.unwrap();
    bed.s3.set_latency(Duration::from_millis(300));
    bed.s3.inject(Fault::Status(503), 1);
    let end = tokio::time::timeout(Duration::from_millis(100), drafts(&asks, DraftCall::End)).await;
    assert!(end.is_err(), "shared storage takes longer");
    bed.s3.set_latency(Duration::ZERO);
    until("the draft is given up", async || bed.s3.uploads_open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_are_over_when_no_commit_is_under_way() {
    let bed = Bed::new(Plan::default()).await;
    let asks = bed.client().await;
    open_drafts(&asks, "").await.unwrap();
    let upload = draft(&asks, "a", b"some").await.unwrap();
    bed.s3.set_latency(Duration::from_millis(300));
    let commit = asks.call(DataRequest::PutCommit { upload, parts: 1, condition: PutCondition::Any });
    assert!(tokio::time::timeout(Duration::from_millis(100), commit).await.is_err(), "shared storage takes longer");
    drafts(&asks, DraftCall::End).await.unwrap();
    bed.s3.set_latency(Duration::ZERO);
    asks.open("a").await.expect("what was to be made is there, and not some time later");
    assert_eq!(bed.s3.uploads_open(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_mount_refuses_writes_and_says_why() {
    let bed = Bed::new(Plan { options: MountOptions { read_only: true, ..Default::default() }, ..Plan::default() }).await;
    let data = bed.object("a", 5000);
    let client = bed.client().await;
    let delete = client.call(DataRequest::Delete { mount: client.mount, key: Key::new("a").unwrap() });
    let errors = [
        put(&client, "a", b"x", PutCondition::Any).await.unwrap_err(),
        begin(&client, "a").await.unwrap_err(),
        delete.await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.message().contains("/lake/a") && error.message().contains("read-only"), "{error}");
    }
    assert_eq!(bed.s3.counters().requests(), 0);
    let version = client.version("a").await;
    assert_eq!(client.read(&version, 0, 5000).await.unwrap(), data);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_object_is_gone_at_once() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 5000);
    let client = bed.client().await;
    client.version("a").await;
    for _ in 0..2 {
        client.call(DataRequest::Delete { mount: client.mount, key: Key::new("a").unwrap() }).await.unwrap();
    }
    assert_eq!(client.open("a").await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_is_lost_is_not_believed_to_have_failed() {
    let options = MountOptions { validate: Validate::Immutable, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    bed.object("a", 5000);
    let client = bed.client().await;
    let old = client.version("a").await;
    bed.s3.inject(Fault::LoseAnswer, 20);
    let failed = put(&client, "a", b"new", PutCondition::Any).await;
    bed.s3.clear_faults();
    // Whatever the writer was told: the object is what shared storage has.
    let now = client.version("a").await;
    assert_ne!(now, old);
    assert_eq!(client.read(&now, 0, 3).await.unwrap(), "new");
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Retry);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_is_refused_for_what_its_first_try_has_written_is_not_believed_to_have_failed() {
    let options = MountOptions { validate: Validate::Immutable, ..Default::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    bed.object("a", 5000);
    let client = bed.client().await;
    let old = client.version("a").await;
    bed.s3.inject(Fault::LoseAnswer, 1);
    let refused = put(&client, "a", b"new", PutCondition::Version(old.tag.clone())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    let now = client.version("a").await;
    assert_ne!(now, old);
    assert_eq!(client.read(&now, 0, 3).await.unwrap(), "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_worker_had_written_of_uploads_stayed_in_the_store() {
    let mut bed = Bed::new(Plan::default()).await;
    let client = bed.client().await;
    let noted = |bed: &Bed| std::fs::read_dir(bed.folder.path().join("worker/uploads")).unwrap().count();
    let mut begun = Vec::new();
    for key in ["left", "whole", "given up"] {
        let (upload, _) = begin(&client, key).await.unwrap();
        client.send(DataRequest::PutPart { upload, part: 0 }, vec![Bytes::from_static(b"some")]).await.unwrap();
        begun.push(upload);
    }
    assert_eq!((bed.s3.uploads_open(), noted(&bed)), (3, 3));
    let commit = DataRequest::PutCommit { upload: begun[1], parts: 1, condition: PutCondition::Any };
    client.call(commit).await.unwrap();
    client.call(DataRequest::PutAbort { upload: begun[2] }).await.unwrap();
    assert_eq!((bed.s3.uploads_open(), noted(&bed)), (1, 1), "what is over is not noted any more");
    // Somebody else writes the same object.
    let storage = Storage::open(&bed.mount, StorageSettings::default()).unwrap();
    let others = storage.begin_upload(&Key::new("left").unwrap()).await.unwrap();
    // As if it were killed: nothing that it does at its end comes to shared storage.
    bed.s3.inject(Fault::Status(503), 10_000);
    bed.stop_worker().await;
    bed.s3.clear_faults();
    assert_eq!((bed.s3.uploads_open(), noted(&bed)), (2, 1));
    // Of two mounts that lead there now the first one may only be read.
    let (coordinator, options) = (bed.node.coordinator_at(), bed.mount.options.clone());
    add_mount(coordinator, "again", "s3://lake", options.clone()).await;
    let options = MountOptions { read_only: true, ..options };
    control(coordinator, AdminRequest::MountSet { name: bed.mount.name.clone(), options }).await.unwrap();
    bed.start_worker().await;
    until("it is given up", async || noted(&bed) == 0).await;
    assert_eq!(bed.s3.uploads_open(), 1, "and nobody else's");
    others.abort().await.unwrap();
}
