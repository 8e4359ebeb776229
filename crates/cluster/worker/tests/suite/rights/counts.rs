//! Reads in place that a client tells of what it may not read.

use bytes::Bytes;
use forebay_protocol::*;
use forebay_types::{MountId, OperationId, SegmentId};

use super::Cluster;
use super::table::*;
use crate::bed::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_a_mount_counts_no_reads_of_it() {
    let cluster = Cluster::start().await;
    let owner = cluster.connect(&cluster.worker.address(), "owner").await.unwrap();
    let mut counts = Vec::new();
    for mount in [MountId(LAKE.0 + 1), LAKE] {
        let put = DataRequest::Put { mount, key: key(), condition: PutCondition::Any };
        let stored = owner.call(encode(&put), vec![Bytes::from_static(b"some bytes")]).await.unwrap();
        let Ok(DataReply::Info(info)) = decode(&stored.meta) else { panic!("nothing written") };
        let (operation, segment) = (OperationId(1), SegmentId::of(&info.version, 0));
        let read = DataRequest::Read { operation, version: info.version, start: 0, len: 10, in_place: false };
        assert_eq!(owner.call(encode(&read), Vec::new()).await.unwrap().payload.len(), 10);
        counts.push(InPlaceCount { operation: OperationId(2), segment, reads: 3, bytes: 30 });
    }
    let reads = |of: MountId| {
        let report = cluster.worker.report();
        report.mount_reads.iter().find(|(mount, _)| *mount == of).map_or(0, |(_, counted)| counted.reads)
    };
    let reader = cluster.connect(&cluster.worker.address(), "read lake").await.unwrap();
    reader.notify(encode(&DataNotice::Unpin { pins: vec![], counts })).unwrap();
    // Which are the last that it tells of.
    until("those of its mount are counted", async || reads(LAKE) == 4).await;
    assert_eq!((reads(MountId(LAKE.0 + 1)), cluster.worker.report().reads), (1, 5));
    cluster.worker.shutdown().await;
}
