//! Runs statements and prints their rows as they come, with progress before the first one.

use std::cell::Cell;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::rc::Rc;
use std::time::Duration;

use datafusion::arrow::datatypes::SchemaRef;
use forebay_sql::Progress;
use forebay_sql::output::{Form, Writer};
use forebay_types::{Error, format_bytes};

use super::backend::Backend;
use super::history;
use crate::exit::{Failure, Outcome};
use crate::progress;

/// How often a bar is brought up to date.
const LOOK: Duration = Duration::from_millis(200);

/// Runs statements on a backend and prints what they give.
pub(crate) struct Session<'a> {
    backend: &'a Backend,
    form: Form,
    timing: bool,
    pub(super) history: bool,
}

impl<'a> Session<'a> {
    /// Prints in this form; with how long statements take when `timing`; remembers those that went well when `history`.
    pub(crate) fn new(backend: &'a Backend, form: Form, timing: bool, history: bool) -> Self {
        Self { backend, form, timing, history }
    }

    /// Switches timing, and says how it is now.
    pub(crate) fn toggle_timing(&mut self) -> bool {
        self.timing = !self.timing;
        self.timing
    }

    /// The statements of a script.
    pub(crate) async fn split(&self, script: &str) -> Outcome<Vec<String>> {
        Ok(self.backend.engine.statements(script).await?)
    }

    /// Runs the statements of a script one after the other, up to the first that fails.
    pub(crate) async fn script(&mut self, script: &str) -> Outcome {
        let statements = self.split(script).await?;
        if statements.is_empty() {
            return Err(Failure::Usage("there is no statement to run: write one, as in forebay sql \"select 1\"".to_string()));
        }
        let (many, mut at) = (statements.len() > 1, 0);
        for statement in statements {
            let start = script[at..].find(&statement).map_or(at, |found| at + found);
            let line = script[..start].matches('\n').count() + 1;
            self.statement(&statement).await.map_err(|failure| match failure {
                Failure::Failed(error) if many => Failure::Failed(error.context(format!("the statement of line {line}"))),
                other => other,
            })?;
            at = start + statement.len();
        }
        Ok(())
    }

    /// Runs one statement. Rows are printed as they come.
    pub(crate) async fn statement(&mut self, statement: &str) -> Outcome {
        let started = forebay_runtime::now();
        let bar = progress::spinner("");
        let done = self.rows(statement, &bar).await;
        bar.finish_and_clear();
        let rows = done?;
        if self.history {
            history::remember(statement);
        }
        if self.timing {
            let what = if rows == 1 { "row" } else { "rows" };
            eprintln!("{rows} {what} in {:.3} s", started.elapsed().as_secs_f64());
        }
        Ok(())
    }

    async fn rows(&self, statement: &str, bar: &indicatif::ProgressBar) -> Outcome<u64> {
        let mut query = self.backend.engine.execute(statement).await?;
        let notice = query.notice().map(str::to_string);
        if let Some(notice) = &notice {
            bar.suspend(|| eprintln!("{notice}"));
        }
        let mut printer = Printer::new(self.form, query.schema());
        let mut rows = 0;
        loop {
            let watch = query.watch();
            let next = query.next_batch();
            tokio::pin!(next);
            let next = loop {
                tokio::select! {
                    next = &mut next => break next,
                    () = forebay_runtime::time::sleep(LOOK) => bar.set_message(progress_text(watch())),
                }
            };
            bar.set_message(progress_text(watch()));
            let Some(batch) = next else { break };
            let batch = batch?;
            if rows == 0 && batch.num_rows() > 0 {
                // From here on the rows themselves show that it goes on.
                bar.finish_and_clear();
            }
            rows += batch.num_rows() as u64;
            printer.write(|writer| writer.write(&batch))?;
        }
        bar.finish_and_clear();
        printer.finish()?;
        if let Some(later) = query.notice().filter(|later| Some(*later) != notice.as_deref()) {
            eprintln!("{later}");
        }
        Ok(rows)
    }
}

/// How far a query is, for people: bytes, and tasks where it runs on many machines.
fn progress_text(progress: Progress) -> String {
    match progress.tasks {
        0 => format_bytes(progress.bytes_read),
        tasks => format!(
            "{} of {tasks} tasks, {} of {}",
            progress.tasks_done,
            format_bytes(progress.bytes_read),
            format_bytes(progress.bytes_planned)
        ),
    }
}

/// Rows on the standard output.
struct Printer {
    writer: Writer<Stdout>,
    gone: Rc<Cell<bool>>,
}

impl Printer {
    fn new(form: Form, schema: SchemaRef) -> Self {
        let gone = Rc::new(Cell::new(false));
        let (out, terminal) = (io::stdout(), io::stdout().is_terminal());
        let stdout = Stdout { out: BufWriter::with_capacity(64 << 10, out), terminal, led: false, gone: Rc::clone(&gone) };
        Self { writer: Writer::new(form, schema, stdout), gone }
    }

    fn write(&mut self, what: impl FnOnce(&mut Writer<Stdout>) -> Result<(), Error>) -> Outcome {
        what(&mut self.writer).map_err(|error| sort(&self.gone, error))
    }

    fn finish(self) -> Outcome {
        let Self { writer, gone } = self;
        let flushed = writer.finish().and_then(|mut stdout| stdout.flush().map_err(Error::from));
        flushed.map_err(|error| sort(&gone, error))
    }
}

fn sort(gone: &Cell<bool>, error: Error) -> Failure {
    if gone.get() { Failure::ReaderGone } else { Failure::Failed(error) }
}

/// The standard output, which remembers that its reader went away: writers above it turn errors into text. It is not locked
/// while a query runs: a library that prints a line of its own would wait for the query, and the query for it.
struct Stdout {
    out: BufWriter<io::Stdout>,
    terminal: bool,
    led: bool,
    gone: Rc<Cell<bool>>,
}

impl Stdout {
    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.gone.set(true);
        }
        result
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.terminal { shown(&mut self.out, &mut self.led, bytes) } else { self.out.write(bytes) };
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

/// The first of the two bytes that control characters behind ASCII are, and letters too.
const LEAD: u8 = 0xc2;

/// As `write`, of control characters what they are instead of what a terminal does at them. `led` says that [`LEAD`] came and is kept
/// until it is seen what it leads.
fn shown(out: &mut impl Write, led: &mut bool, bytes: &[u8]) -> io::Result<usize> {
    let Some(first) = bytes.first() else { return Ok(0) };
    if *led {
        if (0x80..=0x9f).contains(first) {
            write!(out, "\\u{{{first:x}}}")?;
            *led = false;
            return Ok(1);
        }
        out.write_all(&[LEAD])?;
        *led = false;
    }
    let is_obeyed = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t');
    match bytes.iter().position(|byte| *byte == LEAD || is_obeyed(byte)) {
        None => out.write(bytes),
        Some(0) if *first == LEAD => {
            *led = true;
            Ok(1)
        }
        Some(0) => write!(out, "\\u{{{first:x}}}").map(|()| 1),
        Some(at) => out.write(&bytes[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_does_not_obey_what_is_in_rows() {
        let bytes = "| \x1b[31mr\u{fc}d\x07\u{9b}2J \u{a0}\u{c2} |\n".as_bytes();
        // However they are cut.
        for most in 1..=bytes.len() {
            let (mut out, mut led, mut at) = (Vec::new(), false, 0);
            while at < bytes.len() {
                at += shown(&mut out, &mut led, &bytes[at..bytes.len().min(at + most)]).unwrap();
            }
            assert_eq!(String::from_utf8(out).unwrap(), "| \\u{1b}[31mr\u{fc}d\\u{7}\\u{9b}2J \u{a0}\u{c2} |\n");
        }
    }
}
