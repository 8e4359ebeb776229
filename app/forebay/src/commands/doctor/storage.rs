//! Shared storage, as this machine reaches it: credentials, round trip and speed.

use std::time::Duration;

use forebay_client::Client;
use forebay_runtime::now;
use forebay_runtime::time::timeout;
use forebay_shared_storage::{Class, Get, GetRange, Storage};
use forebay_types::{Error, Key, Mount, ObjectInfo, Result, format_bytes};

use super::finding::Finding;

/// A storage that has not answered by then is away.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is read to see how fast it is.
const SAMPLE_BYTES: u64 = 8 << 20;
/// Keys looked through for one to read.
const KEYS: usize = 100;

pub(super) async fn check(client: &Client, mount: &Mount) -> Finding {
    let name = format!("mount /{}/", mount.name);
    let measured = match client.open_storage(mount) {
        Ok(storage) => timeout(PATIENCE, measure(&storage)).await.unwrap_or_else(|_| Err(Error::retry("no answer for 10 s"))),
        Err(error) => Err(error),
    };
    match measured {
        Ok(found) => Finding::ok(name, format!("{}: {found}", mount.url)),
        Err(error) => {
            let remedy = "check its url and endpoint (`forebay mount ls`), the network, and this account's credentials";
            Finding::failure(name, format!("{}: {error}", mount.url), remedy)
        }
    }
}

async fn measure(storage: &Storage) -> Result<String> {
    let started = now();
    let listing = storage.list(&Key::new("")?, false, None, KEYS).await?;
    let round_trip = started.elapsed();
    let listed = format!("listed in {round_trip:.1?}");
    let Some(largest) = listing.objects.iter().max_by_key(|object| object.version.size) else {
        return Ok(format!("{listed}; nothing in it to read"));
    };
    let (bytes, took) = read(storage, largest).await?;
    let rate = bytes as f64 / took.as_secs_f64().max(1e-6);
    Ok(format!("{listed}; {} in {took:.1?}, {}/s", format_bytes(bytes), format_bytes(rate as u64)))
}

async fn read(storage: &Storage, object: &ObjectInfo) -> Result<(u64, Duration)> {
    let started = now();
    let range = GetRange::Bounded(0..object.version.size.min(SAMPLE_BYTES));
    let range = if object.version.size == 0 { GetRange::All } else { range };
    let get = Get { key: &object.version.key, range, if_match: None, class: Class::Demand };
    let mut body = storage.get(get).await?;
    let mut bytes = 0;
    while let Some(chunk) = body.next().await.transpose()? {
        bytes += chunk.len() as u64;
    }
    Ok((bytes, started.elapsed()))
}
