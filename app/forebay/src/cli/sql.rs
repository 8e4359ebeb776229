//! Flags of `forebay sql`: where statements come from, how rows look, and what they run on.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::RoleFlags;

#[derive(Args)]
pub(crate) struct SqlArgs {
    /// Statements, separated by `;`; without any (and without -f), those of the standard input, or a prompt on a terminal
    #[arg(value_name = "SQL", conflicts_with = "file")]
    pub(crate) statements: Option<String>,
    /// A file of statements
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Rows as JSON, one object a line
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Rows as CSV, with a line of titles
    #[arg(long)]
    pub(crate) csv: bool,
    /// Say how long each statement took
    #[arg(long)]
    pub(crate) timing: bool,
    /// Tasks and what is fetched ahead of queries of a higher priority go first
    #[arg(long, default_value_t = 0, allow_hyphen_values = true, value_name = "NUMBER")]
    pub(crate) priority: i32,
    /// Run with a coordinator and a worker of its own on the data folder, instead of a running `forebay up`
    #[arg(long)]
    pub(crate) embedded: bool,
    #[command(flatten, next_help_heading = "With --embedded")]
    pub(crate) role: RoleFlags,
}

/// An argument as flags are looked for in it: a script that begins with a comment is none.
pub(crate) fn no_comment_is_a_flag(argument: &OsString) -> OsString {
    match argument.to_str() {
        Some(script) if script.starts_with("-- ") || script.starts_with("--\n") => format!(" {script}").into(),
        _ => argument.clone(),
    }
}
