//! The command `forebay`: configuration, command line and wiring. What Forebay does lives in the crates below.
//!
//! A library, since it is called from two places: the binary, and the Python package, whose command it is. Start with [`command`].

mod cli;
mod commands;
mod config;
mod connect;
mod demo;
mod exit;
mod input;
mod loading;
mod logging;
mod output;
mod program;
mod progress;
mod records;
mod roles;
mod sql;
mod terminal;
mod tree;

use std::ffi::OsString;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use forebay_trace::Exporting;

use crate::cli::{AloneCommand, Cli, Command, ConfiguredCommand, RoleCommand};
use crate::config::{Config, LogFormat};
use crate::exit::{Failure, Outcome};
use crate::output::Output;

pub use crate::program::Program;
pub use crate::records::Formats;

/// Runs one command, which begins with the program's own name as in `argv`, and gives the exit code of the process. `program` is
/// what starts this program once more.
pub fn command(program: Program, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(arguments.iter().map(cli::no_comment_is_a_flag)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    program.started_with(arguments);
    if let Err(failure) = run(cli) { failure.report() } else { 0 }
}

/// Help and version go to the standard output with exit code 0; what can't be understood to the standard error with 2.
fn usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // A reader that is gone needs no help.
        let _ = error.print();
        return 0;
    }
    let text = error.render().to_string();
    eprint!("forebay: {}", text.strip_prefix("error: ").unwrap_or(&text));
    2
}

fn run(cli: Cli) -> Outcome {
    let settings = cli.settings();
    let command = match cli.command {
        Command::Configured(command) => command,
        Command::Alone(command) => return run_alone(command),
    };
    if matches!(command, ConfiguredCommand::Demo(_)) {
        demo::with_credentials()?;
    }
    let config = Config::load(cli.config.as_deref(), settings)?;
    let is_role = matches!(&command, ConfiguredCommand::Role(role) if role.flags().is_some());
    let (default, audit) = if is_role { ("info", config.settings.audit_log.as_deref()) } else { ("warn", None) };
    logging::start(config.settings.log.as_deref(), default, config.settings.log_format, audit)?;
    match command {
        ConfiguredCommand::Role(command) => run_role(&config, command),
        #[cfg(feature = "cluster")]
        ConfiguredCommand::Jobs(args) => block_on(interruptible(commands::jobs::run(&config, args))),
        #[cfg(feature = "cluster")]
        ConfiguredCommand::Transfers(args) => block_on(interruptible(commands::jobs::transfers(&config, args))),
        ConfiguredCommand::Client(command) => block_on(interruptible(commands::run(&config, command))),
        ConfiguredCommand::Sql(args) => block_on(traced(&config, "sql", sql::run(&config, args))),
        ConfiguredCommand::Record(args) => block_on(commands::trace::record(&config, args)),
        ConfiguredCommand::Table(command) => block_on(interruptible(commands::table::run(&config, command))),
        ConfiguredCommand::Shard(command) => commands::shard(&config, command),
        ConfiguredCommand::Plan(command) => commands::plan::run(command),
        ConfiguredCommand::Demo(args) => block_on(interruptible(demo::run(args))),
        ConfiguredCommand::Doctor(args) => block_on(interruptible(commands::doctor::run(&config, args))),
        ConfiguredCommand::Config { json } => {
            let mut output = Output::new(json);
            config.show(&mut output)?;
            output.finish()
        }
    }
}

fn run_role(config: &Config, command: RoleCommand) -> Outcome {
    forebay_node::few_arenas();
    match command {
        RoleCommand::Up(args) => block_on(traced(config, "up", roles::up(config, &args))),
        RoleCommand::Coordinator(_) => block_on(traced(config, "coordinator", roles::coordinator(config))),
        RoleCommand::Worker(args) => match args.command {
            None => block_on(traced(config, "worker", roles::worker(config))),
            Some(command) => block_on(interruptible(commands::worker(config, command))),
        },
        RoleCommand::Gateway(_) => block_on(traced(config, "gateway", roles::gateway(config))),
        #[cfg(feature = "cluster")]
        RoleCommand::Scheduler(_) => block_on(traced(config, "scheduler", roles::scheduler(config))),
        #[cfg(feature = "cluster")]
        RoleCommand::Executor(_) => block_on(traced(config, "executor", roles::executor(config))),
    }
}

fn run_alone(command: AloneCommand) -> Outcome {
    match command {
        AloneCommand::DemoS3Server(args) => {
            logging::start(None, "warn", LogFormat::Text, None)?;
            block_on(demo::serve(args))
        }
        AloneCommand::Simulate(command) => commands::simulate::run(command),
        AloneCommand::Trace(command) => commands::trace::run(&command),
        AloneCommand::Man { folder } => commands::manual(&folder, Cli::command()),
        AloneCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "forebay", &mut script);
            let mut output = Output::new(false);
            output.bytes(&script)?;
            output.finish()
        }
    }
}

pub(crate) fn block_on<F: Future<Output = Outcome>>(work: F) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(forebay_runtime::STACK_BYTES)
        .build()
        .map_err(|error| forebay_types::Error::from(error).context("can't start"))?;
    let outcome = runtime.block_on(work);
    // What still runs is ours to drop: a read that hangs must not keep the command from ending.
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

/// Sends the spans of `work` where a collector is named, the last ones when it has ended.
async fn traced(config: &Config, roles: &str, work: impl Future<Output = Outcome>) -> Outcome {
    let exporting = match config.collector(roles) {
        Some(collector) => Exporting::start(collector)
            .map_err(|error| Failure::Usage(format!("configuration key otlp-endpoint: {}", error.message())))?,
        None => None,
    };
    let outcome = work.await;
    if let Some(exporting) = exporting {
        exporting.finish().await;
    }
    outcome
}

/// Ends `work` by dropping it at Ctrl-C, SIGTERM or SIGHUP, so that unfinished files and uploads are cleaned up.
pub(crate) async fn interruptible(work: impl Future<Output = Outcome>) -> Outcome {
    let mut signals = roles::Signals::new()?;
    tokio::select! {
        outcome = work => outcome,
        _ = signals.next() => Err(Failure::Interrupted),
    }
}
