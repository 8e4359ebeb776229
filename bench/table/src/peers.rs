//! Formats that only Python has, run as a script on the same data and reported as the others are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use forebay_types::{Error, Result, ResultExt};
use serde::Deserialize;

/// Peers that are had through Python.
pub struct Peers {
    python: Option<PathBuf>,
    rounds: usize,
}

/// What one of them needed.
#[derive(Deserialize)]
pub struct Peer {
    pub peer: String,
    /// Processor seconds of reading, its consumer's taken off.
    pub secs: f64,
    /// Bytes of its file.
    pub bytes: u64,
}

impl Peers {
    pub fn new(python: Option<PathBuf>, rounds: usize) -> Result<Self> {
        let python = match python {
            Some(none) if none.as_os_str() == "none" => None,
            Some(python) => Some(python),
            None => {
                let cache = std::env::var_os("FOREBAY_CACHE").map(PathBuf::from);
                let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache/forebay")));
                Some(cache.unwrap_or_default().join("table-peers/bin/python"))
            }
        };
        match &python {
            Some(path) if !path.exists() => Err(Error::not_found(format!(
                "{} is not there: run bench/table/peers/setup, or leave these peers out with --python none",
                path.display()
            ))),
            _ => Ok(Self { python, rounds }),
        }
    }

    /// Runs a case of `peers/peers.py` on files that it makes from the Arrow file in `dir`.
    pub fn run(&self, case: &str, dir: &Path, arguments: &[String]) -> Result<Vec<Peer>> {
        let Some(python) = &self.python else { return Ok(Vec::new()) };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/peers.py");
        let output = Command::new(python)
            .arg(&script)
            .args([case, &self.rounds.to_string()])
            .arg(dir)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .context(|| python.display())?;
        if !output.status.success() {
            return Err(Error::internal(format!("{} {case} failed: {}", script.display(), output.status)));
        }
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let parsed = lines.map(|line| serde_json::from_slice(line).map_err(|error| Error::internal(error.to_string())));
        parsed.collect()
    }
}
