//! Clock, chance and tasks that are taken from the system where they are needed, instead of at one door: nothing that does so
//! can run in simulated time.

use crate::rule::{Finding, Rule};
use crate::source::{find_words, line_at};
use crate::tree::{RustFile, Tree};

const WORDS: [(Rule, &str); 8] = [
    (Rule::Clocks, "Instant::now"),
    (Rule::Clocks, "SystemTime::now"),
    (Rule::Clocks, "Utc::now"),
    (Rule::Chance, "rand::"),
    (Rule::Chance, "fastrand::"),
    (Rule::Tasks, "tokio::time"),
    (Rule::Tasks, "tokio::spawn"),
    (Rule::Tasks, "thread::spawn"),
];

/// The door itself.
const DOOR: &str = "crates/platform/runtime";
/// What measures and what tests may look at the clock.
const BESIDE: [&str; 3] = ["bench", "testing", "xtask"];

pub(crate) fn find(tree: &Tree) -> Vec<Finding> {
    let inside = |file: &&RustFile| {
        file.is_shipped
            && file.owner != DOOR
            && !BESIDE.iter().any(|room| file.owner == *room || file.owner.starts_with(&format!("{room}/")))
    };
    tree.rust.iter().filter(inside).flat_map(uses).collect()
}

fn uses(file: &RustFile) -> Vec<Finding> {
    let code = &file.source.shipped;
    let finding = |rule, word: &str, at| Finding {
        rule,
        owner: file.owner.clone(),
        path: file.path.clone(),
        line: line_at(code, at),
        weight: 1,
        what: format!("`{word}` past the door"),
    };
    WORDS.iter().flat_map(|(rule, word)| find_words(code, word).map(|at| finding(*rule, word, at))).collect()
}
