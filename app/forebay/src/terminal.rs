//! What a terminal would obey, made visible.

use std::borrow::Cow;

/// Text whose control characters are seen instead of obeyed: names are whatever somebody could write to shared storage, and a
/// terminal does what they say. Those in `kept` stay.
pub(crate) fn visible<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let hides = |c: char| c.is_control() && !kept.contains(&c);
    if !text.contains(hides) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if hides(c) { seen.extend(c.escape_default()) } else { seen.push(c) }
    }
    Cow::Owned(seen)
}

/// What lines of text are made of.
pub(crate) const OF_LINES: &[char] = &['\n', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(visible("red \x1b[31m\u{9b}2J", &[]), "red \\u{1b}[31m\\u{9b}2J");
        assert_eq!((visible("a\nb", &[]), visible("a\nb\tc\r", OF_LINES)), ("a\\nb".into(), "a\nb\tc\\r".into()));
        assert!(matches!(visible("ü ☃ %20", &[]), Cow::Borrowed("ü ☃ %20")), "all else stays as it is");
    }
}
