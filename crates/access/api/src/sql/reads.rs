//! Whether a statement only reads.

/// Whether it begins as those do that read: who else comes with it, `EXPLAIN ANALYZE` of one that writes say, is none of them. Refuses
/// what it does not know.
pub(super) fn only_reads(sql: &str) -> bool {
    let mut rest = sql;
    let mut is_explained = false;
    loop {
        let Some((word, after)) = next_word(rest) else { return false };
        rest = after;
        match word.to_ascii_lowercase().as_str() {
            "select" | "with" | "values" => return true,
            "show" => return !is_explained,
            "explain" if !is_explained => is_explained = true,
            "analyze" | "verbose" if is_explained => {}
            "format" if is_explained => match next_word(rest) {
                Some((_, after)) => rest = after,
                None => return false,
            },
            _ => return false,
        }
    }
}

/// The next word and what follows it: after blanks, comments and parentheses.
fn next_word(sql: &str) -> Option<(&str, &str)> {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "(),".contains(c));
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n')?.1
        } else if let Some(comment) = rest.strip_prefix("/*") {
            after_comment(comment)?
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            return (end > 0).then(|| rest.split_at(end));
        };
    }
}

/// What follows a comment of which the beginning was read. They nest.
fn after_comment(mut rest: &str) -> Option<&str> {
    let mut depth = 1_u32;
    while depth > 0 {
        let (open, close) = (rest.find("/*"), rest.find("*/")?);
        match open {
            Some(open) if open < close => {
                depth += 1;
                rest = &rest[open + 2..];
            }
            _ => {
                depth -= 1;
                rest = &rest[close + 2..];
            }
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_is_known_by_its_first_words() {
        for reads in [
            "select 1",
            "  SELECT * from '/lake/a.csv'",
            "with a as (select 1) select * from a",
            "values (1)",
            "(select 1) union (select 2)",
            "show tables",
            "explain select 1",
            "EXPLAIN ANALYZE VERBOSE select 1",
            "explain format tree select 1",
            "explain (analyze, verbose) select 1",
            "-- of today\nselect 1",
            "/* of /* all */ days */ select 1",
        ] {
            assert!(only_reads(reads), "{reads}");
        }
    }

    #[test]
    fn what_writes_or_is_not_known_is_no_reading() {
        for other in [
            "",
            "-- select 1",
            "/* select 1",
            "/* /* */ select 1",
            "copy (select 1) to '/lake/x.csv'",
            "insert into t select 1",
            "create external table t stored as csv location '/lake/'",
            "drop table t",
            "set datafusion.execution.batch_size = 1",
            "explain analyze copy (select 1) to '/lake/x.csv'",
            "explain /* select */ analyze insert into t values (1)",
            "explain (analyze) insert into t values (1)",
            "explain explain select 1",
            "explain format",
            "analyze select 1",
            "describe analyze insert into t values (1)",
            "\"select\" 1",
            "selection",
            "'select'",
        ] {
            assert!(!only_reads(other), "{other}");
        }
    }
}
