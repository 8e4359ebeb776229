//! A made-up checkout: a crate in each ring, and one beside them.

#![allow(clippy::unwrap_used, reason = "a test ends where its files can't be made")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use xtask::{Finding, Outcome, RATCHET_PATH, Rule, tidy};

const WORKSPACE: &str = r#"[workspace]
members = [
    # ring 0: decisions
    "crates/core/inner",
    # ring 2a: processes
    "crates/cluster/process",
    # ring 2b: ways in
    "crates/access/door",
    # beside the rings
    "testing",
]
"#;

pub struct Checkout(TempDir);

impl Checkout {
    /// One that meets every rule.
    pub fn new() -> Self {
        let mut checkout = Self(tempfile::tempdir().unwrap()).file("Cargo.toml", WORKSPACE).file(RATCHET_PATH, "");
        for (folder, name) in [("core/inner", "inner"), ("cluster/process", "process"), ("access/door", "door")] {
            checkout = checkout
                .file(&format!("crates/{folder}/Cargo.toml"), &format!("[package]\nname = \"{name}\"\n"))
                .file(&format!("crates/{folder}/src/lib.rs"), "//! Says what it is.\n");
        }
        checkout.file("testing/Cargo.toml", "[package]\nname = \"testing\"\n")
    }

    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn ratchet(&self) -> String {
        let text = fs::read_to_string(self.root().join(RATCHET_PATH)).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    pub fn tidy(&self) -> Outcome {
        tidy(self.root(), false).unwrap()
    }

    pub fn found(&self, rule: Rule) -> Vec<Finding> {
        self.tidy().findings.iter().filter(|finding| finding.rule == rule).cloned().collect()
    }

    /// Where the rule is broken, as `path:line`.
    pub fn places(&self, rule: Rule) -> Vec<String> {
        self.found(rule).iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
    }
}
