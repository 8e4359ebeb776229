//! Reads of 1 B to 1 GiB, warm, on the same host: objects, temporary data, and files in the page cache in turns.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use bytes::Bytes;
use forebay_client::{Client, CreateOptions, NodeType, Nodes};
use forebay_types::{ObjectVersion, Result};

use crate::bytes_of::{random_bytes, sum};
use crate::reads::{READER, keep, page_cache_file};
use crate::rig::{Rig, RigSettings, path};
use forebay_bench_harness::{Bar, Figure, median};

/// Bytes of a read, how they are said, and how many reads there are of each kind.
const SIZES: [(u64, &str, usize); 5] =
    [(1, "1 B", 5_000), (1 << 10, "1 KiB", 5_000), (64 << 10, "64 KiB", 5_000), (MIB, "1 MiB", 500), (1 << 30, "1 GiB", 5)];
const MIB: u64 = 1 << 20;
/// What is read of a large object at once.
const PIECE_BYTES: u64 = 8 * MIB;
const FOLDER: &str = "/tmp/sizes";

/// The middle time of a read of each size, every byte consumed.
pub(crate) async fn sizes() -> Result<Vec<Figure>> {
    let mut rig = Rig::start(RigSettings::default()).await?;
    let nodes = rig.client.nodes();
    nodes.create(FOLDER, CreateOptions::new(NodeType::Directory)).await?;
    let mut figures = Vec::new();
    for (bytes, said, reads) in SIZES {
        let data = random_bytes(bytes, bytes as usize);
        let (key, node) = (format!("sizes/{bytes}"), format!("{FOLDER}/{bytes}"));
        rig.s3.put(&key, data.clone()).await?;
        let version = rig.client.open(&path(&key)?).await?.version;
        rig.client.load(vec![version.clone()], false, |_| ()).await?;
        write(&nodes, &node, &data).await?;
        let file = page_cache_file(&data)?;
        drop(data);
        let mut buffer = vec![0; bytes.min(MIB) as usize];
        let mut took: [Vec<f64>; 3] = Default::default();
        for read in 0..reads {
            // Who begins changes, as each leaves the processor's caches to the next.
            for who in (0..3).map(|turn| (read + turn) % 3) {
                let began = Instant::now();
                let found = match who {
                    0 => object(&rig.client, &version).await?,
                    1 => temporary(&nodes, &node, bytes).await?,
                    _ => cached(&file, bytes, &mut buffer)?,
                };
                took[who].push(began.elapsed().as_secs_f64() * 1e6);
                assert_eq!(found, bytes, "all of {key} came");
            }
        }
        let [object, temporary, cached] = took.map(median);
        for (ours, of) in [(object, "an object"), (temporary, "temporary data")] {
            let what = format!("read of {said} of {of}, warm, same host: p50");
            figures.push(Figure::new(what, ours, "us", "pread from the page cache", cached, Bar::Nothing));
        }
    }
    Ok(figures)
}

/// A key-value as far as that is one message, or a file.
async fn write(nodes: &Nodes, node: &str, data: &Bytes) -> Result<()> {
    if data.len() as u64 <= MIB {
        nodes.put(node, data.clone()).await?;
        return Ok(());
    }
    nodes.create(node, CreateOptions::new(NodeType::File)).await?;
    let mut writer = nodes.writer(node).await?;
    for at in (0..data.len()).step_by(MIB as usize) {
        writer.write_bytes(data.slice(at..data.len().min(at + MIB as usize))).await?;
    }
    writer.finish().await?;
    Ok(())
}

async fn object(client: &Client, version: &ObjectVersion) -> Result<u64> {
    let mut at = 0;
    while at < version.size {
        let end = version.size.min(at + PIECE_BYTES);
        let bytes = client.read(READER, version, at..end).await?;
        keep(sum(&bytes));
        at += bytes.len() as u64;
    }
    Ok(at)
}

async fn temporary(nodes: &Nodes, node: &str, bytes: u64) -> Result<u64> {
    if bytes <= MIB {
        let value = nodes.get(node).await?;
        keep(sum(&value));
        return Ok(value.len() as u64);
    }
    let (mut reader, mut read) = (nodes.reader(node, 0).await?, 0);
    while let Some(bytes) = reader.next().await? {
        keep(sum(&bytes));
        read += bytes.len() as u64;
    }
    Ok(read)
}

fn cached(file: &File, bytes: u64, buffer: &mut [u8]) -> Result<u64> {
    let mut at = 0;
    while at < bytes {
        file.read_exact_at(buffer, at)?;
        keep(sum(buffer));
        at += buffer.len() as u64;
    }
    Ok(at)
}
