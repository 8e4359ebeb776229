//! The `forebay` binary: configuration, command line and wiring. What Forebay does lives in the crates below.

mod cli;
mod commands;
mod config;
mod demo;
mod exit;
mod logging;
mod output;
mod progress;
mod roles;
mod sql;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command, Flags, WorkerArgs};
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Help and version go to the standard output with exit code 0; what can't be understood to the standard error with 2.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A reader that is gone needs no help.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    eprint!("forebay: {}", text.strip_prefix("error: ").unwrap_or(&text));
    ExitCode::from(2)
}

fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "forebay", &mut script);
            let mut output = Output::new(false);
            output.bytes(&script)?;
            return output.finish();
        }
        Command::Simulate(command) => return commands::simulate::run(command),
        Command::Demo(_) => demo::with_credentials()?,
        Command::DemoS3Server(args) => {
            logging::start(None, "warn", None)?;
            return block_on(demo::serve(args));
        }
        _ => {}
    }
    let config = Config::load(cli.config.as_deref(), &Flags { global: &cli.global, role: cli.command.role_flags() })?;
    let (default, audit) = if cli.command.is_role() { ("info", config.audit_log()) } else { ("warn", None) };
    logging::start(config.log(), default, audit.as_deref())?;
    match cli.command {
        Command::Config { json } => {
            let mut output = Output::new(json);
            config.show(&mut output)?;
            output.finish()
        }
        Command::Up(args) => block_on(roles::up(&config, &args)),
        #[cfg(feature = "cluster")]
        Command::Scheduler(_) => block_on(roles::scheduler(&config)),
        #[cfg(feature = "cluster")]
        Command::Executor(_) => block_on(roles::executor(&config)),
        #[cfg(feature = "cluster")]
        Command::Jobs(args) => block_on(interruptible(commands::jobs::run(&config, args))),
        #[cfg(feature = "cluster")]
        Command::Transfers(args) => block_on(interruptible(commands::jobs::transfers(&config, args))),
        Command::Coordinator(_) => block_on(roles::coordinator(&config)),
        Command::Worker(WorkerArgs { command: None, .. }) => block_on(roles::worker(&config)),
        Command::Plan(command) => commands::plan::run(command),
        Command::Gateway(_) => block_on(roles::gateway(&config)),
        Command::Demo(args) => block_on(interruptible(demo::run(args))),
        Command::Sql(args) => block_on(sql::run(&config, args)),
        Command::Table(command) => block_on(interruptible(commands::table::run(&config, command))),
        // Interrupted at any point it leaves the shard whole, so the signal may end it as it is.
        Command::Shard(command) => commands::shard(command),
        command => block_on(interruptible(commands::run(&config, command))),
    }
}

fn block_on<F: Future<Output = Outcome>>(work: F) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| forebay_types::Error::from(error).context("can't start"))?;
    let outcome = runtime.block_on(work);
    // What still runs is ours to drop: a read that hangs must not keep the command from ending.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

/// Ends `work` by dropping it at Ctrl-C or SIGTERM, so that unfinished files and uploads are cleaned up.
async fn interruptible(work: impl Future<Output = Outcome>) -> Outcome {
    let mut signals = roles::Signals::new()?;
    tokio::select! {
        outcome = work => outcome,
        _ = signals.next() => Err(Failure::Interrupted),
    }
}
