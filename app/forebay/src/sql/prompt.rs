//! The prompt of `forebay sql`: lines, its own commands, history, and Ctrl-C that ends a statement and not the prompt.

use std::io::Write;
use std::path::PathBuf;

use forebay_sql::is_complete;
use forebay_types::Error;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Config, Editor};

use super::execute::Session;
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
    let folder = forebay_data_folder::state_folder().filter(|_| session.history);
    let mut lines = Lines::open(folder.map(|folder| folder.join("sql-history")))?;
    eprintln!("forebay {}: \\help for help, \\q to quit", env!("CARGO_PKG_VERSION"));
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "forebay> " } else { "      -> " };
        // Reading blocks this thread, as nothing else is done meanwhile; the runtime's others go on.
        match tokio::task::block_in_place(|| lines.read(prompt)) {
            Ok(line) if text.is_empty() && asked(&line).is_some() => {
                lines.remember(&line);
                if command(session, signals, asked(&line).unwrap_or_default()).await? {
                    return Ok(());
                }
            }
            Ok(line) => {
                text += &line;
                if is_complete(&text) {
                    lines.remember(&text);
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

/// What a line asks of the prompt itself: `\` with a word, or what is typed at other prompts and begins no statement.
fn asked(line: &str) -> Option<&str> {
    let line = line.trim();
    match line.trim_end_matches(';') {
        "help" => Some("\\help"),
        "quit" | "exit" => Some("\\quit"),
        _ => line.starts_with('\\').then_some(line),
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
        signal = signals.next() => after(signal),
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

/// What a signal leaves of the prompt: Ctrl-C is of the statement, any other one of all.
fn after(signal: &str) -> Outcome {
    if signal != "SIGINT" {
        return Err(Failure::Interrupted);
    }
    let _ = writeln!(std::io::stderr(), "given up");
    Ok(())
}

/// What is typed, and was.
struct Lines {
    config: Config,
    history: FileHistory,
    file: Option<PathBuf>,
}

impl Lines {
    fn open(file: Option<PathBuf>) -> Outcome<Self> {
        let config = Config::builder().max_history_size(HISTORY_MAX).and_then(|config| config.history_ignore_dups(true));
        let config = config.map_err(|error| Error::internal(format!("can't open the terminal: {error}")))?.build();
        let mut history = FileHistory::with_config(&config);
        if let Some(file) = &file {
            // There is none at the first time.
            let _ = history.load(file);
        }
        Ok(Self { config, history, file })
    }

    /// The next line. The library takes SIGINT for itself from everybody else as long as it has the terminal: it has it while somebody types.
    fn read(&mut self, prompt: &str) -> Result<String, ReadlineError> {
        let history = std::mem::take(&mut self.history);
        let mut editor = Editor::<(), FileHistory>::with_history(self.config.clone(), history)?;
        let line = editor.readline(prompt);
        self.history = std::mem::take(editor.history_mut());
        line
    }

    fn remember(&mut self, text: &str) {
        // What was typed stays at hand until the end. A history that can't be kept is no reason to stop.
        let _ = self.history.add(text);
        if let Some(file) = &self.file {
            let _ = self.history.save(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_goes_ends_the_prompt_and_not_a_statement_alone() {
        assert!(after("SIGINT").is_ok());
        assert!(["SIGHUP", "SIGTERM"].iter().all(|signal| matches!(after(signal), Err(Failure::Interrupted))));
    }

    #[test]
    fn words_of_other_prompts_are_no_statement_without_an_end() {
        let lines = [
            ("quit", Some("\\quit")),
            (" exit; ", Some("\\quit")),
            ("help", Some("\\help")),
            ("  \\d sales ", Some("\\d sales")),
            ("help me", None),
            ("select 1;", None),
            ("", None),
        ];
        for (line, wanted) in lines {
            assert_eq!(asked(line), wanted, "{line:?}");
        }
    }
}
