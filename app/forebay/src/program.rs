//! How this program is started once more, by itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use forebay_types::{Error, Result, ResultExt};

static THIS: OnceLock<(Program, Vec<OsString>)> = OnceLock::new();

/// What starts this program: a file, and what comes before the command's own arguments.
#[derive(Debug, Clone)]
pub struct Program {
    /// None for the file of this process.
    file: Option<PathBuf>,
    before: Vec<OsString>,
}

impl Program {
    /// The file of this process.
    pub fn this_file() -> Self {
        Self { file: None, before: Vec::new() }
    }

    /// Another program that calls this one, such as Python with `-m forebay`.
    pub fn called_by(file: PathBuf, before: Vec<OsString>) -> Self {
        Self { file: Some(file), before }
    }

    /// A process has one command: what the first one was started with stays.
    pub(crate) fn started_with(self, arguments: Vec<OsString>) {
        let _ = THIS.set((self, arguments));
    }

    fn command(&self) -> Result<Command> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => std::env::current_exe().context(|| "can't find this program's file")?,
        };
        let mut command = Command::new(file);
        command.args(&self.before);
        Ok(command)
    }
}

/// This program once more, without arguments.
pub(crate) fn again() -> Result<Command> {
    let (program, _) = THIS.get().ok_or_else(|| Error::internal("no command was started"))?;
    program.command()
}

/// This program once more, with the arguments that it has.
pub(crate) fn again_as_it_is() -> Result<Command> {
    let (program, arguments) = THIS.get().ok_or_else(|| Error::internal("no command was started"))?;
    let mut command = program.command()?;
    command.args(arguments.iter().skip(1));
    Ok(command)
}
