//! Memory that requests take their share of before they are read.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use forebay_data_folder::memory_bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted by: tokio's permits are 32 bits wide where they are taken together.
const UNIT_BYTES: u64 = 1 << 10;
/// Requests up to this have a part of the budget to themselves, so that large ones don't hold them up.
const SMALL_BYTES: u64 = 64 << 10;
/// The part of small requests: one in this many.
const SMALL_SHARE: u64 = 8;
/// The budget of a process: this part of the memory that it may use, and at least so much.
const MEMORY_SHARE: u64 = 8;
const BYTES_MIN: u64 = 256 << 20;

/// The bytes that requests and uploads may take at a time, taken before there is memory for them. Who finds nothing left waits, in the
/// order of coming; a connection waits with one request at a time, so that none gets more by asking more.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    /// Units of the larger part: what is larger than all of it takes all of it.
    large_units: u32,
    bytes: u64,
}

/// Bytes taken from a [`Budget`], given back when this is dropped.
#[derive(Debug)]
pub struct Spent(#[expect(dead_code, reason = "kept to be dropped")] OwnedSemaphorePermit);

/// A share of a [`Budget`] for some of who takes of it. What is taken of it no other has.
#[derive(Clone, Debug)]
pub struct BudgetShare {
    part: Budget,
    whole: Budget,
}

/// Bytes taken from a [`BudgetShare`], given back when this is dropped.
#[derive(Debug)]
pub struct SpentShare(#[expect(dead_code, reason = "kept to be dropped")] (Spent, Spent));

impl Budget {
    /// So many bytes; at least 1 MiB.
    pub fn new(bytes: u64) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1024, u64::from(u32::MAX / 2));
        let small = units / SMALL_SHARE;
        let large_units = (units - small) as u32;
        let semaphore = |units: u64| Arc::new(Semaphore::new(units as usize));
        let (small, large) = (semaphore(small), semaphore(large_units.into()));
        Self(Arc::new(Parts { small, large, large_units, bytes: units * UNIT_BYTES }))
    }

    /// The one of this process: an eighth of the memory that it may use, and at least 256 MiB.
    pub fn of_process() -> Self {
        static SHARED: LazyLock<Budget> = LazyLock::new(|| Budget::new((memory_bytes() / MEMORY_SHARE).max(BYTES_MIN)));
        SHARED.clone()
    }

    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Takes bytes if they are left.
    pub fn try_take(&self, bytes: u64) -> Option<Spent> {
        let (semaphore, units) = self.part(bytes);
        Arc::clone(semaphore).try_acquire_many_owned(units).ok().map(Spent)
    }

    /// Takes bytes, and waits until they are left.
    pub async fn take(&self, bytes: u64) -> Spent {
        let (semaphore, units) = self.part(bytes);
        Spent(Arc::clone(semaphore).acquire_many_owned(units).await.expect("a budget is never closed"))
    }

    fn part(&self, bytes: u64) -> (&Arc<Semaphore>, u32) {
        let units = bytes.div_ceil(UNIT_BYTES).max(1);
        match bytes <= SMALL_BYTES {
            true => (&self.0.small, units as u32),
            false => (&self.0.large, u32::try_from(units).unwrap_or(u32::MAX).min(self.0.large_units)),
        }
    }
}

impl BudgetShare {
    /// So many bytes of `whole`, or all of it where that is less.
    pub fn of(whole: Budget, bytes: u64) -> Self {
        Self { part: Budget::new(bytes.min(whole.bytes())), whole }
    }

    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.part.bytes()
    }

    /// Takes bytes, and waits for them no longer than so; none where that was not enough. What is larger than all of the share has it alone.
    pub async fn take(&self, bytes: u64, within: Duration) -> Option<SpentShare> {
        let taking = async { (self.part.take(bytes).await, self.whole.take(bytes.min(self.bytes())).await) };
        forebay_runtime::time::timeout(within, taking).await.ok().map(SpentShare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_comes_back_and_small_ones_go_on_meanwhile() {
        let budget = Budget::new(8 << 20);
        let all = budget.take(u64::MAX).await;
        assert!(budget.try_take(1 << 20).is_none());
        let small: Vec<_> = (0..16).map(|_| budget.try_take(SMALL_BYTES).expect("their own part")).collect();
        assert!(budget.try_take(1).is_none(), "which has an end too");
        drop((all, small));
        let parts: Vec<_> = (0..7).map(|_| budget.try_take(1 << 20).expect("it came back")).collect();
        assert!(budget.try_take(1 << 20).is_none());
        drop(parts);
        assert!(Budget::of_process().bytes() >= BYTES_MIN);
    }

    #[tokio::test]
    async fn a_share_leaves_room_for_others_and_has_no_more_than_they_leave() {
        let (whole, within) = (Budget::new(8 << 20), Duration::from_millis(20));
        let share = BudgetShare::of(whole.clone(), 4 << 20);
        let all = share.take(u64::MAX, within).await.expect("nobody else has any");
        assert!(share.take(1 << 20, within).await.is_none(), "that was all of it");
        let others = whole.try_take(3 << 20).expect("the rest is for others");
        drop(all);
        drop(whole.try_take(4 << 20).expect("it came back"));
        let rest = whole.try_take(4 << 20).expect("others have all of it");
        assert!(share.take(1 << 20, within).await.is_none(), "nothing is left");
        drop((others, rest));
        assert!(share.take(1 << 20, within).await.is_some(), "what was waited for in vain is nobody's");
        assert_eq!(BudgetShare::of(whole.clone(), u64::MAX).bytes(), whole.bytes());
    }
}
