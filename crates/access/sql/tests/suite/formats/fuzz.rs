//! Files that mean harm, of each format that is read: they are read or refused, in little time and memory, and where their decoder
//! panics, the statement ends and nothing else. The files to begin with are of other writers (`tests/corpus.py`) and of our own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::arrow::array::RecordBatch;
use forebay_fuzz::{run, shape};
use forebay_sql::{Engine, EngineMemory, EngineSettings, QueryMemorySettings};
use forebay_types::{ErrorKind, Result};

use super::{pages, written};
use crate::support::{Lake, settings};

/// Memory of a statement.
const QUERY_BYTES: u64 = 256 << 20;

/// Each file of the corpus: its name, what that ends with, and its bytes.
fn corpus() -> Vec<(String, String, Vec<u8>)> {
    let folder = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/corpus");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.to_string(), name[name.find('.').unwrap()..].to_string(), std::fs::read(&path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_other_writers_are_read() {
    let lake = Lake::new();
    for (at, (name, ending, bytes)) in corpus().into_iter().enumerate() {
        lake.put(&format!("{at}/x{ending}"), bytes).await;
        let found = lake
            .rows(&format!(
                "select count(*), cast(sum(n) as bigint), round(sum(x), 6), sum(case when flag then 1 else 0 end) from '/lake/{at}/*'"
            ))
            .await;
        assert_eq!(found, if name.contains("empty") { "0" } else { "24 246000738 92.0 9" }, "{name}");
    }
}

#[test]
fn fuzz_files_of_all_formats() {
    let memory = QueryMemorySettings { memory_bytes: Some(QUERY_BYTES), ..Default::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let lake = Lake::with(EngineSettings { memory: EngineMemory::Own(memory), ..settings() });
    let corpus = corpus().into_iter().map(|(_, ending, bytes)| (ending, bytes)).chain(written::files());
    let corpus: Vec<_> = corpus.chain([(".parquet".to_string(), pages::dictionary_of_2_30_values())]).collect();
    let mut endings: Vec<String> = corpus.iter().map(|(ending, _)| ending.clone()).collect();
    endings.sort();
    endings.dedup();
    // The first byte says which format the rest is read as.
    let which = |ending: &String| endings.iter().position(|known| known == ending).unwrap() as u8;
    let seeds = corpus.iter().map(|(ending, bytes)| [&[which(ending)], &bytes[..]].concat());
    // What a decoder's panic says is in the error too.
    let (told, reading) = (std::panic::take_hook(), Arc::new(AtomicBool::default()));
    let quiet = Arc::clone(&reading);
    std::panic::set_hook(Box::new(move |panic| {
        if !quiet.load(Relaxed) {
            told(panic)
        }
    }));
    run(
        "files of all formats",
        seeds.collect(),
        |_| (),
        |input| {
            let Some((&which, file)) = input.split_first() else { return String::new() };
            let ending = &endings[usize::from(which) % endings.len()];
            let read = runtime.block_on(async {
                lake.put(&format!("x{ending}"), file.to_vec()).await;
                reading.store(true, Relaxed);
                let read = read(&lake.engine, &format!("select * from '/lake/x{ending}'")).await;
                reading.store(false, Relaxed);
                read
            });
            match read {
                Ok(batches) => {
                    let columns = batches.first().map_or(0, |batch| batch.num_columns());
                    format!("{ending} {} batches of {columns} columns", batches.len().min(16))
                }
                Err(error) => {
                    let gave_up = error.kind() == ErrorKind::Internal && error.message().contains("gave up");
                    let refused = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Retry);
                    assert!(refused || gave_up, "{error:?}");
                    format!("{ending} {:?} {}", error.kind(), shape(error.message()))
                }
            }
        },
    );
}

async fn read(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>> {
    engine.execute(sql).await?.collect().await
}
