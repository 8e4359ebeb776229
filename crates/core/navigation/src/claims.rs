//! Logs that one worker writes alone for a while, so that a change is there when two disks have it: who may write, what each of the two
//! takes, and what there is when one of them is gone.
//!
//! A claim is an object of the log: it names who writes what follows, and the second worker, which has the same on its disk. All that
//! counts is in shared storage, written by number under a condition; what the two have is what may follow there. Who wants to write past a
//! claim ends it first: one of the two promises to take nothing more ([`Kept::close`]), what it has goes to shared storage, and then an
//! object that says that the claim is over. Since nothing is acknowledged that not both have, one of them is enough.

/// What one of the two workers of a claim has on its disk: objects with consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    first: u64,
    end: u64,
    is_closed: bool,
}

/// What becomes of an object that one of the two is to have on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is written, behind those before it.
    Write,
    /// It is there.
    Has,
    /// It is not written: nothing more is, or one before it is missing.
    Refuse,
}

impl Kept {
    /// Nothing yet; the first object will have the number `first`.
    pub fn new(first: u64) -> Self {
        Self { first, end: first, is_closed: false }
    }

    /// What a process before this one left: it takes nothing more, since nobody knows what it has promised.
    pub fn left(first: u64, end: u64) -> Self {
        debug_assert!(first <= end, "objects are numbered upwards");
        Self { first, end, is_closed: true }
    }

    /// What becomes of the object with a number.
    pub fn take(&self, number: u64) -> Take {
        debug_assert!(self.first <= self.end, "objects are numbered upwards");
        match number {
            _ if self.is_closed => Take::Refuse,
            _ if (self.first..self.end).contains(&number) => Take::Has,
            _ if number == self.end => Take::Write,
            _ => Take::Refuse,
        }
    }

    /// The next object is on disk.
    pub fn wrote(&mut self) {
        assert!(!self.is_closed, "what is closed takes nothing more");
        self.end += 1;
    }

    /// Takes nothing more from now on.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether it takes nothing more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The number of its first object.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number behind its last object.
    pub fn end(&self) -> u64 {
        self.end
    }
}

/// What who ends a claim has heard of one of its two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It takes nothing more, and has the objects before this number.
    Closed(u64),
    /// It knows nothing of the claim: its disk is not the one that it had.
    Unknown,
    /// It is no worker of the cluster now. It may come back.
    Gone,
    /// It did not answer.
    Silent,
}

/// By what a claim is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By what the writer has.
    ByWriter,
    /// By what the second worker has.
    BySecond,
    /// Nobody has answered who has it: it is asked again.
    Wait,
    /// Neither has it any more, or is there: what was acknowledged and is not in shared storage may be lost.
    Lost,
}

/// How a claim is ended by what was heard of its two workers. What was acknowledged both have, so either is enough; that one of them knows nothing
/// of the claim does not mean that there was nothing.
pub fn ending(writer: Word, second: Word) -> Ending {
    match (writer, second) {
        (Word::Closed(writer), Word::Closed(second)) if second > writer => Ending::BySecond,
        (Word::Closed(_), _) => Ending::ByWriter,
        (_, Word::Closed(_)) => Ending::BySecond,
        (Word::Silent, _) | (_, Word::Silent) => Ending::Wait,
        _ => Ending::Lost,
    }
}

/// Who has the claim that a log's last object is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Nobody: anyone may write, as the next object.
    Free,
    /// This process, which goes on with it.
    Here,
    /// Another worker, or a process of this one that is gone.
    Elsewhere,
}

/// What a writer does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It writes to shared storage, and acknowledges then.
    Store,
    /// It claims the log.
    Claim,
    /// It writes to its disk and the second worker's, under its claim.
    Keep,
    /// It ends the claim that is there.
    End,
}

/// What a writer does first: `wants_two` is what the dataset is to have, `has_second` whether there is a second worker.
pub fn turn(wants_two: bool, has_second: bool, claimed: Claimed) -> Turn {
    match claimed {
        Claimed::Elsewhere => Turn::End,
        Claimed::Here if wants_two => Turn::Keep,
        Claimed::Here => Turn::End,
        Claimed::Free if wants_two && has_second => Turn::Claim,
        Claimed::Free => Turn::Store,
    }
}

/// What a claim is held to, beyond which its writer waits or makes a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Bytes that may be on two disks and not in shared storage.
    pub behind_bytes: u64,
    /// How long an object may be so before no more are taken, in milliseconds.
    pub behind_ms: u64,
    /// Bytes of one claim, which are on disk until it ends.
    pub bytes: u64,
    /// How long nothing comes until it ends, in milliseconds.
    pub idle_ms: u64,
}

/// What workers are held to.
pub const CLAIM_LIMITS: ClaimLimits = ClaimLimits { behind_bytes: 8 << 20, behind_ms: 3_000, bytes: 32 << 20, idle_ms: 2_000 };

impl ClaimLimits {
    /// Whether one more object may be acknowledged before those are in shared storage that are not, the oldest since so long.
    pub fn takes_more(&self, behind_bytes: u64, behind_ms: u64) -> bool {
        debug_assert!(self.behind_bytes <= self.bytes, "what is behind is of one claim");
        behind_bytes < self.behind_bytes && behind_ms < self.behind_ms
    }
}
