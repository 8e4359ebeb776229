//! Where a job stands in the orders.

use super::model::JobId;

/// A job's place in an order, the smallest first: by priority, by what Fair counts, by arrival.
pub(super) type Turn = (i64, usize, u64, JobId);

/// A job's turn in each of the orders that it stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub waiting: Option<Turn>,
    pub coming: Option<Turn>,
    pub anywhere: Option<Turn>,
    pub cold: Option<Turn>,
    pub near: Option<Turn>,
    pub transfers: Option<Turn>,
}
