//! Commands of the binary, as the cluster's owner gives them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::{environment, flag};

/// Commands to one cluster.
#[derive(Clone, Debug)]
pub struct Commands {
    binary: PathBuf,
    folder: PathBuf,
    coordinators: String,
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said beside that.
    pub stderr: String,
}

impl Commands {
    pub(super) fn new(binary: &Path, folder: &Path, coordinators: &str) -> Self {
        Self { binary: binary.to_owned(), folder: folder.to_owned(), coordinators: coordinators.to_owned() }
    }

    /// Runs one, with variables of its environment beside those that all have. None where it takes longer, which ends it.
    pub async fn run(&self, arguments: &[&str], variables: &[(&str, &str)], within: Duration) -> io::Result<Option<Ran>> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg(flag("coordinator", &self.coordinators)).current_dir(&self.folder).env_clear();
        // What one leaves there that is killed goes with the cell.
        command.env("TMPDIR", &self.folder).envs(environment(&self.folder)).envs(variables.iter().copied()).kill_on_drop(true);
        let running = command.stdin(Stdio::null()).output();
        let Ok(output) = timeout(within, running).await else { return Ok(None) };
        let output = output?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Some(Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }))
    }
}
