//! What is known of a table apart from its data: one block of bytes, and the footer that says where it is.

mod block;
mod bloom;
mod footer;
mod statistics;

pub(crate) use block::{ALIGN, Block, ROWS_MAX, RowGroupInfo};
pub use block::{CellInfo, SEGMENT_BYTES};
pub use bloom::BloomInfo;
pub use footer::{FOOTER_BYTES, Footer};
pub(crate) use footer::{header, version_of};
pub(crate) use statistics::{BOUND_BYTES_MAX, Bound, LeafStatistics};
