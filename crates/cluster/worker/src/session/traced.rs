//! Places for what is received where it lies, of calls that say where in a trace they are.

use forebay_trace::{Kind, Span, TraceContext};
use forebay_transport::{Place, Response};
use forebay_types::WorkerId;

/// A place whose span ends when all of it has come.
struct Traced {
    place: Box<dyn Place>,
    span: Span,
}

/// The place of a call that is asked there, where that is recorded.
pub(super) fn placed(asked: Option<TraceContext>, worker: WorkerId, place: Box<dyn Place>) -> Box<dyn Place> {
    let mut span = Span::below(asked, "answer", Kind::Server);
    if span.context().is_none() {
        return place;
    }
    span.set("forebay.worker", || worker.to_string());
    Box::new(Traced { place, span })
}

impl Place for Traced {
    forebay_types::handed_on! {
        [place]
        fn bytes(&self) -> usize;
        fn memory(&mut self) -> Option<&mut [u8]>;
        fn put(&mut self, piece: &[u8]);
    }

    fn filled(self: Box<Self>) -> Response {
        let Self { place, span } = *self;
        let answer = place.filled();
        drop(span);
        answer
    }
}
