//! What the models of loom have in the place of shared memory: words of two threads.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use forebay_types::{Error, Result};

use super::words::AtomicU64;

/// Words that both sides have.
#[derive(Clone)]
pub(super) struct Memory(Arc<Vec<AtomicU64>>);

impl Memory {
    pub fn create(bytes: usize) -> Result<(Self, OwnedFd)> {
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        Ok((Self(Arc::new(words)), File::open("/dev/null")?.into()))
    }

    pub fn open(_: OwnedFd, _: usize) -> Result<Self> {
        Err(Error::invalid("a model has one process"))
    }

    pub fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}
