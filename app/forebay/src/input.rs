//! What commands read. Who waits for more of it can be interrupted: a read that blocks has a thread of its own.

use std::fs::File;
use std::io::{BufWriter, Stdout, Write};
use std::os::fd::AsFd;
use std::path::Path;

use forebay_types::{Error, ResultExt, format_bytes};
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

    /// The next one; none at the end. `Invalid` where it is too long.
    pub(crate) async fn next(&mut self) -> Outcome<Option<&[u8]>> {
        loop {
            self.line.clear();
            let most = self.line_bytes_max;
            let read = (&mut self.input).take(most + 1).read_until(b'\n', &mut self.line).await;
            if read.context(|| "the operations can't be read")? == 0 {
                return Ok(None);
            }
            // Its rest would be taken for another one.
            if self.line.len() as u64 > most {
                return Err(Error::invalid(format!("an operation is longer than {}: split it", format_bytes(most))).into());
            }
            if !self.line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(&self.line[..]));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn operations_come_line_by_line_and_none_is_cut() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("operations");
        std::fs::write(&file, "{\"a\":1}\n\n \n{}\n{\"a\":123}\n{}").unwrap();
        let mut operations = Operations::open(Some(&file), 9).await.unwrap();
        assert_eq!(operations.next().await.unwrap().unwrap(), b"{\"a\":1}\n");
        assert_eq!(operations.next().await.unwrap().unwrap(), b"{}\n");
        let failure = operations.next().await.unwrap_err();
        assert!(matches!(failure, Failure::Failed(error) if error.message().contains("longer than 9")));
        let mut last = Operations::open(Some(&file), 64).await.unwrap();
        for _ in 0..3 {
            last.next().await.unwrap().unwrap();
        }
        assert_eq!(last.next().await.unwrap().unwrap(), b"{}");
        assert!(last.next().await.unwrap().is_none());
    }
}
