//! Cuts a script at its semicolons, past quotes and comments, before anything of it is parsed.

use forebay_types::{Error, Result};

/// Splits a script into statements at the semicolons that stand outside of quotes and comments. Statements without
/// anything but comments are left out.
pub(crate) fn split(script: &str) -> Vec<String> {
    cut(script).0
}

/// Whether what was typed ends with a `;` that ends a statement.
pub fn is_complete(text: &str) -> bool {
    cut(text).1
}

/// The statements, and whether nothing follows the last semicolon.
fn cut(script: &str) -> (Vec<String>, bool) {
    // Editors of some systems begin files with it.
    let script = script.strip_prefix('\u{feff}').unwrap_or(script);
    let bytes = script.as_bytes();
    let mut statements = Vec::new();
    let (mut start, mut at, mut has_content) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' if is_escaped(&script[..at]) => {
                has_content = true;
                at = after_escaped(script, at + 1);
            }
            quote @ (b'\'' | b'"' | b'`') => {
                has_content = true;
                at = after(script, at + 1, |rest| rest.as_bytes()[0] == quote).map_or(bytes.len(), |end| end + 1);
            }
            b'-' if script[at..].starts_with("--") => {
                at = after(script, at, |rest| rest.starts_with('\n')).unwrap_or(bytes.len());
            }
            b'/' if script[at..].starts_with("/*") => at = after_comment(script, at),
            b'$' => {
                has_content = true;
                at = after_dollar(script, at);
            }
            b';' => {
                if has_content {
                    statements.push(script[start..at].trim().to_string());
                }
                at += 1;
                (start, has_content) = (at, false);
            }
            byte => {
                has_content |= !byte.is_ascii_whitespace();
                at += 1;
                while !script.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
    }
    if has_content {
        statements.push(script[start..].trim().to_string());
    }
    (statements, start > 0 && !has_content)
}

/// The one statement of a text.
pub(crate) fn one(sql: &str) -> Result<String> {
    let mut statements = split(sql);
    match statements.len() {
        1 => Ok(statements.remove(0)),
        0 => Err(Error::invalid("there is no statement: write one, as in SELECT 1")),
        _ => Err(Error::invalid("these are several statements: run one at a time")),
    }
}

/// The first place from `from` on where `found` says yes.
fn after(script: &str, from: usize, found: impl Fn(&str) -> bool) -> Option<usize> {
    script[from..].char_indices().map(|(at, _)| from + at).find(|at| found(&script[*at..]))
}

/// Whether a sign may stand in a name, so that what follows it begins nothing.
fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '$' | '@' | '#')
}

/// Whether a quote behind this begins a text with signs behind backslashes, as `E'it\'s'`.
fn is_escaped(before: &str) -> bool {
    let mut signs = before.chars().rev();
    matches!(signs.next(), Some('e' | 'E')) && !signs.next().is_some_and(is_of_name)
}

/// The place after such a text, whose quotes stand behind backslashes, or twice.
fn after_escaped(script: &str, from: usize) -> usize {
    let (bytes, mut at) = (script.as_bytes(), from);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The place after a text between dollars, as `$$a;b$$` or `$name$a;b$name$`; after the one sign where it begins none.
fn after_dollar(script: &str, at: usize) -> usize {
    let (before, rest) = script.split_at(at);
    match dollars(rest).filter(|_| !before.chars().next_back().is_some_and(is_of_name)) {
        Some(mark) => rest[mark.len()..].find(mark).map_or(script.len(), |end| at + end + 2 * mark.len()),
        None => at + 1,
    }
}

/// The mark that a text between dollars begins and ends with, if there is one here.
fn dollars(rest: &str) -> Option<&str> {
    let name = rest.strip_prefix('$')?;
    let end = name.find(|sign: char| !sign.is_alphanumeric() && sign != '_')?;
    name[end..].starts_with('$').then(|| &rest[..end + 2])
}

/// The place after a comment that may hold others.
fn after_comment(script: &str, from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < script.len() {
        let rest = &script.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_comments_hide_semicolons() {
        let script = "select ';' -- not; here\n, \"a;b\" /* nor; /* here; */ */ ;\n-- only a comment;\n;select 'é;''';  select 2";
        assert_eq!(
            split(script),
            ["select ';' -- not; here\n, \"a;b\" /* nor; /* here; */ */", "-- only a comment;\n;select 'é;'''", "select 2"]
                .iter()
                .map(|text| text.trim_start_matches("-- only a comment;\n;").to_string())
                .collect::<Vec<_>>()
        );
        assert_eq!(split("\u{feff}select 1;"), ["select 1"]);
        assert!(split(" ; -- nothing\n ; ").is_empty());
        assert_eq!(split("select 'open; quote"), ["select 'open; quote"]);
    }

    #[test]
    fn a_statement_is_complete_at_its_semicolon() {
        for whole in ["select 1;", "select 1; -- done", "select ';'; /* ; */ -- ;\n", "select 'it''s';", "select $t$;$t$;", ";"] {
            assert!(is_complete(whole), "{whole}");
        }
        for open in ["select ';", "select 1 -- ;", "select 1; select", "select 1", "select $t$;", "select E'\\';", ""] {
            assert!(!is_complete(open), "{open}");
        }
    }

    #[test]
    fn texts_of_postgres_hide_semicolons() {
        let one = |text: &str| {
            let first = format!("select {text}");
            assert_eq!(split(&format!("{first};select 2")), [first, "select 2".to_string()], "{text}");
        };
        for text in ["$$a;b$$", "$t$a;$$;$u$'$t$", "$ü_1$;$$ü_1$", "$$é;'$$ || ';'", "a$$", "$1 || $2", "$a", "$"] {
            one(text);
        }
        for text in ["E'a;\\'b;'", "e'\\\\', ';'", "E'it''s \\';'", "E'\\é;'", "name'\\' , ';'", "'e''\\', ';'"] {
            one(text);
        }
        assert_eq!(split("select $$open; quote"), ["select $$open; quote"]);
        assert_eq!(split("select E'open\\"), ["select E'open\\"]);
    }
}
