//! The asking side's calls that wait for their answers.

use std::collections::HashMap;

use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Answer;

/// So many that waited lately are remembered: a caller who is alone again after thousands is soon taken for one.
const LATELY_MAX: usize = 32;

/// The requests of one connection that wait for their replies, by tag.
#[derive(Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Result<Answer>>>,
    last_tag: u64,
    /// As many as wait for answers, or waited lately: one less with each call, so that those who ask anew when many answers come at
    /// once count as many still.
    lately: usize,
    /// Why there are no more calls.
    ended: Option<Error>,
}

impl Calls {
    /// A tag for a new request, how many others wait for answers or did so lately, and where its answer will come. Fails when the
    /// connection has ended.
    pub(crate) fn begin(&self) -> Result<(u64, usize, oneshot::Receiver<Result<Answer>>)> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(error.clone());
        }
        // Tags count up, so none is used twice while a connection can live.
        state.last_tag += 1;
        let tag = state.last_tag;
        state.lately = state.waiting.len().max(state.lately.saturating_sub(1)).min(LATELY_MAX);
        state.waiting.insert(tag, sender);
        Ok((tag, state.lately, receiver))
    }

    /// Whether anyone waits for this reply still.
    pub(crate) fn is_waiting(&self, tag: u64) -> bool {
        self.state.lock().waiting.contains_key(&tag)
    }

    /// Whether `tag` was ever given out.
    pub(crate) fn knows(&self, tag: u64) -> bool {
        (1..=self.state.lock().last_tag).contains(&tag)
    }

    /// Hands an answer to its caller; one that no one waits for is dropped.
    pub(crate) fn answer(&self, tag: u64, answer: Answer) {
        let caller = self.state.lock().waiting.remove(&tag);
        if let Some(caller) = caller {
            // The caller may be gone since.
            let _ = caller.send(Ok(answer));
        }
    }

    /// Gives a call up; whether it was waiting still.
    pub(crate) fn give_up(&self, tag: u64) -> bool {
        self.state.lock().waiting.remove(&tag).is_some()
    }

    /// Fails all calls, now and from now on; the first reason stays.
    pub(crate) fn end(&self, error: Error) {
        let (waiting, error) = {
            let mut state = self.state.lock();
            let error = state.ended.get_or_insert(error).clone();
            (std::mem::take(&mut state.waiting), error)
        };
        for caller in waiting.into_values() {
            // The caller may be gone since.
            let _ = caller.send(Err(error.clone()));
        }
    }

    /// Why there are no more calls.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.state.lock().ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_anew_when_many_answers_came_counts_as_many_still() {
        let calls = Calls::default();
        let ask = |count: usize| (0..count).map(|_| calls.begin().unwrap()).collect::<Vec<_>>();
        assert_eq!(ask(16).iter().map(|(_, others, _)| *others).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        (1..=16).for_each(|tag| assert!(calls.give_up(tag)));
        assert!(ask(8).iter().all(|(_, others, _)| *others >= 7), "they are as many as before");
        (17..=24).for_each(|tag| assert!(calls.give_up(tag)));
        // One at a time is alone again, after as many calls as there were.
        let one = |tag| {
            let (_, others, _) = calls.begin().unwrap();
            assert!(calls.give_up(tag));
            others
        };
        let alone: Vec<usize> = (25..45).map(one).collect();
        assert_eq!((alone[0], alone[19]), (6, 0));
        assert_eq!(ask(1000)[999].1, LATELY_MAX);
        (45..1045).for_each(|tag| assert!(calls.give_up(tag)));
        let alone: Vec<usize> = (1045..1045 + LATELY_MAX as u64).map(one).collect();
        assert_eq!(alone[LATELY_MAX - 1], 0, "not after a thousand calls");
    }
}
