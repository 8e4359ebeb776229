//! Benchmarks of the SQL engine over Forebay: TPC-H at scale factor 1.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_sql::arrow::array::RecordBatch;
use forebay_sql::{Engine, EngineSettings};
use forebay_tpch::{QUERIES, Tables, Tpch, check_answer, prepare, same_answer};
use forebay_types::{Error, Result, ResultExt};
use futures::{TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use url::Url;

use crate::recorder::Recorder;
use crate::rig::{Rig, RigSettings, Worker, mounted};
use forebay_bench_harness::{Bar, Figure, median};

const SCALE: f64 = 1.0;

/// The data, made once and kept beside the build.
pub async fn data() -> Result<Tables> {
    prepare(&cache()?, SCALE, |_, _| ()).await
}

/// The folder beside the build in which data is kept.
pub fn cache() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = target.join("forebay-bench");
    std::fs::create_dir_all(&folder).context(|| folder.display())?;
    Ok(folder)
}

/// A rig with the data in its bucket.
async fn rig(tables: &Tables) -> Result<Rig> {
    let mut rig = Rig::start(RigSettings { dram_bytes: 2 << 30, ..RigSettings::default() }).await?;
    upload(&mut rig, &tables.folder).await?;
    rig.s3.take_counters()?;
    Ok(rig)
}

/// Puts all files below `folder` into the rig's bucket.
pub async fn upload(rig: &mut Rig, folder: &Path) -> Result<()> {
    for table in std::fs::read_dir(folder)? {
        let table = table?;
        if !table.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(table.path())? {
            let file = file?;
            let key = format!("{}/{}", table.file_name().to_string_lossy(), file.file_name().to_string_lossy());
            rig.s3.put(&key, Bytes::from(std::fs::read(file.path())?)).await?;
        }
    }
    Ok(())
}

async fn forebay(rig: &Rig) -> Result<Tpch> {
    Tpch::new(Engine::over_client(rig.client.clone(), EngineSettings::default()), &mounted()).await
}

async fn local(tables: &Tables) -> Result<Tpch> {
    let engine = Engine::over_object_store(Vec::new(), EngineSettings::default());
    Tpch::new(engine, &format!("file://{}", std::path::absolute(&tables.folder)?.display())).await
}

/// Seconds of all 22 queries, one after the other.
async fn all(tpch: &Tpch) -> Result<f64> {
    let start = Instant::now();
    for (at, query) in QUERIES.iter().enumerate() {
        tpch.run(query).await.context(|| format!("query {}", at + 1))?;
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Of each of the 22 queries.
pub type Answers = Vec<Vec<RecordBatch>>;

/// What an engine answers that reads the same files where they lie.
pub async fn local_answers(tables: &Tables) -> Result<Answers> {
    let local = local(tables).await?;
    let mut answers = Vec::new();
    for (at, query) in QUERIES.iter().enumerate() {
        answers.push(local.run(query).await.context(|| format!("query {}", at + 1))?);
    }
    Ok(answers)
}

/// How many of the 22 answers are the published ones, as exactly as those are known, and value by value those of the local engine.
pub async fn right(tpch: &Tpch, expected: &Answers) -> Result<f64> {
    let mut right = 0.0;
    for (at, query) in QUERIES.iter().enumerate() {
        let answer = tpch.run(query).await.context(|| format!("query {}", at + 1))?;
        match check_answer(at + 1, &answer).and_then(|()| same_answer(at + 1, &expected[at], &answer)) {
            Ok(()) => right += 1.0,
            Err(wrong) => tracing::warn!(query = at + 1, wrong, "answer is not the one that was expected"),
        }
    }
    Ok(right)
}

/// Answers cold, warm, and with one of two workers killed while the queries run.
pub async fn tpch() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let expected = local_answers(&tables).await?;
    let rig = rig(&tables).await?;
    let engine = forebay(&rig).await?;
    let mut figures = Vec::new();
    let mut figure = |what: &str, right: f64| {
        figures.push(
            Figure::alone(format!("TPC-H SF1, {what}: right answers"), right, "of 22", Bar::RatioAtLeast(1.0))
                .beside("published answers, and those of the local engine exactly", 22.0),
        );
    };
    figure("cold", right(&engine, &expected).await?);
    figure("warm", right(&engine, &expected).await?);

    // A second worker joins, takes its half of the segments, and dies between one query's first bytes and its last.
    let second = Worker::start(rig.node.address(), 2 << 30)?;
    rig.client.refresh_view().await?;
    let killer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        drop(second);
    });
    figure("a worker killed", right(&engine, &expected).await?);
    killer.await.map_err(|error| Error::internal(error.to_string()))?;
    Ok(figures)
}

/// Warm against the same files local, seven times in turns.
pub async fn warm() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let rig = rig(&tables).await?;
    let (forebay, local) = (forebay(&rig).await?, local(&tables).await?);
    all(&forebay).await?;
    all(&local).await?;
    let (mut ours, mut files) = (Vec::new(), Vec::new());
    for round in 0..7 {
        if round % 2 == 0 {
            ours.push(all(&forebay).await?);
            files.push(all(&local).await?);
        } else {
            files.push(all(&local).await?);
            ours.push(all(&forebay).await?);
        }
    }
    Ok(vec![
        Figure::alone("TPC-H SF1, 22 queries, warm", median(ours), "s", Bar::RatioAtMost(1.05))
            .beside("the same files local", median(files)),
    ])
}

/// Cold against copying everything first, on a link where the copy takes as long as the queries. Both make their engine, which lists
/// and reads footers, within the time.
pub async fn ingest() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let local = local(&tables).await?;
    all(&local).await?;
    let compute_secs = all(&local).await?;
    let link = (tables.bytes as f64 / compute_secs) as u64;
    let (mut cold, mut ingest) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let mut rig = rig(&tables).await?;
        rig.s3.set_link(link, Duration::from_millis(10))?;
        let start = Instant::now();
        all(&forebay(&rig).await?).await?;
        cold.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let folder = tempfile::tempdir()?;
        copy(&rig, &tables.folder, folder.path()).await?;
        let copied = Tables { folder: folder.path().to_path_buf(), ..tables.clone() };
        all(&self::local(&copied).await?).await?;
        ingest.push(start.elapsed().as_secs_f64());
    }
    Ok(vec![
        Figure::alone(
            format!("TPC-H SF1 cold over {:.0} Mbit/s, where ingesting takes as long as computing", link as f64 * 8e-6),
            median(cold),
            "s",
            Bar::RatioAtMost(0.7),
        )
        .beside("copy everything, then run", median(ingest))
        // The transfer of all bytes takes as long.
        .within(compute_secs),
    ])
}

/// Copies the bucket into `to`, sixteen requests at a time; `from` has the same files and gives their names and sizes.
async fn copy(rig: &Rig, from: &Path, to: &Path) -> Result<()> {
    use forebay_shared_storage::{Class, Get, GetRange};
    use std::os::unix::fs::FileExt;
    const PIECE: u64 = 8 << 20;
    let storage = rig.s3.storage()?;
    let mut pieces = Vec::new();
    for table in std::fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()? {
        if !table.file_type()?.is_dir() {
            continue;
        }
        std::fs::create_dir_all(to.join(table.file_name()))?;
        for file in std::fs::read_dir(table.path())?.collect::<Result<Vec<_>, _>>()? {
            let key = format!("{}/{}", table.file_name().to_string_lossy(), file.file_name().to_string_lossy());
            let copy = Arc::new(std::fs::File::create(to.join(&key))?);
            let size = file.metadata()?.len();
            let key = forebay_types::Key::new(key)?;
            pieces.extend((0..size).step_by(PIECE as usize).map(|at| (key.clone(), Arc::clone(&copy), at..size.min(at + PIECE))));
        }
    }
    stream::iter(pieces.into_iter().map(Ok))
        .try_for_each_concurrent(16, |(key, file, range)| {
            let storage = &storage;
            async move {
                let get = Get { key: &key, range: GetRange::Bounded(range.clone()), if_match: None, class: Class::Demand };
                let (mut body, mut at) = (storage.get(get).await?, range.start);
                while let Some(chunk) = body.next().await {
                    let chunk = chunk?;
                    file.write_all_at(&chunk, at)?;
                    at += chunk.len() as u64;
                }
                Ok::<_, Error>(())
            }
        })
        .await
}

/// Bytes that a cold run fetches against the union of what the engine asks of the store without Forebay.
pub async fn amplification() -> Result<Vec<Figure>> {
    let tables = data().await?;
    let root = std::path::absolute(&tables.folder)?;
    let files = LocalFileSystem::new_with_prefix(&root).map_err(|error| Error::internal(error.to_string()))?;
    let recorder = Arc::new(Recorder::new(Arc::new(files)));
    let url = Url::parse("s3://recorded").map_err(|error| Error::internal(error.to_string()))?;
    let stores = vec![(url, Arc::clone(&recorder) as Arc<dyn ObjectStore>)];
    all(&Tpch::new(Engine::over_object_store(stores, EngineSettings::default()), "s3://recorded").await?).await?;
    let asked = recorder.union_bytes();

    let mut rig = rig(&tables).await?;
    let engine = forebay(&rig).await?;
    all(&engine).await?;
    let cold = rig.s3.take_counters()?;
    all(&engine).await?;
    let warm = rig.s3.take_counters()?;
    Ok(vec![
        Figure::alone("TPC-H SF1 cold: bytes fetched", cold.bytes_out as f64 / 1e6, "MB", Bar::RatioAtMost(1.1))
            .beside("union of ranges the engine asks for", asked as f64 / 1e6),
        Figure::alone("TPC-H SF1 again: bytes fetched", warm.bytes_out as f64 / 1e6, "MB", Bar::RatioAtMost(0.0))
            .beside("cold", cold.bytes_out as f64 / 1e6),
    ])
}
