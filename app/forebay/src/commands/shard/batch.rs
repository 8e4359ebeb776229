use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin};

use forebay_shard_store::Batch;
use forebay_types::ResultExt;

use crate::cli::ShardBatchArgs;
use crate::exit::{Failure, Outcome};

/// No operation is longer.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Answers operations line by line, each as soon as it is done: a program may wait for an answer before it asks again.
pub(super) fn run(args: &ShardBatchArgs) -> Outcome {
    let mut batch = Batch::open(&args.shard)?;
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
        let answer = batch.answer(&line);
        serde_json::to_writer(&mut output, &answer).map_err(|error| Failure::of_stdout(error.into()))?;
        output.write_all(b"\n").map_err(Failure::of_stdout)?;
        // What was answered must not wait for input that has not come yet.
        output.flush().map_err(Failure::of_stdout)?;
    }
    batch.close()?;
    Ok(())
}
