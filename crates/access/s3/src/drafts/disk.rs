//! Room on disk for parts that wait: one bound for all uploads of a gateway.

use std::sync::Arc;

use parking_lot::Mutex;

/// Parts that wait at once, where there are descriptors for as many: each has a file open.
pub(super) const PARTS_MAX: usize = 20_000;

/// What parts may take of the disk.
pub(super) struct Disk {
    pub(super) bytes_max: u64,
    parts_max: usize,
    taken: Arc<Mutex<Sum>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    parts: usize,
}

/// The room of one part, until it is dropped.
pub(crate) struct Taken {
    of: Arc<Mutex<Sum>>,
    bytes: u64,
}

impl Disk {
    pub(super) fn new(bytes_max: u64, parts_max: usize) -> Self {
        Self { bytes_max, parts_max, taken: Arc::default() }
    }

    /// Room for one part; none when others have it.
    pub(super) fn take(&self, bytes: u64) -> Option<Taken> {
        let mut sum = self.taken.lock();
        let after = sum.bytes.checked_add(bytes).filter(|after| *after <= self.bytes_max)?;
        if sum.parts >= self.parts_max {
            return None;
        }
        *sum = Sum { bytes: after, parts: sum.parts + 1 };
        Some(Taken { of: Arc::clone(&self.taken), bytes })
    }

    /// Parts that wait or are still read, and their bytes.
    pub(super) fn taken(&self) -> (usize, u64) {
        let Sum { bytes, parts } = *self.taken.lock();
        debug_assert!(parts > 0 || bytes == 0, "{bytes} bytes are of no part");
        (parts, bytes)
    }

    /// Keeps parts from going, as a slow disk does.
    #[cfg(test)]
    pub(super) fn hold(&self) -> impl Sized {
        self.taken.lock()
    }

    /// Whether nobody has any of it.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        *self.taken.lock() == Sum::default()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut sum = self.of.lock();
        debug_assert!(sum.bytes >= self.bytes && sum.parts > 0, "what comes back was taken");
        *sum = Sum { bytes: sum.bytes - self.bytes, parts: sum.parts - 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_stays_within_the_bound_and_comes_back() {
        let disk = Disk::new(100, 8);
        let taken = disk.take(60).unwrap();
        assert!(disk.take(41).is_none() && disk.take(u64::MAX).is_none());
        let rest = disk.take(40).unwrap();
        assert!(disk.take(1).is_none());
        drop(taken);
        assert!(disk.take(60).is_some(), "it came back");
        drop(rest);
        assert!(disk.is_free());
    }

    #[test]
    fn empty_parts_have_an_end_too() {
        let disk = Disk::new(100, 8);
        let taken: Vec<Taken> = (0..8).map(|_| disk.take(0).unwrap()).collect();
        assert!(disk.take(0).is_none());
        drop(taken);
        assert!(disk.is_free());
    }
}
