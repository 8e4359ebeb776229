//! 10,000 objects of 50 KB, warm, read whole.

use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use forebay_client::Client;
use forebay_shared_storage::PutCondition;
use forebay_types::{Key, ObjectVersion, Result};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::bytes_of::{random_bytes, sum};
use crate::reads::{READER, keep};
use crate::rig::{Rig, RigSettings, path};
use forebay_bench_harness::{Bar, Figure, median};

const OBJECTS: u64 = 10_000;
const LEN: usize = 50_000;

/// One after the other, and 64 in flight, beside as many files read the same way; every byte consumed.
pub async fn objects() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings::default()).await?;
    let folder = tempfile::tempdir()?;
    let versions = upload(&rig, folder.path()).await?;
    rig.client.load(versions.clone(), false, |_| ()).await?;
    rig.s3.take_counters()?;
    let files: Vec<PathBuf> = (0..OBJECTS).map(|object| folder.path().join(object.to_string())).collect();
    let mut figures = Vec::new();
    for (how, in_flight) in [("one after the other", 1), ("64 in flight", 64)] {
        let (mut ours, mut cached) = (Vec::new(), Vec::new());
        for round in 0..6 {
            // Who begins changes, as each leaves the processor's caches to the other.
            for is_ours in if round % 2 == 0 { [true, false] } else { [false, true] } {
                let start = Instant::now();
                match is_ours {
                    true => read_objects(&rig.client, &versions, in_flight).await?,
                    false => read_files(&files, in_flight)?,
                }
                let rates = if is_ours { &mut ours } else { &mut cached };
                rates.push(OBJECTS as f64 / start.elapsed().as_secs_f64());
            }
        }
        figures.push(
            Figure::alone(
                format!("10,000 objects of 50 KB, warm, same host, {how}"),
                median(ours),
                "objects/s",
                Bar::ValueAtLeast(20_000.0),
            )
            .beside("open, read and close files in the page cache", median(cached)),
        );
    }
    assert_eq!(rig.s3.take_counters()?.requests, 0, "all of it was warm");
    Ok(figures)
}

/// Puts them into the store and beside it into a folder; their versions.
async fn upload(rig: &Rig, folder: &Path) -> Result<Vec<ObjectVersion>> {
    let storage = rig.s3.storage()?;
    let data = random_bytes(3, LEN);
    stream::iter(0..OBJECTS)
        .map(|object| {
            let (storage, data) = (&storage, data.clone());
            async move {
                std::fs::write(folder.join(object.to_string()), &data)?;
                storage.put(&Key::new(format!("small/{object}"))?, vec![data], PutCondition::Any).await.map(|_| ())
            }
        })
        .buffered(16)
        .try_collect::<()>()
        .await?;
    let listed = rig.client.list_all(&path("small/")?).await?;
    assert_eq!(listed.len() as u64, OBJECTS, "the listing has every object");
    Ok(listed.into_iter().map(|info| info.version).collect())
}

async fn read_objects(client: &Client, versions: &[ObjectVersion], in_flight: usize) -> Result<()> {
    stream::iter(versions)
        .map(|version| client.read(READER, version, 0..LEN as u64))
        .buffer_unordered(in_flight)
        .try_for_each(|bytes: Bytes| {
            keep(sum(&bytes));
            futures::future::ok(())
        })
        .await
}

/// Each thread reads one file at a time: as many threads as reads in flight, but no more than cores, which is the best that they can do.
fn read_files(files: &[PathBuf], in_flight: usize) -> Result<()> {
    let threads = in_flight.min(std::thread::available_parallelism()?.get());
    let part = |files: &[PathBuf]| files.iter().try_for_each(|file| std::fs::read(file).map(|bytes| keep(sum(&bytes))));
    std::thread::scope(|scope| {
        let parts = files.chunks(files.len().div_ceil(threads));
        let readers: Vec<_> = parts.map(|files| scope.spawn(move || part(files))).collect();
        readers.into_iter().try_for_each(|reader| reader.join().expect("it only reads"))
    })?;
    Ok(())
}
