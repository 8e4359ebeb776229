//! One table that is read by SQL on a cluster, then through the S3 gateway, then as Python does: what of it comes from shared storage more
//! than once, counted there.

use bytes::Bytes;
use forebay_bench_harness::{Bar, Figure};
use forebay_client::Client;
use forebay_node::{AccessRule, GatewaySettings};
use forebay_shared_storage::{Class, Get, GetRange, Storage, StorageSettings};
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::prepare;
use forebay_types::{Error, Key, Mount, MountId, MountOptions, ObjectVersion, Result, ResultExt};

use crate::cluster::{LocalCluster, Shape};
use crate::rig::{MOUNT, S3, mount, mounted, path};

const TABLE: &str = "lineitem";
/// All of its columns but the one by which the query groups.
const COLUMNS: [&str; 15] = [
    "l_orderkey",
    "l_partkey",
    "l_suppkey",
    "l_linenumber",
    "l_quantity",
    "l_extendedprice",
    "l_discount",
    "l_tax",
    "l_linestatus",
    "l_shipdate",
    "l_commitdate",
    "l_receiptdate",
    "l_shipinstruct",
    "l_shipmode",
    "l_comment",
];
/// What a program reads at once, and how far ahead of it is brought.
const PIECE_BYTES: u64 = 4 << 20;

/// The table by all its columns, and by three that lie apart; each on four workers that have nothing yet.
pub async fn fetched_twice() -> Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let tables = prepare(folder.path(), 0.2, |_, _| ()).await?;
    let mut files = Vec::new();
    for file in std::fs::read_dir(tables.folder.join(TABLE))? {
        let file = file?;
        files.push((format!("{TABLE}/{}", file.file_name().to_string_lossy()), Bytes::from(std::fs::read(file.path())?)));
    }
    let mut figures = Vec::new();
    for (columns, said) in [(&COLUMNS[..], "all columns"), (&["l_quantity", "l_comment"][..], "three columns")] {
        let twice = twice(&files, columns).await.context(|| said)?;
        let what = format!("{TABLE} by SQL ({said}), then S3, then Python, on four workers: bytes fetched twice");
        figures.push(Figure::alone(what, twice as f64 / 1e6, "MB", Bar::ValueAtMost(0.0)));
    }
    Ok(figures)
}

/// Bytes of the table that shared storage gave beyond one time each.
async fn twice(files: &[(String, Bytes)], columns: &[&str]) -> Result<u64> {
    let mut s3 = S3::start(None, std::time::Duration::ZERO)?;
    for (key, bytes) in files {
        s3.put(key, bytes.clone()).await?;
    }
    let mut cluster = LocalCluster::start(&Shape::default()).await?;
    mount(&cluster.client, s3.endpoint(), None).await?;
    s3.take_counters()?;
    let table = format!("'{}/{TABLE}/*.parquet'", mounted());
    let most: Vec<String> = columns.iter().map(|column| format!("max({column})")).collect();
    let sql = format!("select l_returnflag, {} from {table} group by l_returnflag", most.join(", "));

    cluster.engine(0, 8).await?.execute(&sql).await?.collect().await?;
    if cluster.control()?.jobs().await?.is_empty() {
        return Err(Error::internal("the query did not run on the cluster"));
    }
    by_s3(&mut cluster, files).await?;
    let client = cluster.node.client().await?;
    Engine::over_client(client.clone(), EngineSettings::default()).execute(&sql).await?.collect().await?;
    for (key, _) in files {
        in_pieces(&client, &client.open(&path(key)?).await?.version).await?;
    }

    let (fetched, size) = (s3.take_counters()?.bytes_out, files.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    drop(client);
    cluster.stop().await;
    fetched.checked_sub(size).ok_or_else(|| Error::internal(format!("{fetched} bytes were fetched of {size} that were read")))
}

/// Each object whole, by one request.
async fn by_s3(cluster: &mut LocalCluster, files: &[(String, Bytes)]) -> Result<()> {
    let env = |name: &str| std::env::var(name).map_err(|_| Error::internal(format!("{name} is not set")));
    let mut settings = GatewaySettings::new("127.0.0.1:0");
    settings.keys.push(AccessRule::new(env("AWS_ACCESS_KEY_ID")?, env("AWS_SECRET_ACCESS_KEY")?));
    let client = cluster.node.client().await?;
    let address = cluster.node.serve_s3(client, settings).await?.address();
    let options = MountOptions { endpoint: Some(format!("http://{address}")), ..MountOptions::default() };
    let bucket = Mount { id: MountId(u64::MAX), name: "gateway".parse()?, url: format!("s3://{MOUNT}"), options };
    let storage = Storage::open(&bucket, StorageSettings::default())?;
    for (key, bytes) in files {
        let range = GetRange::Bounded(0..bytes.len() as u64);
        let mut body = storage.get(Get { key: &Key::new(key.as_str())?, range, if_match: None, class: Class::Demand }).await?;
        let mut len = 0;
        while let Some(chunk) = body.next().await {
            len += chunk?.len();
        }
        if len != bytes.len() {
            return Err(Error::internal(format!("the gateway gave {len} bytes of {} of {key}", bytes.len())));
        }
    }
    Ok(())
}

/// An object piece by piece, as the Python package reads and copies one.
async fn in_pieces(client: &Client, version: &ObjectVersion) -> Result<()> {
    let (operation, whole) = (client.operation(), 0..version.size);
    let _ahead = client.prefetch_near(operation, vec![(version.clone(), vec![whole])], 2 * PIECE_BYTES);
    let mut at = 0;
    while at < version.size {
        let end = version.size.min(at + PIECE_BYTES);
        client.read(operation, version, at..end).await?;
        at = end;
    }
    Ok(())
}
