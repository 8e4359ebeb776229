//! How a command ends: its exit code, and what the standard error says of it.

use std::io::{self, IsTerminal};

use forebay_types::{Error, ErrorKind};

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
    /// Ctrl-C, SIGTERM or SIGHUP: exit code 130, as shells expect.
    Interrupted,
    /// Some of several things failed, and each was said when it did: exit code 1.
    Said,
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
            Self::Said => 1,
        }
    }
}

/// Several things that a command does one after the other: one that fails keeps it from none of the others.
pub(crate) struct Several {
    are_more: bool,
    failed: bool,
}

impl Several {
    pub(crate) fn of(count: usize) -> Self {
        Self { are_more: count > 1, failed: false }
    }

    /// How one of them ended. What fails of several is said here; what the others would meet as well ends the command: who is asked is away,
    /// nobody reads.
    pub(crate) fn ended(&mut self, outcome: Outcome) -> Outcome {
        let failure = match outcome {
            Err(failure) if self.are_more => failure,
            outcome => return outcome,
        };
        let is_of_one = match &failure {
            Failure::Usage(_) => true,
            Failure::Failed(error) => !matches!(error.kind(), ErrorKind::Retry | ErrorKind::Closed),
            Failure::ReaderGone | Failure::Interrupted | Failure::Said => false,
        };
        if !is_of_one {
            return Err(failure);
        }
        failure.report();
        self.failed = true;
        Ok(())
    }

    /// How all of them ended.
    pub(crate) fn finish(self) -> Outcome {
        if self.failed { Err(Failure::Said) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_of_several_is_no_end_of_the_others() {
        let missing = || Err(Failure::from(Error::not_found("/lake/x: there is no such object")));
        let mut one = Several::of(1);
        assert!(matches!(one.ended(missing()), Err(Failure::Failed(_))));
        let mut more = Several::of(2);
        assert!(more.ended(missing()).is_ok() && more.ended(Err(Failure::Usage("a folder".to_string()))).is_ok());
        assert!(matches!(more.finish(), Err(Failure::Said)));
        let mut away = Several::of(2);
        assert!(away.ended(Err(Failure::from(Error::retry("nobody answers")))).is_err());
        assert!(away.ended(Err(Failure::Interrupted)).is_err() && away.ended(Ok(())).is_ok() && away.finish().is_ok());
    }
}
