//! Prometheus' own tool for its rules, which `make test-deps` brings.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// That of the path, or of the cache of what tests need.
fn promtool() -> PathBuf {
    let cache = env::var_os("FOREBAY_CACHE").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache/forebay"));
    let folders = env::var_os("PATH").unwrap_or_default();
    let files = env::split_paths(&folders).chain([cache.join("bin")]).map(|folder| folder.join("promtool"));
    let found = files.into_iter().find(|file| file.is_file());
    found.unwrap_or_else(|| {
        panic!("there is no promtool, neither on the path nor in {}: `make test-deps` brings it", cache.display())
    })
}

/// Runs it with a file as its input, where there is one; it is to have nothing against what it reads.
pub(crate) fn run(arguments: &[&str], input: Option<&Path>) {
    let input = input.map_or_else(Stdio::null, |file| File::open(file).expect("the input").into());
    let ran = Command::new(promtool()).args(arguments).stdin(input).output().expect("promtool can be run");
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "promtool {}: {said}", arguments.join(" "));
}
