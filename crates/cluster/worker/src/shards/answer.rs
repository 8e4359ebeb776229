//! Questions and answers: a line of JSON each, or records in the bytes that shards keep.

use bytes::Bytes;
use forebay_runtime::time::Instant;
use forebay_shard::{Key, key_hash};
use forebay_shard_store::{Answered, Columns, Literal, Store, Wanted, read_keys};
use forebay_types::{Error, Result};

/// Questions of one call at most.
const QUESTIONS_MAX: usize = 10_000;
/// Bytes of all answers to one call at most: what one frame carries, with room to spare.
const ANSWERS_BYTES_MAX: usize = 32 << 20;
/// Hits that one search may ask for: a few MiB of keys. Who wants more goes on after the last one.
const HITS_MAX: u64 = 100_000;

/// What a call asks, as it came.
#[derive(Debug)]
pub(crate) enum Asking {
    /// A JSON object a line.
    Lines(Bytes),
    /// The records of some keys.
    Records {
        /// As `read_keys` has them.
        keys: Bytes,
        /// The places of the attributes that are wanted; empty for all.
        attributes: Vec<u16>,
        /// Their versions are wanted too.
        versioned: bool,
    },
}

/// Questions of one call.
#[derive(Debug)]
pub(super) struct Questions {
    pub(super) what: What,
    /// None of them is a search.
    pub(super) are_gets: bool,
}

/// What is asked.
#[derive(Debug)]
pub(super) enum What {
    Lines(Vec<Bytes>),
    Records(Vec<Key>, Wanted),
}

impl Asking {
    /// The questions, of a dataset with these columns. `Invalid` when they are too many, or one of them asks for too much.
    pub(super) fn questions(self, columns: &Columns) -> Result<Questions> {
        match self {
            Self::Lines(payload) => split(&payload),
            Self::Records { keys, attributes, versioned } => {
                let places: Vec<usize> = attributes.into_iter().map(usize::from).collect();
                let wanted = Wanted::new(columns, (!places.is_empty()).then_some(places), versioned)?;
                let keys = read_keys(&keys, columns.key_type(), QUESTIONS_MAX)?;
                Ok(Questions { what: What::Records(keys, wanted), are_gets: true })
            }
        }
    }
}

impl Questions {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match &self.what {
            What::Lines(lines) => lines.len(),
            What::Records(keys, _) => keys.len(),
        }
    }

    /// Steps that the answers are estimated to take, of searches by their backward searches.
    pub(super) fn steps(&self, store: &Store) -> u64 {
        match &self.what {
            What::Lines(lines) => lines.iter().fold(0, |all: u64, line| all.saturating_add(Answered::steps(store, line))),
            What::Records(keys, _) => keys.len() as u64,
        }
    }

    /// Hashes of the keys whose records are asked for.
    pub(super) fn records(&self, columns: &Columns) -> Vec<u64> {
        #[derive(serde::Deserialize)]
        struct Shape {
            get: Option<serde_json::Value>,
        }
        let key = |line: &Bytes| {
            let shape: Shape = serde_json::from_slice(line).ok()?;
            columns.key_of(&Literal::from_json(&shape.get?).ok()?).ok()
        };
        match &self.what {
            What::Lines(lines) => lines.iter().filter_map(key).map(|key| key_hash(&key)).collect(),
            What::Records(keys, _) => keys.iter().map(key_hash).collect(),
        }
    }
}

/// The questions in lines.
fn split(payload: &Bytes) -> Result<Questions> {
    let lines: Vec<Bytes> = payload
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
        .map(|line| payload.slice_ref(line))
        .take(QUESTIONS_MAX + 1)
        .collect();
    if lines.len() > QUESTIONS_MAX {
        return Err(Error::invalid(format!("a call has {QUESTIONS_MAX} questions at most: send several")));
    }
    let mut are_gets = true;
    for line in &lines {
        are_gets &= check(line)?;
    }
    Ok(Questions { what: What::Lines(lines), are_gets })
}

/// Whether a question is one for a record; of a search, whether it says how many hits it wants. What is no question is
/// answered so, by itself.
fn check(line: &[u8]) -> Result<bool> {
    #[derive(serde::Deserialize)]
    struct Shape {
        get: Option<serde::de::IgnoredAny>,
        search: Option<serde::de::IgnoredAny>,
        limit: Option<u64>,
    }
    let Ok(shape) = serde_json::from_slice::<Shape>(line) else { return Ok(true) };
    if shape.search.is_some() && shape.limit.is_none_or(|limit| limit > HITS_MAX) {
        return Err(Error::invalid(format!(
            "a search of a served shard has a \"limit\" of {HITS_MAX} at most: go on with \"after\" and the last key"
        )));
    }
    Ok(shape.get.is_some())
}

/// Answers all of them, or none: `Retry` when `deadline` comes between two.
pub(super) fn answer_all(store: &Store, log_from: u64, questions: &Questions, deadline: Instant) -> Result<Vec<u8>> {
    let mut answers = Answers::default();
    let in_time = || match forebay_runtime::time::instant() > deadline {
        true => Err(Error::retry("the questions took longer than the asker waits: ask fewer at once")),
        false => Ok(()),
    };
    match &questions.what {
        What::Lines(lines) => {
            for line in lines {
                in_time()?;
                answers.push(&Answered::to(store, log_from, line))?;
            }
        }
        What::Records(keys, wanted) => {
            for key in keys {
                in_time()?;
                answers.push_record(|out| store.send_record(log_from, key, wanted, out))?;
            }
        }
    }
    Ok(answers.into_bytes())
}

/// Answers of one call, one after the other.
#[derive(Default)]
pub(super) struct Answers(Vec<u8>);

impl Answers {
    /// Adds a line; `Invalid` when they get too large for one call.
    pub(super) fn push(&mut self, answer: &Answered) -> Result<()> {
        serde_json::to_writer(&mut self.0, answer)
            .map_err(|error| Error::internal(format!("an answer can't be written: {error}")))?;
        self.0.push(b'\n');
        self.check()
    }

    /// The same for a record, which `put` appends.
    pub(super) fn push_record(&mut self, put: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        put(&mut self.0)?;
        self.check()
    }

    fn check(&self) -> Result<()> {
        match self.0.len() > ANSWERS_BYTES_MAX {
            true => Err(Error::invalid(format!(
                "the answers have more than {} MiB: ask fewer at once, or for fewer columns",
                ANSWERS_BYTES_MAX >> 20
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions(text: &str) -> Result<Questions> {
        split(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn gets_are_told_from_what_takes_longer() {
        assert!(questions("{\"get\": 1}\n\n{\"get\": 2}\n").unwrap().are_gets);
        assert!(!questions("{\"get\": 1}\n{\"count\": null}\n").unwrap().are_gets);
        assert_eq!(questions("").unwrap().len(), 0);
        assert!(questions("no question").unwrap().are_gets, "answered at once that it is none");
    }

    #[test]
    fn searches_without_an_end_and_too_many_questions_are_refused() {
        assert!(questions("{\"search\": {}}").is_err());
        assert!(questions("{\"search\": {}, \"limit\": 100001}").is_err());
        assert!(!questions("{\"search\": {}, \"limit\": 100000}").unwrap().are_gets);
        assert!(questions(&"{}\n".repeat(QUESTIONS_MAX + 1)).is_err());
    }
}
