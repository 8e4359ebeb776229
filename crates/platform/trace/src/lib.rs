//! What is done for whom, across processes: spans of a trace, and their way to a collector of OpenTelemetry.
//!
//! Owns: which operations are traced, the span that goes on here, what is kept of spans until it is sent, and OTLP.
//!
//! Never does: cost anything where no collector is named; wait for one; keep more than a bounded number of spans.
//!
//! Start with [`Span`], and with [`Exporting::start`] for who sends them.

#![warn(unreachable_pub)]

mod ambient;
mod export;
mod otlp;
mod record;
mod recorder;
mod span;

pub use ambient::{bind, current, of, within};
pub use export::{Collector, Exporting};
pub use forebay_protocol::{TraceContext, TraceParent};
pub use record::{Kind, Value};
pub use recorder::{is_on, known};
pub use span::{Span, parent_in};
