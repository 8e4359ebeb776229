//! docs/tutorial.md says what works: its shell blocks are run as they stand.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::free_port;

fn tutorial() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    std::fs::read_to_string(file).unwrap()
}

/// The shell blocks, in order.
fn blocks(text: &str) -> Vec<&str> {
    let block = |(at, _): (usize, &str)| {
        let body = &text[at + "```sh\n".len()..];
        &body[..body.find("```").unwrap()]
    };
    text.match_indices("```sh\n").map(block).collect()
}

#[test]
fn every_block_of_the_tutorial_runs() {
    let text = tutorial();
    let blocks = blocks(&text);
    assert!(blocks.len() >= 8, "the tutorial has {} blocks", blocks.len());
    let home = tempfile::tempdir().unwrap();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_forebay"));
    // One shell runs all of them; a line between the blocks tells them apart.
    let script = blocks.iter().fold(String::from("set -eu -o pipefail\n"), |script, block| script + block + "\necho ----\n");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let (coordinator, worker, http, flight) = (free_port(), free_port(), free_port(), free_port());
    let output = Command::new("timeout")
        .args(["180", "bash", "-c", &script])
        .current_dir(home.path())
        .env("HOME", home.path())
        .env("PATH", path)
        .env("PYENV_ROOT", std::env::var("PYENV_ROOT").unwrap_or_else(|_| format!("{}/.pyenv", std::env::var("HOME").unwrap())))
        .env("PIP_BREAK_SYSTEM_PACKAGES", "1")
        .env("FOREBAY_COORDINATOR", coordinator)
        .env("FOREBAY_WORKER_LISTEN", worker)
        .env("FOREBAY_HTTP", http)
        .env("FOREBAY_FLIGHT", flight)
        .env("FOREBAY_DRAM", "256MiB")
        .env("FOREBAY_DISK", "512MiB")
        .output()
        .unwrap();
    let (shown, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}\n{errors}");
    let parts: Vec<_> = shown.split("----\n").collect();
    let has = |words: &str| assert!(parts.iter().any(|part| part.contains(words)), "no {words:?} in {shown}");
    // What the data says, as published with the package.
    has("| 336776  | 105          |");
    has("United Air Lines Inc.");
    has("| 58665   |");
    has("month=7/");
    has("| 7     | 29425   |");
    has("flights\n707\n");
}
