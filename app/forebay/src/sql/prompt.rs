//! The prompt of `forebay sql`: lines, its own commands, history, and Ctrl-C that ends a statement and not the prompt.

use std::io::Write;
use std::path::PathBuf;

use forebay_types::Error;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, DefaultEditor, Editor};

use super::execute::Session;
use super::split::is_complete;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::roles::Signals;

/// Statements kept in the history.
const HISTORY_MAX: usize = 10_000;

const HELP: &str = "\
Statements end with `;` and may go over several lines.
  select * from '/MOUNT/FILE.parquet' limit 10;     files of a mount; globs and folders too
  describe '/MOUNT/FILE.parquet';                   its columns
  copy (select ..) to '/MOUNT/OUT.parquet';         write a file
  \\d           tables            \\d TABLE   columns of a table
  \\timing      say how long statements take (again to stop)
  \\help        this              \\q         quit (also Ctrl-D)
Ctrl-C gives up what is typed, or the statement that runs.
";

/// Reads statements until the end, and prints what they give.
pub(crate) async fn run(session: &mut Session<'_>, signals: &mut Signals) -> Outcome {
    let mut editor = editor()?;
    let history = history_file().filter(|_| session.history());
    if let Some(file) = &history {
        // There is none at the first time.
        let _ = editor.load_history(file);
    }
    eprintln!("forebay {}: \\help for help, \\q to quit", env!("CARGO_PKG_VERSION"));
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "forebay> " } else { "      -> " };
        // Reading blocks this thread, as nothing else is done meanwhile; the runtime's others go on.
        match tokio::task::block_in_place(|| editor.readline(prompt)) {
            Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                remember(&mut editor, history.as_ref(), &line);
                if command(session, signals, line.trim()).await? {
                    return Ok(());
                }
            }
            Ok(line) => {
                text += &line;
                if is_complete(&text) {
                    remember(&mut editor, history.as_ref(), &text);
                    for statement in session.split(&std::mem::take(&mut text)).await? {
                        execute(session, signals, &statement).await?;
                    }
                } else if text.trim().is_empty() {
                    text.clear();
                } else {
                    text.push('\n');
                }
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(Error::internal(format!("can't read from the terminal: {error}")).into()),
        }
    }
}

/// Carries out a line that starts with `\`; true at the end.
async fn command(session: &mut Session<'_>, signals: &mut Signals, line: &str) -> Outcome<bool> {
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (name, argument.trim().trim_end_matches(';')) {
        ("\\q" | "\\quit", _) => return Ok(true),
        ("\\d", "") => execute(session, signals, "show tables").await?,
        ("\\d", table) => execute(session, signals, &format!("describe {table}")).await?,
        ("\\timing", _) => {
            let now = session.toggle_timing();
            eprintln!("timing is {}", if now { "on" } else { "off" });
        }
        ("\\help" | "\\h" | "\\?", _) => {
            let mut output = Output::new(false);
            output.bytes(HELP.as_bytes())?;
            output.finish()?;
        }
        _ => eprintln!("{name} is no command: \\help lists them"),
    }
    Ok(false)
}

/// Runs one statement. What fails is said and forgotten: the prompt goes on.
async fn execute(session: &mut Session<'_>, signals: &mut Signals, statement: &str) -> Outcome {
    let outcome = tokio::select! {
        outcome = session.statement(statement) => outcome,
        _ = signals.next() => {
            eprintln!("given up");
            Ok(())
        }
    };
    match outcome {
        Err(Failure::Failed(error)) => {
            // Nothing is left to tell when the terminal itself is gone.
            let _ = writeln!(std::io::stderr(), "forebay: {error}");
            Ok(())
        }
        other => other,
    }
}

fn editor() -> Outcome<Editor<(), FileHistory>> {
    let config = Config::builder().max_history_size(HISTORY_MAX).and_then(|config| config.history_ignore_dups(true));
    config
        .and_then(|config| DefaultEditor::with_config(config.build()))
        .map_err(|error| Error::internal(format!("can't open the terminal: {error}")).into())
}

fn history_file() -> Option<PathBuf> {
    Some(forebay_data_folder::state_folder()?.join("sql-history"))
}

fn remember(editor: &mut Editor<(), FileHistory>, file: Option<&PathBuf>, text: &str) {
    // What was typed stays at hand until the end. A history that can't be kept is no reason to stop.
    let _ = editor.add_history_entry(text);
    if let Some(file) = file {
        let _ = editor.save_history(file);
    }
}
