//! Bar of nodes of the class `disk`, sequential and random, against the same disk without Forebay.

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use forebay_client::{CreateOptions, NodeType, StorageClass};
use futures::stream::{self, StreamExt};

use crate::rig::Rig;
use crate::sequential::{BYTES, REQUEST, Sequential, gbytes};
use forebay_bench_harness::{at_least, median};

/// Bytes of a random request, and requests in flight.
const RANDOM: usize = 64 << 10;
const IN_FLIGHT: usize = 8;
/// Random requests of a round.
const REQUESTS: usize = 2048;
/// O_DIRECT of Linux on x86-64 and arm64.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200000 } else { 0o40000 };

/// A file of the class `disk` beside its worker, against a file of the same disk, past the page cache, with as many in flight.
pub async fn all(rounds: usize) {
    let rig = Rig::with_disk(4 << 30);
    let nodes = rig.nodes(true).await;
    let plain = rig.folder().join("plain");
    let file = Sequential::new(&nodes);
    let (mut ours, mut theirs) = ([vec![], vec![], vec![]], [vec![], vec![], vec![]]);
    for _ in 0..rounds {
        theirs[0].push(device(&plain, BYTES / REQUEST, REQUEST, true));
        let options = CreateOptions { class: Some(StorageClass::Disk), ..CreateOptions::new(NodeType::File) };
        ours[0].push(file.write(options).await);
        theirs[1].push(device(&plain, BYTES / REQUEST, REQUEST, false));
        ours[1].push(file.read(|_| ()).await);
        theirs[2].push(device(&plain, REQUESTS, RANDOM, false));
        ours[2].push(random(&file).await);
        file.delete().await;
        std::fs::remove_file(&plain).unwrap();
    }
    let names = ["disk sequential write", "disk sequential read", "disk 64 KB random read, 8 in flight"];
    for ((name, ours), theirs) in names.into_iter().zip(ours).zip(theirs) {
        at_least(name, "GB/s", median(ours), ("the device with O_DIRECT, 8 in flight", median(theirs)), 0.9);
    }
}

async fn random(file: &Sequential<'_>) -> f64 {
    let began = Instant::now();
    let reads = (0..REQUESTS).map(|at| file.range(place(at, RANDOM), RANDOM));
    stream::iter(reads).buffer_unordered(IN_FLIGHT).for_each(|()| std::future::ready(())).await;
    gbytes(REQUESTS * RANDOM, began)
}

/// Where the request of this number reads, aligned to its size: all over the file.
fn place(at: usize, request: usize) -> usize {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % (BYTES / request) * request
}

/// What the disk does with as many threads as there are requests in flight.
fn device(path: &Path, requests: usize, request: usize, writes: bool) -> f64 {
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).custom_flags(O_DIRECT).open(path);
    let file = file.unwrap();
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                let mut memory = vec![7; request + 4096];
                let ahead = memory.as_ptr().align_offset(4096);
                let bytes = &mut memory[ahead..][..request];
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    if at >= requests {
                        return;
                    }
                    let offset = if request == REQUEST { at * request } else { place(at, request) } as u64;
                    if writes { file.write_all_at(bytes, offset).unwrap() } else { file.read_exact_at(bytes, offset).unwrap() }
                }
            });
        }
    });
    gbytes(requests * request, began)
}
