//! Descriptors that are kept for connections when there are no others left.

use std::fs::File;
use std::io;

use rustix::io::Errno;

/// So many: of who holds on to one there are few at a port that is looked at now and then.
const KEPT: usize = 8;

/// Descriptors that are given up one after the other while a process has no others, so that who looks whether it is there is answered all
/// the same.
#[derive(Debug, Default)]
pub struct Spare(Vec<File>);

impl Spare {
    /// Takes those that are missing, as far as there are any.
    pub fn keep(&mut self) {
        while self.0.len() < KEPT {
            let Ok(file) = File::open("/dev/null") else { return };
            self.0.push(file);
        }
    }

    /// Whether something failed for want of descriptors and there is one for it now.
    pub fn gives(&mut self, error: &io::Error) -> bool {
        let errno = Errno::from_io_error(error);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE)) && self.0.pop().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_given_up_for_want_of_others_alone_and_taken_again() {
        let (mut spare, none_left) = (Spare::default(), io::Error::from(Errno::MFILE));
        assert!(!spare.gives(&none_left), "none is kept yet");
        for _ in 0..2 {
            spare.keep();
            assert!(!spare.gives(&io::ErrorKind::ConnectionAborted.into()));
            let given = (0..2 * KEPT).filter(|_| spare.gives(&none_left)).count();
            assert_eq!(given, KEPT);
        }
    }
}
