//! How a figure is found among the lines that a bench printed.

use forebay_types::{Error, Result};
use serde_json::Value;

use crate::spread::rounded;
use crate::{Bench, Figure};

/// What one run said of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pulled {
    /// Ours.
    pub value: f64,
    /// The peer's.
    pub peer: Option<f64>,
    /// The limit's, where that is not the peer.
    pub limit: Option<f64>,
}

/// The figure, from the one line of the bench's output that is about it; lines that are no JSON are passed over. An output that is one
/// JSON document counts as one line.
///
/// # Errors
/// No such line, more than one, or no number where the table says that it is.
pub fn pull(bench: &Bench, figure: &Figure, output: &str) -> Result<Pulled> {
    let mut about = lines(output).into_iter().filter(|line| figure.line.iter().all(|(field, wanted)| says(line, field, wanted)));
    let line = about.next().ok_or_else(|| Error::not_found(format!("no line with {:?}", figure.line)))?;
    if about.next().is_some() {
        return Err(Error::invalid(format!("more than one line with {:?}", figure.line)));
    }
    let value = number(&line, figure.value_at.as_ref().unwrap_or(&bench.value_at))?;
    let peer_at = figure.peer_at.as_ref().unwrap_or(&bench.peer_at);
    let peer = figure.peer.as_ref().map(|_| number(&line, peer_at)).transpose()?;
    let limit = figure.limit_at.as_ref().map(|at| number(&line, at)).transpose()?;
    Ok(Pulled { value, peer, limit })
}

fn lines(output: &str) -> Vec<Value> {
    match serde_json::from_str::<Value>(output) {
        Ok(document) => vec![document],
        Err(_) => output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

fn says(line: &Value, field: &str, wanted: &str) -> bool {
    match line.pointer(&format!("/{field}")) {
        Some(Value::String(text)) => matches(wanted, text),
        Some(other) => matches(wanted, &other.to_string()),
        None => false,
    }
}

/// Whether a text is what a pattern says; `*` stands for any part of it, also none.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn number(line: &Value, at: &str) -> Result<f64> {
    let found = line.pointer(at);
    let number = found.and_then(Value::as_f64).filter(|number| number.is_finite());
    number.map(rounded).ok_or_else(|| match found {
        Some(other) => {
            let (other, line) = (beginning(&other.to_string()), beginning(&line.to_string()));
            Error::invalid(format!("{at} is {other}, not a number, in {line}"))
        }
        None => Error::not_found(format!("no {at} in {}", beginning(&line.to_string()))),
    })
}

/// Enough of a line to know it by: what is said here is kept in the record.
fn beginning(line: &str) -> String {
    const CHARS: usize = 200;
    if let Some((end, _)) = line.char_indices().nth(CHARS) { format!("{}..", &line[..end]) } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    const OUTPUT: &str = "building\n{\"what\":\"get at 0.48x (0.479x), uniform\",\"value\":12.5,\"peer_value\":10,\"limit_value\":25}\n\
         {\"what\":\"get at 0.55x (0.549x), uniform\",\"value\":20,\"met\":true}\n{\"what\":\"odd\",\"value\":\"fast\"}\n";

    fn pulled(line: &str, rest: &str) -> Result<Pulled> {
        let text = format!(
            "[[bench]]\nname = 'b'\npackage = 'p'\n[[bench.figure]]\nname = 'f'\nsays = 's'\nunit = 'x'\nline = {line}\n{rest}"
        );
        let table = Table::parse(&text).unwrap();
        pull(&table.benches[0], &table.benches[0].figures[0], OUTPUT)
    }

    #[test]
    fn a_line_is_found_by_what_its_fields_say() {
        let found = pulled("{ what = 'get at 0.48x*uniform' }", "peer = 'peer'").unwrap();
        assert_eq!(found, Pulled { value: 12.5, peer: Some(10.0), limit: None });
        assert_eq!(pulled("{ met = 'true' }", "").unwrap(), Pulled { value: 20.0, peer: None, limit: None });
        let limited = pulled("{ what = 'get at 0.48x*' }", "limit = 'echo'\nlimit_at = '/limit_value'").unwrap();
        assert_eq!((limited.peer, limited.limit), (None, Some(25.0)));
    }

    #[test]
    fn what_is_missing_or_stands_twice_is_an_error() {
        assert!(pulled("{ what = 'put*' }", "").unwrap_err().to_string().contains("no line"));
        assert!(pulled("{ what = 'get at *' }", "").unwrap_err().to_string().contains("more than one line"));
        let no_peer = pulled("{ what = '*0.55x*' }", "peer = 'peer'").unwrap_err().to_string();
        assert!(no_peer.contains("/peer_value"), "{no_peer}");
        assert!(pulled("{ what = 'odd' }", "").unwrap_err().to_string().contains("not a number"));
    }

    #[test]
    fn one_document_over_many_lines_is_one_line() {
        let found = lines("{\n  \"runs\": { \"warm\": { \"secs\": 3.5 } }\n}\n");
        assert_eq!(found.len(), 1);
        assert_eq!(number(&found[0], "/runs/warm/secs").unwrap(), 3.5);
        assert_eq!(lines("{}\n{}\n").len(), 2);
    }

    #[test]
    fn patterns_match_the_whole_text() {
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*", "") && matches("abc", "abc"));
        assert!(!matches("a*c", "abcd") && !matches("ab", "abc") && !matches("a*b*a", "aba x"));
        assert!(!matches("ab*ba", "aba"), "no part is used twice");
    }

    #[test]
    fn of_a_long_line_the_beginning_is_told() {
        let line = format!("{{\"long\": \"{}\"}}", "x".repeat(10_000));
        let error = number(&serde_json::from_str(&line).unwrap(), "/long").unwrap_err().to_string();
        assert!(error.contains("not a number") && error.len() < 600 && error.ends_with(".."), "{}", error.len());
        assert!(number(&serde_json::from_str(&line).unwrap(), "/none").unwrap_err().to_string().len() < 300);
    }
}
