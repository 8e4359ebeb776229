//! The command line of `cargo xtask`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy [--update]
  tidy           what the checkout's rules find beyond xtask/ratchet.txt, and what stands as it is
  tidy --update  the same, and tightens the ratchet where a crate has become better";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let update = match arguments.as_slice() {
        ["tidy"] => false,
        ["tidy", "--update"] => true,
        _ => return say(&mut std::io::stderr(), USAGE, 2),
    };
    // The folder above this crate, wherever cargo was called from.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match xtask::tidy(root, update) {
        Ok(outcome) => say(&mut std::io::stdout(), &outcome.to_string(), if outcome.is_tidy() { 0 } else { 1 }),
        Err(error) => say(&mut std::io::stderr(), &format!("cargo xtask tidy: {error}"), 1),
    }
}

fn say(to: &mut dyn Write, text: &str, code: u8) -> ExitCode {
    match writeln!(to, "{text}") {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
