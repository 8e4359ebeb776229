//! The asking side's calls that wait for their answers.

use std::collections::HashMap;

use forebay_types::{Error, Result};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Answer;

/// The requests of one connection that wait for their replies, by tag.
#[derive(Default)]
pub(crate) struct Calls {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Result<Answer>>>,
    last_tag: u64,
    /// Why there are no more calls.
    ended: Option<Error>,
}

impl Calls {
    /// A tag for a new request, how many others wait for answers, and where its answer will come. Fails when the connection has ended.
    pub(crate) fn begin(&self) -> Result<(u64, usize, oneshot::Receiver<Result<Answer>>)> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(error) = &state.ended {
            return Err(error.clone());
        }
        // Tags count up, so none is used twice while a connection can live.
        state.last_tag += 1;
        let tag = state.last_tag;
        let others = state.waiting.len();
        state.waiting.insert(tag, sender);
        Ok((tag, others, receiver))
    }

    /// Whether somebody waits for the answer to `tag`; none of one that was never given out.
    pub(crate) fn waits(&self, tag: u64) -> Option<bool> {
        let state = self.state.lock();
        (1..=state.last_tag).contains(&tag).then(|| state.waiting.contains_key(&tag))
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

    pub(crate) fn ended(&self) -> Option<Error> {
        self.state.lock().ended.clone()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn answer() -> Answer {
        Answer { version: 9, meta: Bytes::new(), payload: Bytes::new(), descriptor: None }
    }

    #[test]
    fn a_tag_is_known_once_it_was_given_out_and_waits_until_its_answer() {
        let calls = Calls::default();
        assert_eq!(calls.waits(1), None);
        let (first, others, mut answered) = calls.begin().unwrap();
        assert_eq!((first, others), (1, 0));
        let (second, others, _given_up) = calls.begin().unwrap();
        assert_eq!((second, others), (2, 1));
        assert_eq!([0, 1, 2, 3].map(|tag| calls.waits(tag)), [None, Some(true), Some(true), None]);
        calls.answer(first, answer());
        assert!(answered.try_recv().unwrap().is_ok());
        assert!(!calls.give_up(first), "its answer has come");
        assert!(calls.give_up(second));
        assert_eq!([1, 2].map(|tag| calls.waits(tag)), [Some(false), Some(false)], "what comes late is no error");
    }
}
