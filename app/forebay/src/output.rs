//! How commands print: aligned tables for people, JSON for programs, and a quiet end when nobody reads any more.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use chrono::DateTime;
use serde::Serialize;

use crate::exit::{Failure, Outcome};
use crate::terminal::{OF_LINES, visible};

/// Prints one thing: an object for programs, `text` for people.
pub(crate) fn show(json: bool, record: &impl Serialize, text: impl FnOnce(&mut Output) -> Outcome) -> Outcome {
    let mut output = Output::new(json);
    match json {
        true => output.record(record)?,
        false => text(&mut output)?,
    }
    output.finish()
}

/// Prints several things: an object each for programs, a table for people, as [`Output::table`] has it.
pub(crate) fn list<T: Serialize>(
    json: bool,
    records: &[T],
    titles: &[&str],
    right: &[usize],
    row: impl Fn(&T) -> Vec<String>,
) -> Outcome {
    let mut output = Output::new(json);
    match json {
        true => records.iter().try_for_each(|record| output.record(record))?,
        false => output.table(titles, right, &records.iter().map(row).collect::<Vec<_>>())?,
    }
    output.finish()
}

/// A time in seconds since 1970, as it is written everywhere.
pub(crate) fn time(secs: u64) -> String {
    let time = i64::try_from(secs).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    time.map_or_else(|| secs.to_string(), |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The standard output of a command: lines and tables for people, one JSON object a line for programs.
///
/// Everything goes through here so that a reader that went away (`forebay ls | head`) ends the command quietly.
pub(crate) struct Output {
    /// Whether programs read it.
    pub(crate) json: bool,
    terminal: bool,
    stdout: BufWriter<Stdout>,
}

impl Output {
    /// The output of this process. Flush with [`Self::finish`].
    pub(crate) fn new(json: bool) -> Self {
        Self { json, terminal: Self::is_terminal(), stdout: BufWriter::with_capacity(64 << 10, io::stdout()) }
    }

    /// Whether a person sees it at once.
    pub(crate) fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// A line of text. A terminal is not handed what it would obey; programs get all as it is.
    pub(crate) fn line(&mut self, text: &str) -> Outcome {
        let text = if self.terminal { visible(text, OF_LINES) } else { Cow::Borrowed(text) };
        writeln!(self.stdout, "{text}").map_err(Failure::of_stdout)
    }

    pub(crate) fn lines(&mut self, lines: &[String]) -> Outcome {
        lines.iter().try_for_each(|line| self.line(line))
    }

    /// A line that is a name and nothing else, or ends with one: on a terminal it stays one line.
    pub(crate) fn name(&mut self, text: &str) -> Outcome {
        let text = if self.terminal { visible(text, &[]) } else { Cow::Borrowed(text) };
        self.line(&text)
    }

    /// One JSON object on a line.
    pub(crate) fn record(&mut self, record: &impl Serialize) -> Outcome {
        let text = serde_json::to_string(record)
            .map_err(|error| forebay_types::Error::internal(format!("can't write JSON: {error}")))?;
        self.line(&text)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.stdout.write_all(bytes).map_err(Failure::of_stdout)
    }

    /// A table with its columns aligned; the columns in `right` (by place) to the right.
    pub(crate) fn table(&mut self, titles: &[&str], right: &[usize], rows: &[Vec<String>]) -> Outcome {
        self.lines(&format_table(titles, right, rows))
    }

    /// Hands over what is buffered.
    pub(crate) fn finish(&mut self) -> Outcome {
        self.stdout.flush().map_err(Failure::of_stdout)
    }
}

/// The lines of a table; no line of titles when there are none. A row is one line, whatever is in its cells.
pub(crate) fn format_table(titles: &[&str], right: &[usize], rows: &[Vec<String>]) -> Vec<String> {
    let titles =
        (!titles.is_empty()).then(|| titles.iter().map(|title| Cow::<str>::Owned(title.to_uppercase())).collect::<Vec<_>>());
    let rows = rows.iter().map(|row| row.iter().map(|cell| visible(cell, &[])).collect::<Vec<_>>());
    let lines: Vec<Vec<Cow<'_, str>>> = titles.into_iter().chain(rows).collect();
    let columns = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let width =
        |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let format_line = |line: &Vec<Cow<'_, str>>| {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if right.contains(&column) { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    lines.iter().map(format_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let rows = vec![vec!["lake".into(), "1".into()], vec!["nas".into(), "200".into()]];
        assert_eq!(format_table(&["name", "size"], &[1], &rows), ["NAME  SIZE", "lake     1", "nas    200"]);
    }

    #[test]
    fn a_row_is_one_line() {
        let rows = vec![vec!["a\nb".into(), "1".into()], vec!["c".into(), "2".into()]];
        assert_eq!(format_table(&[], &[], &rows), ["a\\nb  1", "c     2"]);
    }
}
