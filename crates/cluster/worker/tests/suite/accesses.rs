//! Accesses that a worker tells of, one by one, to who records them.

use std::time::Duration;

use forebay_protocol::{
    AccessMade, AccessWay, Accesses, DataNotice, DataReply, DataRequest, InPlaceCount, PutCondition, WantedAccesses, encode,
};
use forebay_types::{Key, SegmentId};

use crate::bed::{Bed, Client, MIB, OPERATION, Plan, until};

async fn told(client: &Client, since: u64) -> Accesses {
    let wanted = WantedAccesses { since, one_in: 1, within_ms: 10 };
    match client.call(DataRequest::Accesses(wanted)).await.unwrap().0 {
        DataReply::Accesses(accesses) => accesses,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_records_is_told_of_each_access_with_its_place_and_way() {
    let bed = Bed::new(Plan::default()).await;
    bed.object("a", 65 * MIB);
    let (client, recorder) = (bed.client().await, bed.client().await);
    let version = client.version("a").await;
    client.read(&version, 0, 10).await.unwrap();
    let first = told(&recorder, 0).await;
    assert!(first.made.is_empty() && first.lost == 0, "what was read before nobody has recorded: {first:?}");

    client.read(&version, 5000, 100).await.unwrap();
    client.read(&version, 64 << 20, MIB).await.unwrap();
    let counts = vec![InPlaceCount { operation: OPERATION, segment: SegmentId::of(&version, 1), reads: 7, bytes: 7001 }];
    client.connection.notify(encode(&DataNotice::Unpin { pins: vec![], counts })).unwrap();
    until("reads in place are counted", async || bed.worker().report().reads == 10).await;
    let put = DataRequest::Put { mount: client.mount, key: Key::new("b").unwrap(), condition: PutCondition::Any };
    client.send(put, vec!["text".into()]).await.unwrap();
    client.call(DataRequest::Delete { mount: client.mount, key: Key::new("b").unwrap() }).await.unwrap();

    let some = told(&recorder, first.next).await;
    let of = |key: &str, start: u64, bytes: u64, times: u32, way: AccessWay| {
        let operation = (!matches!(way, AccessWay::Written | AccessWay::Deleted)).then_some(OPERATION);
        AccessMade { ago: Duration::ZERO, operation, mount: client.mount, key: Key::new(key).unwrap(), start, bytes, times, way }
    };
    assert!(some.made.iter().all(|access| access.ago > Duration::ZERO && access.ago < Duration::from_secs(60)), "{some:?}");
    let made: Vec<AccessMade> = some.made.into_iter().map(|access| AccessMade { ago: Duration::ZERO, ..access }).collect();
    assert_eq!(
        made,
        [
            of("a", 5000, 100, 1, AccessWay::Answered),
            of("a", 64 << 20, MIB as u64, 1, AccessWay::Answered),
            of("a", 64 << 20, 1001, 7, AccessWay::InPlace),
            of("b", 0, 4, 1, AccessWay::Written),
            of("b", 0, 0, 1, AccessWay::Deleted),
        ]
    );
    assert_eq!((told(&recorder, some.next).await.made, some.lost), (vec![], 0));
}
