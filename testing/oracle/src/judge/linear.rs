//! Whether calls can be put into an order that explains all answers: by the checker of the crate `todc-utils`, in bounded time.

use std::cell::RefCell;
use std::sync::mpsc;
use std::time::Duration;

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

/// The search is exponential for unlucky histories. So long that a busy machine decides nothing.
const SEARCH_WITHIN: Duration = Duration::from_secs(120);
/// The end of a call that was never answered: it may have been done at any time, or not yet.
pub(super) const NEVER: u64 = u64::MAX;

/// A call: when it was made, when it was answered, and what it was.
pub(super) type Timed<T> = (u64, u64, T);

/// What the search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Linearizable,
    NotLinearizable,
    Undecided,
}

/// A search that somebody waits for.
type Search = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The thread that searches for this one: a thread for each of hundreds of histories takes longer than most searches.
    static SEARCHER: RefCell<Option<mpsc::Sender<Search>>> = const { RefCell::new(None) };
}

/// Looks for an order of the calls on one thing.
pub(super) fn check<S>(calls: Vec<Timed<S::Operation>>) -> Verdict
where
    S: Specification,
    S::Operation: Clone + Send + 'static,
{
    if calls.is_empty() {
        return Verdict::Linearizable;
    }
    let history = actions(calls);
    let (tell, told) = mpsc::channel();
    let search = move || {
        // Whoever asked may have given it up.
        let _ = tell.send(WGLChecker::<S>::is_linearizable(History::from_actions(history)));
    };
    let searcher = SEARCHER.take().unwrap_or_else(begin);
    searcher.send(Box::new(search)).expect("it waits for the next search");
    match told.recv_timeout(SEARCH_WITHIN) {
        Ok(is_linearizable) => {
            SEARCHER.set(Some(searcher));
            if is_linearizable { Verdict::Linearizable } else { Verdict::NotLinearizable }
        }
        // A search that takes too long is left to itself: it holds nothing that anybody waits for.
        Err(_) => Verdict::Undecided,
    }
}

/// A thread that does one search after the other, until nobody has any for it.
fn begin() -> mpsc::Sender<Search> {
    let (sender, searches) = mpsc::channel::<Search>();
    std::thread::spawn(move || searches.into_iter().for_each(|search| search()));
    sender
}

/// Begins and ends in their order; where both are at one time, the calls may have overlapped. Each call is a process of its own.
fn actions<T: Clone>(calls: Vec<Timed<T>>) -> Vec<(usize, Action<T>)> {
    let mut actions = Vec::with_capacity(2 * calls.len());
    for (process, (begin, end, call)) in calls.into_iter().enumerate() {
        assert!(begin <= end, "a call ends after it began");
        actions.push(((begin, false), (process, Action::Call(call.clone()))));
        actions.push(((end, true), (process, Action::Response(call))));
    }
    actions.sort_by_key(|(at, _)| *at);
    actions.into_iter().map(|(_, action)| action).collect()
}
