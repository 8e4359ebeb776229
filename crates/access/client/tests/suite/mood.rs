//! What a worker that does as it is told does.

use std::time::Duration;

/// What a worker does with reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    Well,
    /// Answers with copies.
    Full,
    /// Answers after a while.
    Slow(Duration),
    Hangs,
    /// Answers nothing at all any more.
    Stopped,
    Fails(forebay_types::ErrorKind),
    /// Answers with a span outside its tier.
    Lies,
}
