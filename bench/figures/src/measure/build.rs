//! Programs of benches, compiled before the first one runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Bench;

/// Where each package's program lies, or why it could not be had.
#[derive(Debug)]
pub struct Programs {
    built: BTreeMap<String, Result<PathBuf, String>>,
}

impl Programs {
    /// Compiles what these benches need: all at once, so that every dependency has one set of features, and where that fails one by
    /// one, so that a package that does not compile takes no other with it.
    pub fn build(root: &Path, benches: &[&Bench]) -> Self {
        let packages: BTreeSet<&str> = benches.iter().map(|bench| bench.package.as_str()).collect();
        let together = compile(root, &packages).ok();
        let of = |package: &str| {
            let messages = together.clone().map_or_else(|| compile(root, &BTreeSet::from([package])), Ok)?;
            executable(&messages, package).ok_or_else(|| format!("{package} has no program of its name"))
        };
        Self { built: packages.iter().map(|&package| (package.to_owned(), of(package))).collect() }
    }

    /// Programs that are there already, by package.
    pub fn known(built: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        Self { built: built.into_iter().map(|(package, path)| (package, Ok(path))).collect() }
    }

    /// A package's program.
    ///
    /// # Errors
    /// Why it could not be compiled.
    pub fn of(&self, package: &str) -> Result<&Path, String> {
        match self.built.get(package) {
            Some(Ok(path)) => Ok(path),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("{package} was not built")),
        }
    }
}

/// What cargo says of what it made.
fn compile(root: &Path, packages: &BTreeSet<&str>) -> Result<String, String> {
    if packages.is_empty() {
        return Ok(String::new());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--locked", "--profile", "fast", "--message-format", "json-render-diagnostics"];
    let mut command = Command::new(cargo);
    command.current_dir(root).args(arguments).stderr(Stdio::inherit());
    packages.iter().for_each(|package| _ = command.args(["-p", package]));
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let names: Vec<&str> = packages.iter().copied().collect();
    Err(format!("does not compile; `cargo build --profile fast -p {}` says why", names.join(" -p ")))
}

/// The program of the package's own name among what cargo says that it made.
fn executable(messages: &str, package: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message.pointer("/target/name").is_some_and(|name| name == package));
    programs.find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_one_that_cargo_names() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"other\"},\"executable\":\"/o\"}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"bench\"},\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"bench\"},\"executable\":\"/t/fast/bench\"}\n";
        assert_eq!(executable(messages, "bench"), Some(PathBuf::from("/t/fast/bench")));
        assert_eq!(executable(messages, "none"), None);
    }

    #[test]
    fn a_package_that_is_not_there_says_so_and_the_others_stay() {
        let programs = Programs::known([("a".to_owned(), PathBuf::from("/a"))]);
        assert_eq!(programs.of("a"), Ok(Path::new("/a")));
        assert!(programs.of("b").unwrap_err().contains("not built"));
    }
}
