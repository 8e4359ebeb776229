//! `forebay sql`: statements from the command line, a file, the standard input or a prompt.

mod backend;
mod execute;
pub(crate) mod history;
mod prompt;

use std::io::{IsTerminal, Read};

use forebay_trace::{Span, TraceParent};
use forebay_types::ResultExt;

use crate::cli::SqlArgs;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::roles::Signals;
use backend::Backend;
use execute::Session;
use forebay_sql::output::Form;

/// The trace that a script or a scheduler of jobs runs its commands in.
const TRACEPARENT: &str = "TRACEPARENT";

/// Runs statements and prints what they give; below the trace of whoever started this, where that one names it.
pub(crate) async fn run(config: &Config, args: SqlArgs) -> Outcome {
    let Ok(parent) = std::env::var(TRACEPARENT) else { return statements(config, args).await };
    let span = Span::asked(TraceParent::read(&parent), "forebay sql");
    span.around(statements(config, args)).await
}

async fn statements(config: &Config, args: SqlArgs) -> Outcome {
    let script = match (&args.statements, &args.file) {
        (Some(statements), _) => Some(statements.clone()),
        (None, Some(file)) => Some(std::fs::read_to_string(file).context(|| file.display())?),
        (None, None) if std::io::stdin().is_terminal() => None,
        (None, None) => {
            let mut script = String::new();
            std::io::stdin().read_to_string(&mut script).context(|| "the standard input")?;
            Some(script)
        }
    };
    let mut signals = Signals::new()?;
    let backend = tokio::select! {
        backend = Backend::start(config, args.embedded, args.priority) => backend?,
        _ = signals.next() => return Err(Failure::Interrupted),
    };
    let format = match (args.json, args.csv) {
        (true, _) => Form::NdJson,
        (_, true) => Form::Csv,
        _ => Form::Table,
    };
    let mut session = Session::new(&backend, format, args.timing, config.settings.query_history);
    let outcome = match script {
        Some(script) => {
            tokio::select! {
                outcome = session.script(&script) => outcome,
                _ = signals.next() => Err(Failure::Interrupted),
            }
        }
        None => prompt::run(&mut session, &mut signals).await,
    };
    backend.stop().await;
    outcome
}
