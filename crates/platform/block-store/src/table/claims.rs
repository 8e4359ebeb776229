//! Who is at pages that nobody may read yet, and for how long that may last.

use std::sync::Arc;

use forebay_types::PageRun;

use super::Landing;

/// Why pages that are not visible may not be touched by anyone else for now.
#[derive(Clone, Debug)]
pub(crate) enum ClaimKind {
    /// Bytes are copied into them, which ends within microseconds (or written to the disk tier).
    Fill,
    /// Bytes that are to be judged are copied into them, until the last one has come, however long that takes.
    HeldBack,
    /// They are given back to the system; it ends within microseconds.
    Punch,
    /// They are read from the disk tier, however long that takes.
    Load(Arc<Landing>),
}

/// Pages of a tier that one party may write to, or give back.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub run: PageRun,
    pub kind: ClaimKind,
}

/// The claims on one segment's pages; few at any time.
#[derive(Debug, Default)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    pub fn add(&mut self, run: PageRun, kind: ClaimKind) {
        debug_assert!(self.over(run).is_none(), "pages are claimed once");
        self.0.push(Claim { run, kind });
    }

    pub fn remove(&mut self, run: PageRun) {
        let at = self.0.iter().position(|claim| claim.run == run).expect("a claim is released once");
        self.0.swap_remove(at);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }

    /// The claim that begins first among those that overlap `run`.
    pub fn over(&self, run: PageRun) -> Option<&Claim> {
        self.overlapping(run).min_by_key(|claim| claim.run.start)
    }

    pub fn overlapping(&self, run: PageRun) -> impl Iterator<Item = &Claim> {
        self.0.iter().filter(move |claim| claim.run.start < run.end() && run.start < claim.run.end())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
