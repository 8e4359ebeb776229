//! What is ordered of a dataset's replicas is written by who may administer its mount.

use forebay_protocol::*;
use forebay_shard_store::{
    Column, ColumnKind, Columns, Dataset, DatasetFile, DatasetOrders, DatasetPin, DatasetShard, manifest_key,
};
use forebay_types::Key;

use super::table::*;
use super::{Cluster, is_refused};

fn manifest(orders: DatasetOrders) -> Vec<u8> {
    let column = |name: &str| Column { name: name.into(), kind: ColumnKind::Uint };
    let file = DatasetFile { name: "manifest".into(), object: format!("{:032x}", 7), bytes: 3, crc32c: 1 };
    let dataset = Dataset {
        columns: Columns::new(vec![column("k"), column("v")], "k").unwrap(),
        replicas: vec![0.5],
        shards: vec![DatasetShard { files: vec![file], log_from: 1, ..DatasetShard::default() }],
        log: Some("0".repeat(16)),
        orders,
        following: None,
        next: None,
        before: Vec::new(),
    };
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
