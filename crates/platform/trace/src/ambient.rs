//! The span that what runs here is done for. It goes with a future, and not into the tasks that the future spawns.

use forebay_protocol::TraceContext;
use forebay_types::OperationId;

use crate::recorder::{Recorder, is_on};

tokio::task_local! {
    /// None where it was decided that nothing is recorded.
    static CURRENT: Option<TraceContext>;
}

/// The place in a trace that this future runs at.
pub fn current() -> Option<TraceContext> {
    decided().flatten()
}

/// The same; none on the outside where nobody has decided yet whether a trace is recorded.
pub(crate) fn decided() -> Option<Option<TraceContext>> {
    if is_on() { CURRENT.try_with(|current| *current).ok() } else { None }
}

/// Runs a future at a place in a trace; with none as it would run without this.
pub async fn within<F: Future>(context: Option<TraceContext>, future: F) -> F::Output {
    if context.is_some() { CURRENT.scope(context, future).await } else { future.await }
}

/// Runs a future for which it was decided whether it is recorded: with none nothing within it begins a trace of its own.
pub(crate) async fn decide<F: Future>(context: Option<TraceContext>, future: F) -> F::Output {
    if is_on() { CURRENT.scope(context, future).await } else { future.await }
}

/// An operation is done for the span that goes on here: its reads belong to that trace, wherever they are made in this process.
pub fn bind(operation: OperationId) {
    if let (Some(recorder), Some(context)) = (Recorder::get(), current()) {
        recorder.bind(operation, context);
    }
}

/// Where in a trace an operation is: at what goes on here, where that is a part of the same trace.
pub fn of(operation: OperationId) -> Option<TraceContext> {
    let known = Recorder::get()?.of(operation)?;
    Some(current().filter(|current| current.trace == known.trace).unwrap_or(known))
}
