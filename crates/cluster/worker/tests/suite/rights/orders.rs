//! What is ordered of a dataset's replicas is written by who may administer its mount.

use bytes::Bytes;
use forebay_protocol::*;
use forebay_shard_store::{
    Column, ColumnKind, Columns, Dataset, DatasetFile, DatasetOrders, DatasetPin, DatasetShard, LogClaim, LogObject, LogPlace,
    manifest_key,
};
use forebay_types::{Key, OperationId, WorkerId};

use super::table::*;
use super::takes::*;
use super::{Cluster, is_refused};

fn manifest(orders: DatasetOrders) -> Vec<u8> {
    let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
    let file = DatasetFile { name: "manifest".into(), object: format!("{:032x}", 7), bytes: 3, crc32c: 1 };
    let columns = Columns::new(vec![column("k"), column("v")], "k").unwrap();
    let shard = DatasetShard { files: vec![file], log_from: 1, ..DatasetShard::default() };
    let dataset = Dataset { log: Some("0".repeat(16)), orders, ..Dataset::new(columns, vec![0.5], vec![shard]) };
    dataset.encode().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_writes_may_make_and_change_a_dataset_and_order_nothing_of_its_replicas() {
    let cluster = Cluster::start().await;
    let (plain, frozen) = (DatasetOrders::default(), DatasetOrders { pin: None, frozen: true, ..DatasetOrders::default() });
    let pinned = DatasetOrders { pin: Some(DatasetPin { size: Some(0.9) }), frozen: false, ..DatasetOrders::default() };
    let owner = cluster.connect(&cluster.worker.address(), "owner").await.unwrap();
    let put = |folder: &str, number: u64| {
        let key = Key::new(format!("{folder}/{}", manifest_key(number))).unwrap();
        encode(&DataRequest::Put { mount: LAKE, key, condition: PutCondition::Absent })
    };
    for (place, credential) in CREDENTIALS.into_iter().enumerate() {
        let connection = cluster.connect(&cluster.worker.address(), credential).await.unwrap();
        let writes = has(credential, Takes::Writing);
        // Those of the cluster's processes that ask for others have looked at whom.
        let orders = has(credential, Takes::Administering) || credential == "member";
        let by_owner = format!("owner{place}.shards");
        for (number, of) in [(1, plain), (2, pinned)] {
            let stored = owner.call(put(&by_owner, number), vec![manifest(of).into()]).await.unwrap();
            assert!(!is_refused(&stored.meta), "the owner may");
        }
        let own = format!("own{place}.shards");
        let steps = [
            (&own, 1, plain, writes),
            (&own, 2, plain, writes),
            (&own, 3, pinned, orders),
            (&own, 5, frozen, orders),
            (&by_owner, 3, plain, orders),
            (&by_owner, 3, pinned, writes),
        ];
        for (folder, number, of, may) in steps {
            let answer = connection.call(put(folder, number), vec![manifest(of).into()]).await.unwrap();
            assert_eq!(!is_refused(&answer.meta), may, "{credential}: {folder}, manifest {number}, {of:?}");
        }
        let begin = DataRequest::PutBegin { mount: LAKE, key: Key::new(format!("{own}/{}", manifest_key(7))).unwrap() };
        let answer = connection.call(encode(&begin), Vec::new()).await.unwrap();
        assert_eq!(!is_refused(&answer.meta), orders, "{credential}: a manifest in parts");
    }
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_writes_takes_no_order_back() {
    let cluster = Cluster::start().await;
    let (plain, pinned) =
        (DatasetOrders::default(), DatasetOrders { pin: Some(DatasetPin { size: Some(0.9) }), ..DatasetOrders::default() });
    let key = |number: u64| Key::new(format!("kept.shards/{}", manifest_key(number))).unwrap();
    let put = |number: u64, condition: PutCondition| encode(&DataRequest::Put { mount: LAKE, key: key(number), condition });
    let delete = |number: u64| (encode(&DataRequest::Delete { mount: LAKE, key: key(number) }), Vec::new());
    let (any, new) = (PutCondition::Any, PutCondition::Absent);
    let with = |of: DatasetOrders| vec![Bytes::from(manifest(of))];
    let nothing = || vec![Bytes::from_static(b"this is no manifest")];
    let owner = cluster.connect(&cluster.worker.address(), "owner").await.unwrap();
    for (number, of) in [(1, plain), (2, pinned)] {
        let stored = owner.call(put(number, new.clone()), with(of)).await.unwrap();
        assert!(!is_refused(&stored.meta), "the owner may");
    }
    let writer = cluster.connect(&cluster.worker.address(), "write lake").await.unwrap();
    let steps = [
        ("another one over it", false, (put(2, any.clone()), with(plain))),
        ("no manifest over it", false, (put(2, any.clone()), nothing())),
        ("one that is not behind it at once", false, (put(9, new.clone()), with(plain))),
        ("without it", false, delete(2)),
        ("no manifest behind it", true, (put(3, new.clone()), nothing())),
        ("one behind that", false, (put(4, new.clone()), with(plain))),
        ("without it, once there is something behind it", false, delete(2)),
        ("one that carries it on", true, (put(4, new), with(pinned))),
        ("the same over that", true, (put(4, any), with(pinned))),
        ("without those before", true, delete(2)),
        ("without the first", true, delete(1)),
        ("without the last", false, delete(4)),
    ];
    for (what, may, (request, payload)) in steps {
        let answer = writer.call(request, payload).await.unwrap();
        assert_eq!(!is_refused(&answer.meta), may, "{what}: {:?}", decode::<DataReply>(&answer.meta));
    }
    let beside = [
        ("manifest-0000000001", pinned, false),
        ("manifest-0000000001", plain, true),
        ("kept.shards/manifest-x/manifest-0000000009", plain, true),
        ("kept.shards/manifest-y/manifest-0000000009", plain, true),
    ];
    for (at, of, may) in beside {
        let request = DataRequest::Put { mount: LAKE, key: Key::new(at).unwrap(), condition: PutCondition::Absent };
        let answer = writer.call(encode(&request), with(of)).await.unwrap();
        assert_eq!(!is_refused(&answer.meta), may, "{at}: {:?}", decode::<DataReply>(&answer.meta));
    }
    let (request, payload) = delete(4);
    assert!(is_refused(&writer.call(request, payload).await.unwrap().meta), "what lies in other folders is not behind it");
    let admin = cluster.connect(&cluster.worker.address(), "admin lake").await.unwrap();
    let (request, payload) = delete(4);
    assert!(!is_refused(&admin.call(request, payload).await.unwrap().meta), "who administers the mount may");
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_writes_commits_no_manifest_that_was_drafted() {
    let cluster = Cluster::start().await;
    let address = cluster.worker.address();
    let member = cluster.connect(&address, "member").await.unwrap();
    let drafts = |number, call| encode(&DataRequest::Drafts { operation: OperationId(number), call });
    for (number, credential) in [(1, "write lake"), (2, "admin lake")] {
        let asks = cluster.connect(&address, credential).await.unwrap();
        let below = Key::new("drafted.shards/").unwrap();
        let opened = asks.call(drafts(number, DraftCall::Open { mount: LAKE, below }), Vec::new()).await.unwrap();
        assert!(matches!(decode(&opened.meta), Ok(DataReply::Done)), "{credential}");
        let administers = has(credential, Takes::Administering);
        for (name, may) in [("part.csv".to_string(), true), (manifest_key(number), administers)] {
            let key = Key::new(format!("drafted.shards/{name}")).unwrap();
            let begun = member.call(drafts(number, DraftCall::Begin { mount: LAKE, key }), Vec::new()).await.unwrap();
            let Ok(DataReply::Upload { upload, .. }) = decode(&begun.meta) else { panic!("an upload") };
            let part = DataRequest::PutPart { upload, part: 0 };
            member.call(encode(&part), vec![Bytes::from_static(b"x")]).await.unwrap();
            let commit = DataRequest::PutCommit { upload, parts: 1, condition: PutCondition::Any };
            let answer = asks.call(encode(&commit), Vec::new()).await.unwrap();
            assert_eq!(!is_refused(&answer.meta), may, "{credential}: {name}");
            assert_eq!(matches!(decode(&answer.meta), Ok(DataReply::Info(_))), may, "{credential}: {name}");
        }
    }
    cluster.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_writes_gives_up_nothing_that_two_workers_have_acknowledged() {
    let cluster = Cluster::start().await;
    let address = cluster.worker.address();
    let place = LogPlace { folder: "claimed.shards".into(), log: "0".repeat(16), shard: 0 };
    let claim = LogClaim { id: 7, writer: WorkerId(0x71), second: WorkerId(0x72), number: 2 };
    let put = |number: u64, condition: &PutCondition, of: &LogObject| {
        let (key, condition) = (place.key(number).unwrap(), condition.clone());
        (encode(&DataRequest::Put { mount: LAKE, key, condition }), vec![Bytes::from(of.encode(number))])
    };
    let (any, new) = (PutCondition::Any, PutCondition::Absent);
    let (calls, over) = (LogObject::Calls(Vec::new()), LogObject::Over);
    let writer = cluster.connect(&address, "write lake").await.unwrap();
    // There is no claim yet.
    let early = DataRequest::PutBegin { mount: LAKE, key: place.key(3).unwrap() };
    let early = match decode::<DataReply>(&writer.call(encode(&early), Vec::new()).await.unwrap().meta).unwrap() {
        DataReply::Upload { upload, .. } => upload,
        reply => panic!("{reply:?}"),
    };
    let part = encode(&DataRequest::PutPart { upload: early, part: 0 });
    assert!(!is_refused(&writer.call(part, vec![Bytes::from(over.encode(3))]).await.unwrap().meta));
    let owner = cluster.connect(&address, "owner").await.unwrap();
    for (number, of) in [(1, &calls), (2, &LogObject::Claim(claim))] {
        let (request, payload) = put(number, &new, of);
        assert!(!is_refused(&owner.call(request, payload).await.unwrap().meta), "the owner may");
    }
    let commit = encode(&DataRequest::PutCommit { upload: early, parts: 1, condition: PutCondition::Absent });
    assert!(is_refused(&writer.call(commit, Vec::new()).await.unwrap().meta), "what was begun before the claim");
    let steps = [
        ("write lake", "the end of the claim", false, put(3, &new, &over)),
        ("write lake", "something else behind it", false, put(3, &new, &calls)),
        ("write lake", "something in its place", false, put(2, &any, &over)),
        ("write lake", "something behind what two disks may have alone", false, put(7, &new, &calls)),
        ("write lake", "what is there already", true, put(2, &new, &over)),
        ("write lake", "something before it", true, put(1, &any, &calls)),
        ("admin lake", "the end of the claim", true, put(3, &new, &over)),
        ("write lake", "something behind its end", true, put(4, &new, &LogObject::Sealed)),
    ];
    for (credential, what, may, (request, payload)) in steps {
        let asks = cluster.connect(&address, credential).await.unwrap();
        let answer = asks.call(request, payload).await.unwrap();
        assert_eq!(!is_refused(&answer.meta), may, "{credential}: {what}: {:?}", decode::<DataReply>(&answer.meta));
    }
    for (number, may) in [(3, false), (5, true)] {
        let begin = DataRequest::PutBegin { mount: LAKE, key: place.key(number).unwrap() };
        let answer = writer.call(encode(&begin), Vec::new()).await.unwrap();
        assert_eq!(!is_refused(&answer.meta), may, "object {number}, in parts");
    }
    cluster.worker.shutdown().await;
}
