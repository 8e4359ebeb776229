//! Whether the disk is worth a try now: one that fails is left alone for a while, and the store goes on without it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures in a row after which a direction is paused, where a single one says little.
const FAILURES_MAX: u32 = 3;
/// First pause; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(5);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Reading from the disk tier, or writing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// How the disk does. A direction that fails is paused, longer each time, and then tried again; meanwhile pages on disk
/// count as missing, or nothing is written. One that works again is as new.
pub(crate) struct Health {
    name: String,
    began: Instant,
    read: Side,
    write: Side,
}

#[derive(Default)]
struct Side {
    /// Milliseconds after `began`; 0 while all is well.
    paused_until: AtomicU64,
    trouble: Mutex<Trouble>,
}

#[derive(Default)]
struct Trouble {
    failures: u32,
    pauses: u32,
    warning: Option<String>,
}

impl Health {
    pub fn new(name: String) -> Self {
        Self { name, began: forebay_runtime::now(), read: Side::default(), write: Side::default() }
    }

    /// Whether to try.
    pub fn is_on(&self, direction: Direction) -> bool {
        let until = self.side(direction).paused_until.load(SeqCst);
        until == 0 || self.began.elapsed().as_millis() as u64 >= until
    }

    /// Whether nothing is wrong with it, as opposed to being worth another try.
    pub fn is_well(&self) -> bool {
        [&self.read, &self.write].into_iter().all(|side| side.paused_until.load(SeqCst) == 0)
    }

    pub fn succeeded(&self, direction: Direction) {
        let side = self.side(direction);
        if side.paused_until.load(SeqCst) == 0 && side.trouble.lock().failures == 0 {
            return;
        }
        side.paused_until.store(0, SeqCst);
        if std::mem::take(&mut *side.trouble.lock()).warning.is_some() {
            tracing::info!(?direction, "{} works again", self.name);
        }
    }

    /// Something failed; pauses the direction when it is `grave`, or not the first failure in a row. Returns whether this paused it.
    pub fn failed(&self, direction: Direction, grave: bool, what: impl fmt::Display) -> bool {
        let side = self.side(direction);
        let mut trouble = side.trouble.lock();
        trouble.failures += 1;
        if !grave && trouble.failures < FAILURES_MAX && trouble.pauses == 0 {
            tracing::warn!(?direction, error = %what, "{}: a request failed", self.name);
            return false;
        }
        if !self.is_on(direction) {
            // Of a request that was under way already.
            return false;
        }
        let pause = PAUSE_MAX.min(PAUSE_MIN * 2u32.saturating_pow(trouble.pauses));
        trouble.pauses += 1;
        let verb = if direction == Direction::Read { "reading" } else { "writing" };
        tracing::error!(error = %what, pause_secs = pause.as_secs(), "{}: {verb} is paused", self.name);
        let (name, secs) = (&self.name, pause.as_secs());
        trouble.warning = Some(format!("{name}: {verb} is paused and tried again every {secs} s: {what}"));
        side.paused_until.store((self.began.elapsed() + pause).as_millis() as u64, SeqCst);
        true
    }

    /// What is wrong, in words.
    pub fn warnings(&self) -> Vec<String> {
        [&self.read, &self.write].into_iter().filter_map(|side| side.trouble.lock().warning.clone()).collect()
    }

    fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}
