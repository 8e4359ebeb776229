//! The checked-in table of what does not meet the rules yet: one line a rule and crate, sorted, so that branches merge.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::rule::Rule;

/// Where the table lies, from the root of the checkout.
pub const RATCHET_PATH: &str = "xtask/ratchet.txt";

const HEAD: &str =
    "# What does not meet the rules of `cargo xtask tidy` yet: rule, crate, number. A number may only fall (that of
# `assertions` only rise): `cargo xtask tidy --update` moves those that may. Nothing else adds to this table.
";

/// A number for each rule and crate.
pub(crate) type Numbers = BTreeMap<(Rule, String), usize>;

/// The table, if there is one.
pub(crate) fn read(root: &Path) -> io::Result<Option<Numbers>> {
    let text = match fs::read_to_string(root.join(RATCHET_PATH)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut numbers = Numbers::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let entry = match words.as_slice() {
            [rule, owner, number] => Rule::named(rule).zip(number.parse().ok()).map(|(rule, n)| ((rule, (*owner).to_owned()), n)),
            _ => None,
        };
        let (key, number) = entry.ok_or_else(|| at(index, "is not `rule crate number`"))?;
        if numbers.insert(key, number).is_some() {
            return Err(at(index, "says a number for the second time: keep the smaller one"));
        }
    }
    Ok(Some(numbers))
}

/// Puts the table in the place of the one that is there.
pub(crate) fn write(root: &Path, numbers: &Numbers) -> io::Result<()> {
    let mut text = HEAD.to_owned();
    for (key, number) in numbers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {} {number}", key.0.name(), key.1);
    }
    fs::write(root.join(RATCHET_PATH), text)
}

/// What `found` allows: no number becomes looser than it is in `kept`, and a crate that is gone leaves.
pub(crate) fn tightened(kept: &Numbers, found: &Numbers) -> Numbers {
    let mut next = Numbers::new();
    for (key, &number) in found {
        let limit = kept.get(key).copied().unwrap_or(0);
        let tight = if key.0.more_is_better() { number.max(limit) } else { number.min(limit) };
        if tight > 0 {
            next.insert(key.clone(), tight);
        }
    }
    next
}

fn at(index: usize, what: &str) -> io::Error {
    io::Error::other(format!("{RATCHET_PATH}:{} {what}", index + 1))
}
