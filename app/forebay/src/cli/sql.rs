//! Flags of `forebay sql`: where statements come from, how rows look, and what they run on.

use std::path::PathBuf;

use clap::Args;

use super::RoleFlags;

/// `sql`.
#[derive(Args)]
pub(crate) struct SqlArgs {
    /// Statements, separated by `;`; without any (and without -f), those of the standard input, or a prompt on a terminal
    #[arg(value_name = "SQL", conflicts_with = "file", allow_hyphen_values = true, value_parser = statements)]
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

/// A script may begin with a comment; what is one line of such, or begins with one `-`, was meant as a flag.
fn statements(text: &str) -> Result<String, String> {
    if text.starts_with('-') && !(text.starts_with("--") && text.contains('\n')) {
        return Err(
            "there is no such flag, and a comment alone is no statement: `forebay sql --help` lists the flags".to_string()
        );
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_before_a_statement_is_no_flag() {
        for script in ["select 1", "--\nselect 1", "-- all of them\nselect 1", "--all\nselect -1", ""] {
            assert_eq!(statements(script).as_deref(), Ok(script));
        }
        for flag in ["--jsn", "-x", "--coordinater=a b", "-1\n", "-- select 1"] {
            assert!(statements(flag).is_err(), "{flag}");
        }
    }
}
