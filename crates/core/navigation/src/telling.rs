//! What a worker does with an object of a log that comes with the word that shared storage has it.
//!
//! The word may come late, twice, in another order than objects were stored in, or not at all. So the object is taken over where it is exactly the
//! next one; whatever fits less well says as much as a word without it: shared storage is looked into before anything is answered.

/// How far a shard has read its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRead {
    /// The number of the first object that it lacks.
    pub next: u64,
    /// The number of the first one that shared storage was not seen to have: `next`, unless some were taken over from two disks.
    pub unseen: u64,
    /// Nothing follows any more.
    pub is_ended: bool,
}

/// What becomes of such an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It is the next one, and is taken over.
    Take,
    /// It was taken over from two disks, and shared storage is seen to have it.
    See,
    /// A look into shared storage was faster.
    Has,
    /// What follows in the log is not known by it.
    Look,
}

impl Telling {
    /// Whether the shard has the object now: the word of it leaves nothing to be looked for.
    pub fn is_known(self) -> bool {
        self != Self::Look
    }
}

/// What becomes of the object with a number: `is_same` where what was taken over under that number is this object, `may_take` where there is room
/// for it, and somebody answers from it.
pub fn told(read: &LogRead, number: u64, is_same: bool, may_take: bool) -> Telling {
    debug_assert!(read.unseen <= read.next, "what was not seen was taken over");
    let has_unseen = read.unseen < read.next;
    let telling = match number {
        _ if has_unseen && number == read.unseen && is_same => Telling::See,
        _ if has_unseen => Telling::Look,
        _ if number < read.next && is_same => Telling::Has,
        _ if number == read.next && !read.is_ended && may_take => Telling::Take,
        _ => Telling::Look,
    };
    debug_assert!(telling != Telling::Take || number == read.next, "a log is taken over without gaps");
    debug_assert!(!telling.is_known() || number <= read.next, "what is behind a gap is not known");
    telling
}
