//! Ways of leading a cluster side by side, in scenarios that have names.

mod report;
mod scenarios;
mod ways;

pub use report::{chart, csv};
pub use scenarios::{NAMES, named};
pub(crate) use ways::equal_to;
pub use ways::{Row, WAYS, compare, way};
