//! `forebay shard batch`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin};

use forebay_shard_store::Batch;
use forebay_shards::Shards;
use forebay_types::ResultExt;

use super::source::Source;
use crate::cli::ShardBatchArgs;
use crate::config::Config;
use crate::exit::{Failure, Outcome};

/// No operation is longer.
const LINE_BYTES_MAX: u64 = 64 << 20;

enum Asked {
    File(Box<Batch>),
    Served(Box<Shards>),
}

/// Answers operations line by line, each as soon as it is done: a program may wait for an answer before it asks again.
pub(super) async fn run(config: &Config, args: &ShardBatchArgs) -> Outcome {
    let mut asked = match Source::open(config, &args.shard).await? {
        Source::File(_) => Asked::File(Box::new(Batch::open(&args.shard)?)),
        Source::Served(shards) => Asked::Served(shards),
    };
    let mut input: Box<dyn BufRead> = match &args.operations {
        Some(path) => Box::new(BufReader::new(File::open(path).context(|| path.display())?)),
        None => Box::new(BufReader::new(stdin().lock())),
    };
    let mut output = std::io::BufWriter::new(std::io::stdout());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = std::io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if read.context(|| "the operations can't be read")? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = match &mut asked {
            Asked::File(batch) => batch.answer(&line),
            Asked::Served(shards) => shards.answer(&line).await,
        };
        serde_json::to_writer(&mut output, &answer).map_err(|error| Failure::of_stdout(error.into()))?;
        output.write_all(b"\n").map_err(Failure::of_stdout)?;
        // What was answered must not wait for input that has not come yet.
        output.flush().map_err(Failure::of_stdout)?;
    }
    if let Asked::File(batch) = asked {
        batch.close()?;
    }
    Ok(())
}
