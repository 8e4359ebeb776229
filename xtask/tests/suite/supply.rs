//! What is built, and what the tests are run with, is what the checkout names: locked dependencies, tools in one version.

#![allow(clippy::unwrap_used, reason = "a test ends where the checkout can't be read")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A file's lines without comments, those that go on in the next one put together.
fn lines(path: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let text = text.replace("\\\n", " ");
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// The scripts of folders.
fn scripts() -> Vec<String> {
    let mut all = Vec::new();
    for folder in [".ci", "dist", "dist/test"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_script = path.is_file() && fs::read_to_string(&path).is_ok_and(|text| text.starts_with("#!"));
            if is_script {
                all.push(format!("{folder}/{}", path.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    assert!(all.len() > 5, "{all:?}");
    all
}

/// Whether a line has cargo compile something.
fn compiles(line: &str) -> bool {
    let subcommand = |words: &str| {
        let names = ["build", "run", "test", "clippy", "doc", "miri test", "install"];
        names.iter().any(|name| line.contains(&format!("{words} {name} ")))
    };
    subcommand("$(CARGO)") || subcommand("cargo")
}

/// What is wrong with a line of a Makefile or a script, if something is.
fn fault(line: &str) -> Option<&'static str> {
    // What a machine puts right changes the checkout, and what is only said is run by whoever reads it.
    let is_apart = line.contains("--fix ") || line.starts_with("echo ");
    // What the variables stand for is looked at where they are set.
    let is_locked = ["--locked", "$(FAST)", "$(FUZZ_$*)"].iter().any(|how| line.contains(how));
    if compiles(line) && !is_apart && !is_locked {
        return Some("is not --locked");
    }
    if line.contains("cargo install") && !line.contains("--version") {
        return Some("installs whatever version there is");
    }
    if let Some((_, after)) = line.split_once(" go install ") {
        let names_version = after.starts_with("\"$2@$3\"");
        return (!names_version).then_some("installs whatever version there is");
    }
    if let Some((_, after)) = line.split_once("pip install ") {
        let names_version = ["==", "--requirement", "--no-deps"].iter().any(|how| after.contains(how));
        return (!names_version).then_some("installs whatever version there is");
    }
    None
}

#[test]
fn all_that_is_built_is_locked_and_tools_have_a_version() {
    let mut looked_at = 0;
    for path in scripts().iter().map(String::as_str).chain(["Makefile"]) {
        for line in lines(path) {
            looked_at += usize::from(compiles(&line) || line.contains("install "));
            assert!(fault(&line).is_none(), "{path}: {line:?} {}", fault(&line).unwrap());
        }
    }
    assert!(looked_at > 20, "{looked_at}");
    let makefile = lines("Makefile");
    assert!(makefile.contains(&"FAST = --locked --profile fast".to_owned()));
    for line in makefile.iter().filter(|line| line.starts_with("FUZZ_") && line.contains(" = ") && line.contains("-p ")) {
        assert!(line.contains("--locked"), "{line}");
    }
    let is_made = |line: &String| line.starts_with("FUZZ_files") && line.contains("$(FAST)");
    assert!(makefile.iter().any(is_made), "the files' fuzzer is built as the engine's tests are");
}

#[test]
fn a_version_that_is_not_named_is_found() {
    for line in [
        "$(CARGO) test --profile fast",
        "cargo build -p forebay",
        "rustup run nightly cargo miri test -p forebay-types",
        "cargo install --locked cargo-deny",
        "GOBIN=bin go install github.com/rclone/rclone@latest",
        "python3 -m pip install --quiet virtualenv && python3 -m virtualenv there",
    ] {
        assert!(fault(line).is_some(), "{line}");
    }
}

#[test]
fn tools_of_tests_have_the_version_that_stands_in_their_script() {
    let all = lines(".ci/test-deps");
    let versions: Vec<(&str, &str)> = all.iter().filter_map(|line| line.split_once("_version=")).collect();
    for tool in ["versitygw", "rclone", "cargo_deny"] {
        let (_, version) = versions.iter().find(|(name, _)| *name == tool).unwrap_or_else(|| panic!("{tool} has no version"));
        let numbers: Vec<&str> = version.trim_start_matches('v').split('.').collect();
        assert!(numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok()), "{tool}: {version}");
        assert!(all.iter().any(|line| line.contains(&format!("${tool}_version"))), "{tool}'s version is used");
    }
    for path in [
        ".ci/s3-clients.txt",
        "python/tests/requirements.txt",
        "dist/test/requirements.txt",
        "testing/api/requirements.txt",
        "testing/console/requirements.txt",
        "testing/tpcds/requirements.txt",
    ] {
        let packages = lines(path);
        assert!(!packages.is_empty(), "{path}");
        for package in packages {
            let version = package.split_once("==").map(|(_, version)| version);
            assert!(
                version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit())),
                "{path}: {package}"
            );
        }
    }
}

#[test]
fn what_may_be_built_in_is_decided_by_a_list() {
    let deny = lines("deny.toml");
    for line in [
        "unknown-registry = \"deny\"",
        "unknown-git = \"deny\"",
        "allow-registry = [\"https://github.com/rust-lang/crates.io-index\"]",
        "wildcards = \"deny\"",
        "yanked = \"deny\"",
    ] {
        assert!(deny.iter().any(|known| known == line), "deny.toml has no line {line}");
    }
    for ignored in deny.iter().filter(|line| line.contains("RUSTSEC-")) {
        let reason = ignored.split_once("reason = \"").map(|(_, reason)| reason);
        assert!(reason.is_some_and(|reason| reason.len() > 20), "{ignored}: why");
    }
    let runs: Vec<String> =
        lines(".ci/deny").into_iter().filter(|line| line.contains("\" --") && line.contains(" check ")).collect();
    assert!(runs.len() == 2 && runs.iter().all(|line| line.contains("--locked")), "{runs:?}");
    let checked = runs.concat();
    for part in ["licenses", "bans", "sources", "advisories"] {
        assert!(checked.contains(part), "{part}");
    }
    let verify = lines("Makefile").into_iter().find(|line| line.starts_with("verify:")).unwrap();
    let run = lines(".ci/run").concat();
    for target in ["deny", "lint", "loom", "format"] {
        assert!(verify.contains(target) && run.contains(target), "{target} is a part of the gate");
    }
}
