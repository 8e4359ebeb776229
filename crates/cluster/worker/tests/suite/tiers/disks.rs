//! A worker whose disk tier lies on several disks.

use forebay_block_store::StoreSettings;

use crate::bed::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_serves_without_a_disk_that_is_away_and_says_so() {
    let bed = Bed::new(Plan::default()).await;
    let data = bed.object("a", 9 * MIB + 77);
    let folder = |name: &str| bed.folder.path().join(name);
    std::fs::create_dir(folder("disk1")).unwrap();
    let store = StoreSettings::new(folder("second"), 64 << 20)
        .with_disk(16 << 20)
        .with_disk_folder(folder("disk1"), 32 << 20)
        .with_disk_folder(folder("disk2"), 32 << 20);
    let worker = start_worker(bed.node.coordinator_at(), store.clone(), None).await;
    let report = worker.report();
    assert_eq!(report.disk.0, 48 << 20);
    assert!(report.warnings.len() == 1 && report.warnings[0].text.contains("disk2 is left out"), "{:?}", report.warnings);
    let client = Client::connect(&worker.address(), bed.mount.id).await;
    let version = client.version("a").await;
    assert_eq!(client.read(&version, 0, data.len()).await.unwrap(), data);
    worker.shutdown().await;
    drop(worker);

    std::fs::create_dir(folder("disk2")).unwrap();
    let worker = start_worker(bed.node.coordinator_at(), store, None).await;
    let report = worker.report();
    assert_eq!((report.disk.0, report.warnings.len()), (80 << 20, 0));
    let client = Client::connect(&worker.address(), bed.mount.id).await;
    assert_eq!(client.read(&version, 0, data.len()).await.unwrap(), data);
    worker.shutdown().await;
}
