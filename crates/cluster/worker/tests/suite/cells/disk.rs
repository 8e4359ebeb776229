//! Columns that have left memory come back from disk, where they lie compressed.

use forebay_metrics::table;
use forebay_protocol::{DataReply, DataRequest};
use forebay_types::{Cell, SegmentId};

use crate::bed::{Client, Plan, until};
use crate::cells::{hot, made, warm, with_file};

/// Bytes of a segment that the disk tier has.
async fn on_disk(client: &Client, id: SegmentId) -> u64 {
    match client.call(DataRequest::Held { segments: vec![id] }).await.unwrap().0 {
        DataReply::Held(held) => held[0].disk_bytes,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_column_comes_back_from_disk_and_goes_with_its_object() {
    let (mut bed, client, version) = with_file(Plan { disk_bytes: 64 << 20, ..hot() }).await;
    warm(&client, &version).await;
    let cell = made(&client, &version, 1, 1).await;
    let id = SegmentId::of(&version, Cell { row_group: 1, column: 1 }.index().unwrap());
    until("it is on disk", async || on_disk(&client, id.packed()).await > 0).await;
    let packed = on_disk(&client, id.packed()).await;
    assert!(packed * 2 < cell.len() as u64, "{packed} bytes of {}", cell.len());
    assert_eq!(on_disk(&client, id).await, 0, "the column itself is made again sooner than read");

    // Memory is empty then.
    bed.restart_worker().await;
    let client = bed.client().await;
    assert_eq!(on_disk(&client, id.packed()).await, packed);
    assert_eq!(bed.worker().report().form_bytes, 0);
    warm(&client, &version).await;
    let before = table::WORKER_BROUGHT_BACK_BYTES.only().get();
    assert!(made(&client, &version, 1, 1).await == cell);
    assert_eq!(table::WORKER_BROUGHT_BACK_BYTES.only().get() - before, cell.len() as u64, "it was not decoded");

    let segments = vec![SegmentId::of(&version, 0)];
    client.call(DataRequest::Free { segments }).await.unwrap();
    assert_eq!(on_disk(&client, id.packed()).await, 0);
}
