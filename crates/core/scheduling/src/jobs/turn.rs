//! Where a job stands in the orders.

use super::model::JobId;

/// A job's place in an order, the smallest first: by priority, by what Fair counts, by arrival.
pub(super) type Turn = (i64, usize, u64, JobId);

/// Something of each of the orders in which jobs with tasks that wait are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Each<T> {
    /// As slots are offered: all of them.
    pub waiting: T,
    /// Those with tasks that are still to be taken in.
    pub coming: T,
    /// Those with a task that waits and has no input.
    pub anywhere: T,
    /// Those that need what nobody has.
    pub cold: T,
    /// Those with input at, or on its way to, some worker.
    pub near: T,
    /// In the order in which input is brought, which is the order in which slots are expected to be given: jobs that need what no
    /// worker has, and jobs for which something was brought ahead.
    pub transfers: T,
}

/// A job's turn in each of the orders that it stands in.
pub(super) type Places = Each<Option<Turn>>;
