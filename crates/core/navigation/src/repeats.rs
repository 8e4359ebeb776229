//! Calls that change a log, of which each is made once however often it is asked for.
//!
//! Who asks again says the number of an object that the log had before he asked first: an object that has his call has a larger one. So whoever knows
//! the calls of all objects behind that can say what became of it, and who does not refuses it, as one that may have been made.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The object with this number has it.
    By(u64),
    /// No object that was read has it.
    No,
    /// One may have it of which it is not known any more, or never was.
    Unknown,
}

/// The last calls that a log has as far as it was read, by what their askers drew.
///
/// ```
/// use forebay_navigation::{Calls, Made};
///
/// // What is before object 8 is in a shard's files.
/// let mut calls = Calls::new(8, 100);
/// calls.remember(77, 8);
/// assert_eq!(calls.made(77, Some(3)), Made::By(8));
/// assert_eq!(calls.made(78, None), Made::No, "nobody asked for it before");
/// assert_eq!(calls.made(78, Some(7)), Made::No, "it would be in object 8, or behind that");
/// assert_eq!(calls.made(78, Some(6)), Made::Unknown, "object 7 may have it");
/// ```
#[derive(Clone, Debug)]
pub struct Calls {
    /// With the numbers of their objects.
    order: VecDeque<(u128, u64)>,
    numbers: HashMap<u128, u64>,
    /// The first object of which all calls are known, as of those behind it.
    since: u64,
    most: usize,
}

impl Calls {
    /// Of a log that is read from the object `from` on; so many are remembered at most.
    pub fn new(from: u64, most: usize) -> Self {
        Self { order: VecDeque::new(), numbers: HashMap::new(), since: from, most }
    }

    /// The object with a number has a call. Objects come in their order.
    pub fn remember(&mut self, call: u128, number: u64) {
        debug_assert!(self.order.back().is_none_or(|(_, last)| *last <= number), "a log is read forwards");
        if let Entry::Vacant(unknown) = self.numbers.entry(call) {
            unknown.insert(number);
            self.order.push_back((call, number));
        }
        if self.order.len() > self.most
            && let Some((oldest, of)) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
            self.since = self.since.max(of + 1);
        }
        assert_eq!(self.order.len(), self.numbers.len(), "each call that is remembered goes in its turn");
    }

    /// The first object of which all calls are known, as of those behind it.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Objects that end where what is known begins were read: the calls that they have, with the numbers of these. Nothing is known more where more
    /// would be remembered than may be, or what is known begins elsewhere by now.
    pub fn recall(&mut self, objects: Range<u64>, calls: &[(u128, u64)]) {
        debug_assert!(calls.is_sorted_by_key(|(_, number)| *number), "objects come in their order");
        debug_assert!(calls.iter().all(|(_, number)| objects.contains(number)), "calls are of these objects");
        if objects.end != self.since || self.order.len() + calls.len() > self.most {
            return;
        }
        for (call, number) in calls.iter().rev() {
            if self.numbers.insert(*call, *number).is_none() {
                self.order.push_front((*call, *number));
            }
        }
        self.since = objects.start;
        assert_eq!(self.order.len(), self.numbers.len(), "each call that is remembered goes in its turn");
    }

    /// The number of the object that has a call.
    pub fn number_of(&self, call: u128) -> Option<u64> {
        self.numbers.get(&call).copied()
    }

    /// What became of a call. Where it was asked for before, the log had the object `after` before that.
    pub fn made(&self, call: u128, after: Option<u64>) -> Made {
        match self.number_of(call) {
            Some(number) => Made::By(number),
            None if after.is_some_and(|after| after.saturating_add(1) < self.since) => Made::Unknown,
            None => Made::No,
        }
    }
}
