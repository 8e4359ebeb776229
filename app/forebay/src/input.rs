//! What commands read. Who waits for more of it can be interrupted: a read that blocks has a thread of its own.

use std::fs::File;
use std::io::{BufWriter, Stdout, Write};
use std::os::fd::AsFd;
use std::path::Path;

use forebay_types::ResultExt;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::exit::{Failure, Outcome};

/// Bytes of operations that are read at once.
const AHEAD_BYTES: usize = 64 << 10;

/// A file, or the standard input.
pub(crate) async fn open(file: Option<&Path>) -> Outcome<tokio::fs::File> {
    let Some(file) = file else { return standard_input() };
    Ok(tokio::fs::File::open(file).await.context(|| file.display())?)
}

/// The standard input as a file: what it is (a pipe, a terminal, a file) reads the same.
pub(crate) fn standard_input() -> Outcome<tokio::fs::File> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().context(|| "the standard input")?;
    Ok(tokio::fs::File::from_std(File::from(input)))
}

/// Operations of a program, a line each, which are answered line by line.
pub(crate) struct Operations {
    input: BufReader<tokio::fs::File>,
    line: Vec<u8>,
    line_bytes_max: u64,
    output: BufWriter<Stdout>,
}

impl Operations {
    /// Those of a file, or of the standard input; none is longer than so many bytes.
    pub(crate) async fn open(file: Option<&Path>, line_bytes_max: u64) -> Outcome<Self> {
        let input = BufReader::with_capacity(AHEAD_BYTES, open(file).await?);
        Ok(Self { input, line: Vec::new(), line_bytes_max, output: BufWriter::new(std::io::stdout()) })
    }

    /// The next one; none at the end.
    pub(crate) async fn next(&mut self) -> Outcome<Option<&[u8]>> {
        loop {
            self.line.clear();
            let read = (&mut self.input).take(self.line_bytes_max).read_until(b'\n', &mut self.line).await;
            if read.context(|| "the operations can't be read")? == 0 {
                return Ok(None);
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(&self.line));
            }
        }
    }

    /// Answers it at once: a program may wait for that before it asks again.
    pub(crate) fn answer(&mut self, answer: &impl Serialize) -> Outcome {
        serde_json::to_writer(&mut self.output, answer).map_err(|error| Failure::of_stdout(error.into()))?;
        self.output.write_all(b"\n").map_err(Failure::of_stdout)?;
        self.output.flush().map_err(Failure::of_stdout)
    }
}
