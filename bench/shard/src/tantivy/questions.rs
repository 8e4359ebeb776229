//! What both are asked, drawn from the records so that each question has a hit at least.

use forebay_bench_harness::Bar;
use forebay_shard::{Query, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value as Json, json};

use crate::workload::{Records, Search, Skew, searches};

/// The attribute that is text, by place.
pub(super) const COMMENT: usize = 13;
/// Bytes of each of the two parts of a regular expression, and of a substring.
const PART_BYTES: usize = 6;
const SUBSTRING_BYTES: usize = 2 * PART_BYTES;
const SEED: u64 = 20;

/// A question, as each of them takes it.
pub(super) struct Question {
    pub(super) query: Query,
    pub(super) json: Json,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Equality,
    Prefix,
    Substring,
    Regex,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [Self::Equality, Self::Prefix, Self::Substring, Self::Regex];

    /// Its name in figures.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Equality => "equality",
            Self::Prefix => "prefix",
            Self::Substring => "substring",
            Self::Regex => "regex",
        }
    }

    /// What searches a CPU-second and the middle time are held to.
    pub(super) fn bars(self) -> (Bar, Bar) {
        match self {
            Self::Equality => (Bar::RatioAtLeast(0.5), Bar::RatioAtMost(2.0)),
            Self::Substring => (Bar::RatioAtLeast(10.0), Bar::RatioAtMost(0.1)),
            Self::Prefix | Self::Regex => (Bar::Nothing, Bar::Nothing),
        }
    }

    /// Questions, the same ones each time: fewer of what may be a scan.
    pub(super) fn draw(self, records: &Records) -> Vec<Question> {
        let mut random = StdRng::seed_from_u64(SEED);
        match self {
            Self::Equality => searches(records, Skew::Uniform, 2_000, SEED).into_iter().map(equality).collect(),
            Self::Prefix => searches(records, Skew::Uniform, 200, SEED).into_iter().map(prefix).collect(),
            Self::Substring => (0..50).map(|_| substring(records, &mut random)).collect(),
            Self::Regex => (0..50).map(|_| regex(records, &mut random)).collect(),
        }
    }
}

fn equality(Search { attribute, value }: Search) -> Question {
    let json = json!({ "attribute": attribute, "what": { "equals": text(&value) } });
    Question { query: Query::Eq { attribute, value: Value::Bytes(value) }, json }
}

/// The first three quarters of a value: a month of a day, the whole of a price, all but the last digits of a number.
fn prefix(Search { attribute, mut value }: Search) -> Question {
    value.truncate((value.len() * 3 / 4).max(1));
    let json = json!({ "attribute": attribute, "what": { "prefix": text(&value) } });
    Question { query: Query::Prefix { attribute, prefix: value }, json }
}

fn substring(records: &Records, random: &mut StdRng) -> Question {
    let comment = comment(records, random);
    let from = random.random_range(0..=comment.len() - SUBSTRING_BYTES);
    let bytes = comment[from..from + SUBSTRING_BYTES].to_vec();
    let json = json!({ "attribute": COMMENT, "what": { "contains": text(&bytes) } });
    Question { query: Query::Contains { attribute: COMMENT, bytes }, json }
}

/// Two parts of a comment, with anything between them.
fn regex(records: &Records, random: &mut StdRng) -> Question {
    let comment = comment(records, random);
    let first = random.random_range(0..=comment.len() - SUBSTRING_BYTES);
    let second = random.random_range(first + PART_BYTES..=comment.len() - PART_BYTES);
    let parts = [first, second].map(|at| text(&comment[at..at + PART_BYTES]));
    let pattern = parts.join(".*");
    let json = json!({ "attribute": COMMENT, "what": { "regex": { "pattern": pattern, "parts": parts } } });
    Question { query: Query::Regex { attribute: COMMENT, pattern }, json }
}

/// One that is long enough, and has nothing that a regular expression would take for more than itself.
fn comment<'a>(records: &'a Records, random: &mut StdRng) -> &'a [u8] {
    loop {
        let comment = records.value(random.random_range(0..records.len()), COMMENT);
        if comment.len() >= SUBSTRING_BYTES && comment.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b' ') {
            return comment;
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("lineitem is text")
}

#[cfg(test)]
mod tests {
    use forebay_shard::Shard;

    use super::*;
    use crate::subject::base;
    use crate::workload::ATTRIBUTES;

    #[test]
    fn every_question_has_the_hits_that_a_look_at_all_records_finds() {
        let records = Records::lineitem(200_000);
        let shard = Shard::open(base(&records).unwrap(), []).unwrap();
        assert_eq!(ATTRIBUTES[COMMENT], "l_comment");
        for kind in Kind::ALL {
            for question in kind.draw(&records).iter().take(20) {
                let what = &question.json["what"];
                let place = question.json["attribute"].as_u64().unwrap() as usize;
                let holds = |value: &str| match kind {
                    Kind::Equality => Some(value) == what["equals"].as_str(),
                    Kind::Prefix => value.starts_with(what["prefix"].as_str().unwrap()),
                    Kind::Substring => value.contains(what["contains"].as_str().unwrap()),
                    Kind::Regex => {
                        let [first, second] = [0_usize, 1].map(|at| what["regex"]["parts"][at].as_str().unwrap());
                        value.split_once(first).is_some_and(|(_, after)| after.contains(second))
                    }
                };
                let rows = (0..records.len()).filter(|row| holds(text(records.value(*row, place))));
                let keys: Vec<u64> = rows.map(|row| records.keys[row]).collect();
                assert!(!keys.is_empty(), "{}", question.json);
                let found = shard.search(&question.query, None, None).unwrap().keys;
                assert_eq!(found, forebay_shard::Keys::U64(keys), "{}", question.json);
            }
        }
    }
}
