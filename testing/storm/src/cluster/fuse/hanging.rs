//! A folder that hangs when it is told to, as one of NFS does whose server answers no more. The kernel keeps nothing of it, so that each
//! question comes here.

use std::io;
use std::path::Path;
use std::sync::Arc;

use forebay_oracle::contents;
use parking_lot::{Condvar, Mutex};

use super::Mounted;
use super::still::Still;

/// Objects that are its files, each by its number. Their only version is the first.
pub const KEYS: [u32; 4] = [102, 105, 108, 111];

/// A mounted folder of files that never change; unmounted when dropped.
#[derive(Debug)]
pub struct Hanging {
    // Goes on before it is unmounted.
    hangs: GoesOn,
    mounted: Mounted,
}

#[derive(Debug, Default)]
struct Hangs {
    now: Mutex<bool>,
    goes_on: Condvar,
}

/// Whoever hangs goes on when this is dropped.
#[derive(Debug)]
struct GoesOn(Arc<Hangs>);

impl Hanging {
    /// Mounts one below a folder.
    pub fn mount(folder: &Path) -> io::Result<Self> {
        let hangs = Arc::new(Hangs::default());
        let still = Still(KEYS.map(|key| (key.to_string(), contents::bytes(key, 1))).to_vec());
        let theirs = Arc::clone(&hangs);
        let mounted = Mounted::mount(folder.join("hanging"), still, move || theirs.wait())?;
        Ok(Self { hangs: GoesOn(hangs), mounted })
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.mounted.place
    }

    /// Nothing is answered from now on.
    pub fn hang(&self) {
        *self.hangs.0.now.lock() = true;
    }

    /// What waits is answered, and all that comes.
    pub fn go_on(&self) {
        self.hangs.0.go_on();
    }
}

impl Hangs {
    fn wait(&self) {
        let mut now = self.now.lock();
        while *now {
            self.goes_on.wait(&mut now);
        }
    }

    fn go_on(&self) {
        *self.now.lock() = false;
        self.goes_on.notify_all();
    }
}

impl Drop for GoesOn {
    fn drop(&mut self) {
        self.0.go_on();
    }
}
