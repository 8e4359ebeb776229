//! Tantivy as a peer, in a process of its own: `forebay-peer-tantivy RECORDS FOLDER [ATTRIBUTE]`. RECORDS is a file of lines of JSON, the names
//! of the attributes and then a key and its values a line; FOLDER is where the index goes; ATTRIBUTE is indexed by trigrams as well.
//!
//! It says a line of JSON when it is ready, with the bytes of the index. `{"learn": {"kind": .., "questions": [..]}}` is answered with the
//! keys of each question, ascending; `{"run": {"kind": .., "cpu_secs": ..}}` asks the same questions again and again, as often as all of
//! them together, and is answered with how many it did a second of the process' CPU time, and the middle time of one. It ends with its input.

mod grams;
mod index;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::index::{Index, Question};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// What is asked of the process.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Learn { kind: String, questions: Vec<Question> },
    Run { kind: String, cpu_secs: f64 },
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (records, folder, grams) = match arguments.as_slice() {
        [records, folder] => (records, folder, None),
        [records, folder, attribute] => (records, folder, Some(attribute.as_str())),
        _ => return Err("usage: forebay-peer-tantivy RECORDS FOLDER [ATTRIBUTE]".into()),
    };
    let index = Index::build(Path::new(records), Path::new(folder), grams)?;
    let mut learned = HashMap::new();
    say(&json!({ "bytes": index.bytes() }))?;
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&index, &mut learned, &line?);
        say(&answer.unwrap_or_else(|error| json!({ "error": error.to_string() })))?;
    }
    Ok(())
}

fn answer(index: &Index, learned: &mut HashMap<String, Vec<Question>>, line: &str) -> Result<Value> {
    match serde_json::from_str(line)? {
        Line::Learn { kind, questions } => {
            let mut hits = Vec::with_capacity(questions.len());
            for question in &questions {
                let mut keys = index.search(question)?;
                keys.sort_unstable();
                hits.push(keys);
            }
            learned.insert(kind, questions);
            Ok(json!({ "hits": hits }))
        }
        Line::Run { kind, cpu_secs } => match learned.get(&kind) {
            Some(questions) if !questions.is_empty() => run(index, questions, cpu_secs),
            _ => Err(format!("no questions of {kind} are known").into()),
        },
    }
}

/// Asks all questions until so much CPU time has gone.
fn run(index: &Index, questions: &[Question], cpu_secs: f64) -> Result<Value> {
    let (clock, mut took) = (ProcessTime::now(), Vec::new());
    loop {
        for question in questions {
            let began = Instant::now();
            std::hint::black_box(index.search(question)?);
            took.push(began.elapsed());
        }
        let cpu = clock.elapsed().as_secs_f64();
        if cpu >= cpu_secs {
            let rate = took.len() as f64 / cpu;
            took.sort_unstable();
            return Ok(json!({ "rate": rate, "p50_ms": took[took.len() / 2].as_secs_f64() * 1e3 }));
        }
    }
}

fn say(line: &Value) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}
