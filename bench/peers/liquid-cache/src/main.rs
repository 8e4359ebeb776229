//! LiquidCache as a peer, in a process of its own: `forebay-peer-liquid-cache TABLES CACHE BYTES`. TABLES has a folder of Parquet files a table,
//! CACHE is where it may keep files, BYTES is the memory that it may keep columns in.
//!
//! It says a line of JSON when it is ready. Each line of its input is a statement, as a JSON string; what it took is a line of its output. It
//! ends with its input.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use liquid_cache_datafusion_local::LiquidCacheLocalBuilder;
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tables, cache, bytes] = arguments.as_slice() else {
        return Err("usage: forebay-peer-liquid-cache TABLES CACHE BYTES".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(Path::new(tables), Path::new(cache), bytes.parse()?))
}

async fn serve(tables: &Path, cache: &Path, bytes: usize) -> Result<()> {
    let builder = LiquidCacheLocalBuilder::new().with_max_memory_bytes(bytes).with_cache_dir(cache.to_path_buf());
    let (context, _cache) = builder.build(SessionConfig::new()).await?;
    for entry in std::fs::read_dir(tables)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            let (name, folder) = (entry.file_name().to_string_lossy().into_owned(), format!("{}/", entry.path().display()));
            context.register_parquet(name.as_str(), folder, ParquetReadOptions::default()).await?;
        }
    }
    say(&json!({ "ready": true }))?;
    for line in std::io::stdin().lock().lines() {
        let sql: String = serde_json::from_str(&line?)?;
        let answer = match run(&context, &sql).await {
            Ok((rows, ms)) => json!({ "rows": rows, "ms": ms }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        say(&answer)?;
    }
    Ok(())
}

/// Rows of a statement's answer, and milliseconds until its last one.
async fn run(context: &SessionContext, sql: &str) -> datafusion::error::Result<(usize, f64)> {
    let began = Instant::now();
    let batches = context.sql(sql).await?.collect().await?;
    let ms = began.elapsed().as_secs_f64() * 1e3;
    Ok((batches.iter().map(|batch| batch.num_rows()).sum(), ms))
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
