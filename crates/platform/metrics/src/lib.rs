//! What processes of Forebay count and measure, for whoever scrapes `/metrics`.
//!
//! Owns: the table of all metrics with their names, types, help and labels ([`table`]), the values of this process, and the text
//! format of Prometheus ([`text()`]).
//!
//! Never does: listen, or decide what is worth counting. Nothing is recorded past the table.
//!
//! Recording is one or two atomic additions to what [`Family::with`] gave, without a lock: hot paths keep that.
//!
//! Start with [`table`]: a new metric is a row there.
//!
//! ```
//! forebay_metrics::table::WORKER_REPLICAS_LOADED.with(["peer"]).add(1);
//! let text = forebay_metrics::text();
//! assert!(text.contains("# TYPE forebay_worker_replicas_loaded_total counter\n"));
//! assert!(text.contains("forebay_worker_replicas_loaded_total{from=\"peer\"} 1\n"));
//! ```

#![warn(unreachable_pub)]

mod family;
mod kinds;
#[cfg(test)]
mod page;
mod row;
pub mod table;
mod text;
mod value;
mod write;

pub use family::{Counters, Family, Gauges, Histograms};
pub use kinds::Kinds;
pub use row::{Buckets, Kind, Row};
pub use text::{begin, text};
pub use value::{Counter, Gauge, Histogram, TakeSample, Value};
