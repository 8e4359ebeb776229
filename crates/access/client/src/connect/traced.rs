//! Questions that say where in a trace they are asked. Where nothing is recorded they are as they would be without.

use bytes::Bytes;
use forebay_protocol::{ControlCall, DataRequest, NodeOp};
use forebay_trace::{Kind, Span, TraceContext};
use forebay_types::WorkerId;

/// A question to a worker: for its operation where it has one, else for what goes on here.
pub(super) fn of_data(worker: WorkerId, request: &DataRequest) -> Span {
    let parent = match request {
        // Asked beside what somebody wants, and no part of it.
        DataRequest::Attach
        | DataRequest::Ring
        | DataRequest::Queue
        | DataRequest::Present { .. }
        | DataRequest::Departed { .. }
        | DataRequest::Accesses(_)
        | DataRequest::Report => None,
        request => match request.operation() {
            Some(operation) => forebay_trace::of(operation),
            None => forebay_trace::current(),
        },
    };
    let mut span = Span::below(parent, request.into(), Kind::Client);
    span.set("forebay.worker", || worker.to_string());
    span
}

/// The same about a temporary node.
pub(crate) fn of_node(worker: WorkerId, op: &NodeOp<'_>) -> Span {
    let mut span = Span::below(forebay_trace::current(), "node", Kind::Client);
    span.set("rpc.method", || <&'static str>::from(op));
    span.set("forebay.worker", || worker.to_string());
    span
}

/// A question to the coordinator.
pub(super) fn of_control(call: &ControlCall) -> Span {
    let mut span = Span::below(forebay_trace::current(), "coordinator", Kind::Client);
    span.set("rpc.method", || call.name());
    span
}

/// A message to a peer of `version`, with the span before it that waits for the answer, where that is recorded and the peer reads it.
pub(crate) fn said(span: &Span, version: u16, message: Bytes) -> Bytes {
    let said = TraceContext::told(span.context(), version, message.clone());
    debug_assert!(
        said == message || TraceContext::split(said.clone()) == (span.context(), message),
        "who is asked reads what is asked without it"
    );
    said
}
