//! The bandwidth bound, measured at real sockets.

use std::time::{Duration, Instant};

use forebay_shared_storage::{Class, Get, GetRange, Storage};

use crate::lab::{Lab, key, pattern, put};

const RATE: u64 = 12_000_000;
const BURST: u64 = 1 << 20;
/// One measurement at a time.
static QUIET: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Reads an object over and over until told to stop, and returns how many bytes came.
async fn read_until(storage: Storage, class: Class, end: Instant) -> u64 {
    let object = key("x");
    let mut bytes = 0;
    while Instant::now() < end {
        let mut body = storage.get(Get { key: &object, range: GetRange::All, if_match: None, class }).await.unwrap();
        while let Some(piece) = body.next().await {
            bytes += piece.unwrap().len() as u64;
            if Instant::now() >= end {
                break;
            }
        }
    }
    bytes
}

/// Reads for three seconds, checks that no window of time exceeds the bound, and returns the mean rate.
async fn measure(lab: &Lab) -> f64 {
    let began = Instant::now();
    let end = began + Duration::from_secs(3);
    let readers: Vec<_> = (0..4).map(|_| tokio::spawn(read_until(lab.storage.clone(), Class::Demand, end))).collect();
    let mut samples = Vec::new();
    while Instant::now() < end {
        // The clock is read before the counter for what comes first, and after it for what comes last.
        let before = began.elapsed();
        let bytes = lab.storage.counters().socket_bytes_in;
        samples.push((before, bytes, began.elapsed()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for reader in readers {
        reader.await.unwrap();
    }
    for (at, (from, bytes, _)) in samples.iter().enumerate() {
        for (_, more, to) in &samples[at..] {
            let window = (*to - *from).as_secs_f64();
            let over = (more - bytes) as f64 - window * RATE as f64;
            // A connection may be between its read and the counter when either is looked at.
            assert!(over <= (BURST + (64 << 10)) as f64, "{} bytes in {window} s", more - bytes);
        }
    }
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    (last.1 - first.1) as f64 / (last.0 - first.0).as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bound_is_used_and_kept() {
    let _quiet = QUIET.lock().await;
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(3 << 20)).await;
    lab.storage.set_share(Some(RATE), BURST);
    let mut means = Vec::new();
    // That the bound is never exceeded holds on any machine, that it is used only on one that has time for it.
    while means.len() < 4 {
        means.push(measure(&lab).await);
        if means.iter().any(|mean| *mean >= 0.95 * RATE as f64) {
            return;
        }
    }
    panic!("{means:?} of {RATE} bytes a second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn demand_leaves_prefetch_what_it_does_not_take() {
    let _quiet = QUIET.lock().await;
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(1 << 20)).await;
    lab.storage.set_share(Some(RATE), BURST);
    let end = Instant::now() + Duration::from_secs(1);
    let read = |class| tokio::spawn(read_until(lab.storage.clone(), class, end));
    let readers = [read(Class::Prefetch), read(Class::Prefetch), read(Class::Demand), read(Class::Demand)];
    let [first, second, third, fourth] = readers;
    let prefetch = first.await.unwrap() + second.await.unwrap();
    let demand = third.await.unwrap() + fourth.await.unwrap();
    assert!(demand > 4 * prefetch, "demand {demand}, prefetch {prefetch}");
    assert!((demand + prefetch) as f64 > 0.5 * RATE as f64, "demand {demand}, prefetch {prefetch}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_wait_for_the_bound_is_no_dead_connection() {
    let lab = Lab::s3();
    put(&lab.storage, "x", pattern(400_000)).await;
    let storage =
        crate::lab::open("s3://lake/some prefix/%2B", crate::lab::options(&lab.server().endpoint()), crate::lab::hasty());
    storage.set_share(Some(0), 0);
    let reading = tokio::spawn({
        let storage = storage.clone();
        async move { crate::lab::get(&storage, "x", GetRange::All).await }
    });
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(storage.demand_bytes_per_sec() >= 300_000, "{}", storage.demand_bytes_per_sec());
    storage.set_share(None, 0);
    assert_eq!(reading.await.unwrap().unwrap(), pattern(400_000));
    assert_eq!(storage.counters().retries, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_keep_the_bound_too() {
    let _quiet = QUIET.lock().await;
    let lab = Lab::files();
    put(&lab.storage, "x", pattern(1 << 20)).await;
    lab.storage.set_share(Some(RATE), BURST);
    let began = Instant::now();
    let bytes = read_until(lab.storage.clone(), Class::Demand, began + Duration::from_secs(1)).await;
    let rate = bytes as f64 / began.elapsed().as_secs_f64();
    assert!((0.5 * RATE as f64..=1.12 * RATE as f64).contains(&rate), "{rate} of {RATE} bytes a second");
}
