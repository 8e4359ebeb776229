//! The order of ids that people expect, in which segments are numbered and neighbours stand together.

use std::cmp::Ordering;

/// Compares ids as people order them: digits by the number that they make, so that S2 comes before S10.
pub(super) fn compare(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one, other);
    loop {
        let ((first, rest), (second, remains)) = (part(a), part(b));
        if first.is_empty() || second.is_empty() {
            // All that is left differs in how numbers are written, if at all.
            return first.len().cmp(&second.len()).then_with(|| one.cmp(other));
        }
        let order = match (number(first), number(second)) {
            (Some(first), Some(second)) => first.len().cmp(&second.len()).then_with(|| first.cmp(second)),
            _ => first.cmp(second),
        };
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest, remains);
    }
}

/// The digits, or what isn't digits, that `text` begins with, and what follows.
fn part(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|letter: char| letter.is_ascii_digit());
    let end = text.find(|letter: char| letter.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

/// A number without the zeros that it begins with.
fn number(part: &str) -> Option<&str> {
    part.starts_with(|letter: char| letter.is_ascii_digit()).then(|| part.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_what_they_are() {
        let mut ids = ["S10", "S2", "a/x", "S1", "S02", "", "S1b", "10", "9"];
        ids.sort_by(|one, other| compare(one, other));
        assert_eq!(ids, ["", "9", "10", "S1", "S1b", "S02", "S2", "S10", "a/x"]);
    }
}
