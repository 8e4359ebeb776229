//! What a worker is told that has no answer.

use forebay_types::{OperationId, SegmentId};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::limits::{PINS_MAX, at_most};

/// What is said to a worker without waiting for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum DataNotice {
    /// The client drops these pins; with what it read in place since the last notice.
    Unpin {
        /// Ids from [`DataReply::Read`](crate::DataReply::Read).
        #[serde(deserialize_with = "at_most::<PINS_MAX, _, _>")]
        pins: Vec<u64>,
        /// Reads in place.
        #[serde(deserialize_with = "at_most::<PINS_MAX, _, _>")]
        counts: Vec<InPlaceCount>,
    },
    /// An operation reads nothing any more: what was brought ahead for it is held no longer.
    Ended {
        /// Which.
        operation: OperationId,
    },
}

/// Reads in place of one operation in one segment, counted by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPlaceCount {
    /// Who read.
    pub operation: OperationId,
    /// What.
    pub segment: SegmentId,
    /// Reads.
    pub reads: u32,
    /// Bytes.
    pub bytes: u64,
}
