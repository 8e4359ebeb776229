//! How a command ends: its exit code, and what the standard error says of it.

use std::io::{self, IsTerminal};

use forebay_types::Error;

use crate::terminal::{OF_LINES, visible};

/// Why a command did not end well, by the exit code that it gives.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or the configuration is wrong: exit code 2.
    Usage(String),
    /// It was tried and failed: exit code 1.
    Failed(Error),
    /// Who read our output has gone, as in `forebay cat .. | head`: nothing to say, exit code 0.
    ReaderGone,
    /// Ctrl-C or SIGTERM: exit code 130, as shells expect.
    Interrupted,
}

/// What commands return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Failure {
    /// A failed write to the standard output.
    pub(crate) fn of_stdout(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::Failed(Error::from(error).context("can't write to the standard output")),
        }
    }

    /// Says what failed on the standard error, and gives the exit code.
    pub(crate) fn report(&self) -> u8 {
        // Names of objects and what servers say are in these; a terminal must not obey them.
        let say = |message: String| match io::stderr().is_terminal() {
            true => eprintln!("forebay: {}", visible(&message, OF_LINES)),
            false => eprintln!("forebay: {message}"),
        };
        match self {
            Self::Usage(message) => {
                say(message.clone());
                2
            }
            Self::Failed(error) => {
                say(error.to_string());
                1
            }
            Self::ReaderGone => 0,
            Self::Interrupted => 130,
        }
    }
}
