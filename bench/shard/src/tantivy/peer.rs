//! The program that has the index (`bench/peers/tantivy`): the records that it takes, and what it is asked.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_bench_harness::{Served, cache};
use forebay_types::{Error, Result};
use serde_json::{Value, json};

use super::Took;
use super::questions::{Kind, Question};
use crate::workload::Records;

/// The process, which ends with this.
pub(super) struct Peer {
    served: Served,
    bytes: u64,
}

impl Peer {
    /// Builds the index in a folder; with trigrams of the attribute that is named.
    pub(super) fn start(program: &Path, records: &Path, folder: &Path, grams: Option<&str>) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(records).arg(folder).args(grams);
        let (served, hello) = Served::of(command)?;
        let bytes = parse(&hello)?["bytes"].as_u64().ok_or_else(|| strange(&hello))?;
        Ok(Self { served, bytes })
    }

    /// What its index is stored in.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells it the questions of a kind; gives the keys of each, ascending.
    pub(super) fn learn(&mut self, kind: Kind, questions: &[Question]) -> Result<Vec<Vec<u64>>> {
        let questions: Vec<&Value> = questions.iter().map(|question| &question.json).collect();
        let mut answer = self.ask(&json!({ "learn": { "kind": kind.name(), "questions": questions } }))?;
        serde_json::from_value(answer["hits"].take()).map_err(|error| Error::internal(format!("the peer's hits: {error}")))
    }

    /// It asks itself all of these questions, for so long at least.
    pub(super) fn run(&mut self, kind: Kind, cpu_secs: f64) -> Result<Took> {
        let answer = self.ask(&json!({ "run": { "kind": kind.name(), "cpu_secs": cpu_secs } }))?;
        let number = |name: &str| answer[name].as_f64().ok_or_else(|| strange(&answer.to_string()));
        Ok(Took { rate: number("rate")?, p50_ms: number("p50_ms")? })
    }

    fn ask(&mut self, line: &Value) -> Result<Value> {
        let answer = parse(&self.served.ask(&line.to_string())?)?;
        match answer["error"].as_str() {
            Some(error) => Err(Error::internal(format!("the peer: {error}"))),
            None => Ok(answer),
        }
    }
}

/// What `make peers` has built.
pub(super) fn program() -> Result<PathBuf> {
    let program = cache().join("tantivy/release/forebay-peer-tantivy");
    match program.exists() {
        true => Ok(program),
        false => Err(Error::not_found(format!("{} is not there: make peers builds it", program.display()))),
    }
}

/// Writes the records as it reads them: the names of the attributes, then a key and its values a line.
pub(super) fn write(records: &Records, path: &Path) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{}", json!(records.attributes))?;
    for (row, key) in records.keys.iter().enumerate() {
        let text = |place| std::str::from_utf8(records.value(row, place)).expect("all of it is text");
        let values: Vec<&str> = (0..records.attributes.len()).map(text).collect();
        writeln!(file, "{}", json!([key, values]))?;
    }
    Ok(file.flush()?)
}

fn parse(line: &str) -> Result<Value> {
    serde_json::from_str(line).map_err(|_| strange(line))
}

fn strange(line: &str) -> Error {
    Error::internal(format!("the peer says {line}"))
}
