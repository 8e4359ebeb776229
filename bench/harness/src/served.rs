//! A process that a benchmark runs against.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use forebay_types::{Error, Result, ResultExt};

/// A process that answers a line with a line; dropping it kills it.
pub struct Served {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Served {
    /// Starts this program again with other arguments; gives the first line that it says.
    pub fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Result<(Self, String)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        Self::of(command)
    }

    /// The same of any program.
    pub fn of(mut command: Command) -> Result<(Self, String)> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.context(|| format!("{command:?}"))?;
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut served = Self { child, answers };
        let hello = served.line()?;
        Ok((served, hello))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it answers to a line.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        let stdin = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(stdin, "{line}")?;
        self.line()
    }

    /// Closes its input, and waits until it has ended by itself.
    pub fn end(mut self) -> Result<()> {
        match self.child.wait()? {
            status if status.success() => Ok(()),
            status => Err(Error::internal(format!("a process of the benchmark ended with {status}"))),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match line.trim_end() {
            "" => Err(Error::internal("a process of the benchmark ended early; its error is above")),
            line => Ok(line.to_string()),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already; either way it is gone after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
