//! The `forebay` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(forebay::command(forebay::Program::this_file(), std::env::args_os()))
}
