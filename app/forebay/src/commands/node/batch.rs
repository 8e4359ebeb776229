//! `forebay node batch`: a line of JSON in, a line out, so that programs of any language use temporary nodes.

use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin};

use forebay_client::Nodes;
use forebay_types::ResultExt;

use crate::cli::NodeBatchArgs;
use crate::exit::{Failure, Outcome};

/// No operation is longer.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// Answers operations line by line, each as soon as it is done: a program may wait for an answer before it asks again.
pub(super) async fn run(nodes: &Nodes, args: NodeBatchArgs) -> Outcome {
    let mut input: Box<dyn BufRead> = match &args.operations {
        Some(path) => Box::new(BufReader::new(File::open(path).context(|| path.display())?)),
        None => Box::new(BufReader::new(stdin())),
    };
    let mut output = std::io::BufWriter::new(std::io::stdout());
    let mut line = Vec::new();
    loop {
        line.clear();
        // Nothing else is to be done meanwhile: the connections have threads of their own.
        let read = tokio::task::block_in_place(|| std::io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line));
        if read.context(|| "the operations can't be read")? == 0 {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = nodes.answer_json(&line).await;
        serde_json::to_writer(&mut output, &answer).map_err(|error| Failure::of_stdout(error.into()))?;
        output.write_all(b"\n").map_err(Failure::of_stdout)?;
        output.flush().map_err(Failure::of_stdout)?;
    }
}
