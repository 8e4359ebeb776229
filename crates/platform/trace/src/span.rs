//! A piece of work, from its beginning to its end.

use std::time::{Duration, Instant};

use forebay_protocol::{TraceContext, TraceParent};
use forebay_types::Error;
use http::HeaderMap;

use crate::ambient::{decide, decided};
use crate::record::{Kind, Record, Value};
use crate::recorder::{Recorder, is_on};

/// The header that says what a request is a part of.
const TRACEPARENT: &str = "traceparent";
/// What is told of a span beside its name, at most.
const ATTRIBUTES_MAX: usize = 16;

/// A piece of work that goes on, recorded or not; its end is where this is dropped.
#[must_use = "a span ends where it is dropped"]
#[derive(Debug, Default)]
pub struct Span(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    record: Record,
    began: Instant,
}

impl Span {
    /// One that nobody records.
    pub fn none() -> Self {
        Self(None)
    }

    /// What somebody outside asks for, below what that one says of its trace. One who says nothing begins a trace here, or the part of
    /// them that is recorded.
    pub fn asked(by: TraceParent, name: &'static str) -> Self {
        match (by, Recorder::get()) {
            (TraceParent::Recorded(parent), Some(_)) => Self::below(Some(parent), name, Kind::Server),
            (TraceParent::None, Some(recorder)) => Self::first(recorder, name, Kind::Server),
            _ => Self::none(),
        }
    }

    /// The same of a request that has headers of HTTP.
    pub fn of_request(headers: &HeaderMap, name: &'static str) -> Self {
        Self::asked(parent_in(headers), name)
    }

    /// A part of what goes on here; where nothing was begun, the first of a trace, or of the part of them that is recorded.
    pub fn here(name: &'static str) -> Self {
        match (decided(), Recorder::get()) {
            (Some(parent), _) => Self::below(parent, name, Kind::Internal),
            (None, Some(recorder)) => Self::first(recorder, name, Kind::Internal),
            (None, None) => Self::none(),
        }
    }

    /// A span below another; none below none.
    pub fn below(parent: Option<TraceContext>, name: &'static str, kind: Kind) -> Self {
        match parent {
            Some(parent) if Recorder::get().is_some() => Self::open(parent.trace, Some(parent.span), name, kind),
            _ => Self::none(),
        }
    }

    fn first(recorder: &Recorder, name: &'static str, kind: Kind) -> Self {
        if recorder.takes_one() { Self::open(forebay_runtime::random::<u128>() | 1, None, name, kind) } else { Self::none() }
    }

    fn open(trace: u128, parent: Option<u64>, name: &'static str, kind: Kind) -> Self {
        let context = TraceContext { trace, span: forebay_runtime::random::<u64>() | 1 };
        let (began, attributes) = (forebay_runtime::system_time(), Vec::new());
        let record = Record { context, parent, name, kind, began, took: Duration::ZERO, attributes, error: None };
        Self(Some(Box::new(Open { record, began: forebay_runtime::now() })))
    }

    /// Where it is, for what is done for it.
    pub fn context(&self) -> Option<TraceContext> {
        self.0.as_ref().map(|open| open.record.context)
    }

    /// Runs a future for it. Where it is not recorded, nothing within the future begins a trace of its own.
    pub fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        decide(self.context(), future)
    }

    /// Tells something of it; what costs anything to say is said in `value`.
    pub fn set<V: Into<Value>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(open) = &mut self.0
            && open.record.attributes.len() < ATTRIBUTES_MAX
        {
            open.record.attributes.push((key, value().into()));
        }
    }

    /// It has failed.
    pub fn fail(&mut self, error: &Error) {
        if let Some(open) = &mut self.0 {
            let Value::Text(text) = error.message().into() else { return };
            open.record.error = Some(text);
        }
    }
}

/// What headers of HTTP say of the trace that a request is a part of. Where nothing is recorded they are not looked at.
pub fn parent_in(headers: &HeaderMap) -> TraceParent {
    if !is_on() {
        return TraceParent::None;
    }
    let said = headers.get(TRACEPARENT).and_then(|header| header.to_str().ok());
    said.map_or(TraceParent::None, TraceParent::read)
}

impl Drop for Span {
    fn drop(&mut self) {
        if let (Some(open), Some(recorder)) = (self.0.take(), Recorder::get()) {
            let Open { mut record, began } = *open;
            record.took = began.elapsed();
            recorder.keep(record);
        }
    }
}
