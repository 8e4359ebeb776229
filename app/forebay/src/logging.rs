use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::exit::{Failure, Outcome};

/// Logs to the standard error: what `--log` (or the configuration) says, else `RUST_LOG`, else `default`.
pub(crate) fn start(configured: Option<&str>, default: &str) -> Outcome {
    let variable = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let text = configured.or(variable.as_deref()).unwrap_or(default);
    let filter = EnvFilter::try_new(text).map_err(|error| Failure::Usage(format!("log filter {text:?}: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    Ok(())
}
