//! Which workers one asks for pages that it misses, and in which order.

use std::cmp::Reverse;
use std::collections::VecDeque;

use forebay_types::WorkerId;

/// Workers that are asked for a run at most.
const ASKED_MAX: usize = 3;

/// Those whom a line of the routing table names, for [`Asking`]: the one with the largest part first, which is the likeliest to have what is
/// read.
pub fn by_part(line: &[(WorkerId, u32)]) -> Vec<WorkerId> {
    let mut line = line.to_vec();
    line.sort_by_key(|(worker, part)| (Reverse(*part), *worker));
    line.into_iter().map(|(worker, _)| worker).collect()
}

/// Whom a worker asks for pages before shared storage, one after the other, each once.
///
/// Whom one of them names goes before those who are left, as it has heard of pages about there. The home of the pages is asked in any case, as the
/// last one if need be: what was read there before others missed it, as footers are while a query is planned, nobody else knows of.
#[derive(Clone, Debug)]
pub struct Asking {
    left: VecDeque<WorkerId>,
    asked: Vec<WorkerId>,
    home: Option<WorkerId>,
}

impl Asking {
    /// These in their order, each where it comes first. Where the `home` is none of them, it is not asked.
    pub fn new(workers: impl IntoIterator<Item = WorkerId>, home: Option<WorkerId>) -> Self {
        let mut left = VecDeque::new();
        for worker in workers {
            if !left.contains(&worker) {
                left.push_back(worker);
            }
        }
        let home = home.filter(|home| left.contains(home));
        Self { left, asked: Vec::with_capacity(ASKED_MAX), home }
    }

    /// Whether there is somebody who was not asked, and may have some.
    pub fn is_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// Who is asked next; none when enough of them were.
    pub fn turn(&mut self) -> Option<WorkerId> {
        if self.asked.len() == ASKED_MAX {
            return None;
        }
        let is_last = self.asked.len() + 1 == ASKED_MAX;
        let home = self.home.filter(|home| is_last && self.left.contains(home));
        let next = home.or_else(|| self.left.front().copied())?;
        self.left.retain(|worker| *worker != next);
        self.asked.push(next);
        assert!(self.asked.len() <= ASKED_MAX, "{} workers are asked for one run", self.asked.len());
        Some(next)
    }

    /// Who was asked last names these, which may be asked, the likeliest first.
    pub fn named(&mut self, others: impl DoubleEndedIterator<Item = WorkerId>) {
        for other in others.rev() {
            if !self.asked.contains(&other) {
                self.left.retain(|worker| *worker != other);
                self.left.push_front(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[u64]) -> Vec<WorkerId> {
        numbers.iter().copied().map(WorkerId).collect()
    }

    fn rest(mut asking: Asking) -> Vec<WorkerId> {
        std::iter::from_fn(|| asking.turn()).collect()
    }

    #[test]
    fn who_has_the_largest_part_is_asked_first_and_of_equal_ones_the_first() {
        let line = [(3, 20), (9, 20), (4, 60)].map(|(worker, part)| (WorkerId(worker), part));
        assert_eq!(by_part(&line), ids(&[4, 3, 9]));
        assert!(by_part(&[]).is_empty());
    }

    #[test]
    fn each_is_asked_once_and_no_more_than_three() {
        let asking = Asking::new(ids(&[5, 4, 5, 3, 2]), None);
        assert_eq!(rest(asking.clone()), ids(&[5, 4, 3]));
        let mut asked = asking;
        while asked.turn().is_some() {}
        assert!(asked.is_left(), "the fourth may have some");
        assert!(!Asking::new([], None).is_left());
        let mut all = Asking::new(ids(&[5, 4]), None);
        assert_eq!((all.turn(), all.is_left(), all.turn(), all.is_left()), (Some(WorkerId(5)), true, Some(WorkerId(4)), false));
    }

    #[test]
    fn who_is_named_goes_first_but_for_those_who_were_asked() {
        let mut asking = Asking::new(ids(&[5, 4, 3]), None);
        asking.turn();
        asking.named(ids(&[3, 9, 5]).into_iter());
        assert_eq!(rest(asking), ids(&[3, 9]));
    }

    #[test]
    fn the_home_was_not_asked_for_what_it_had_read_since_others_were_named() {
        let mut asking = Asking::new(ids(&[5, 4, 7]), Some(WorkerId(7)));
        assert_eq!(asking.turn(), Some(WorkerId(5)));
        asking.named(ids(&[1, 2, 3]).into_iter());
        assert_eq!(rest(asking), ids(&[1, 7]));
        let mut early = Asking::new(ids(&[7, 5, 4]), Some(WorkerId(7)));
        assert_eq!(early.turn(), Some(WorkerId(7)));
        early.named(ids(&[1, 2, 3]).into_iter());
        assert_eq!(rest(early), ids(&[1, 2]), "it was asked already");
    }
}
