//! Patterns in paths: which files below a folder a path with `*`, `**`, `?` or `[..]` means.

/// Characters that make a part of a path a pattern.
const PATTERN: [char; 3] = ['*', '?', '['];

/// Which files below a folder belong to a path: all of them, or those whose path below the folder matches a pattern.
/// `*` and `?` stand for anything within one part, `**` for any number of parts, `[..]` for one of the characters.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(glob::Pattern);

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        glob::Pattern::new(text).map(Self).map_err(|error| error.msg.to_string())
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn matches(&self, below: &str) -> bool {
        let options =
            glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };
        self.0.matches_with(below, options)
    }
}

/// Splits a path before the first part that is a pattern: the folder, with its `/`, and the pattern.
pub(crate) fn split(path: &str) -> (&str, Option<&str>) {
    let Some(at) = path.find(PATTERN) else { return (path, None) };
    let folder = path[..at].rfind('/').map_or(0, |slash| slash + 1);
    (&path[..folder], Some(&path[folder..]))
}

#[cfg(test)]
mod tests {
    use super::{Pattern, split};

    #[test]
    fn stars_stay_within_a_part() {
        assert_eq!(split("/lake/a/b*/c.csv"), ("/lake/a/", Some("b*/c.csv")));
        assert_eq!(split("/lake/a/b.csv"), ("/lake/a/b.csv", None));
        assert_eq!(split("*.csv"), ("", Some("*.csv")));
        let matches = |pattern: &str, path: &str| Pattern::new(pattern).unwrap().matches(path);
        assert!(matches("*.csv", "a.csv") && !matches("*.csv", "x/a.csv"));
        assert!(matches("**/*.csv", "x/y/a.csv") && matches("**/*.csv", "a.csv"));
        assert!(matches("b?/[ab].csv", "b1/a.csv") && !matches("b?/[ab].csv", "b1/c.csv"));
        assert!(Pattern::new("[a").is_err());
    }
}
