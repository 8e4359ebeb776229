//! A time of the day of a process's own, which jumps when it is told to: by `libfaketime`, loaded before the system's library. Of all clocks
//! it is this one alone: what only goes forward goes on as it did, and so do the times of files.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};

/// Where systems have libraries, a folder for each kind of processor.
const LIBRARIES: &str = "/usr/lib";
/// The one for processes with several threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// What says how far ahead the clock is, to a process that is started with its variables.
#[derive(Debug)]
pub struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// The library; none where there is none.
    pub fn library() -> Option<PathBuf> {
        let folders = fs::read_dir(LIBRARIES).ok()?.filter_map(|folder| Some(folder.ok()?.path().join(LIBRARY)));
        folders.filter(|library| library.is_file()).min()
    }

    /// One that is as the system's, for the process of a name.
    pub(super) fn make(library: &Path, folder: &Path, name: &str) -> io::Result<Self> {
        let clock = Self { library: library.to_owned(), file: folder.join(format!("{name}.clock")) };
        clock.set(0)?;
        Ok(clock)
    }

    /// What the process is started with.
    pub(super) fn variables(&self) -> [(&'static str, String); 5] {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file)),
            // In seconds: the file is read once in so long.
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("NO_FAKE_STAT", "1".to_owned()),
        ]
    }

    /// From a second on it is so many seconds ahead of the system's, behind it where that is negative.
    pub(super) fn set(&self, ahead_secs: i64) -> io::Result<()> {
        // As a whole: the process may read it at any time.
        let draft = self.file.with_extension("clock-draft");
        fs::write(&draft, format!("{ahead_secs:+}\n"))?;
        fs::rename(draft, &self.file)
    }

    /// An error where the process, whose maps these are, has no such clock.
    pub(super) fn check(&self, maps: &str) -> io::Result<()> {
        match maps.contains(LIBRARY) {
            true => Ok(()),
            false => Err(Error::other(format!("it has not loaded {}: is it linked statically?", self.library.display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_says_how_far_ahead_it_is_and_which_way() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::make(Path::new("/lib/faketime/libfaketimeMT.so.1"), folder.path(), "worker-1").unwrap();
        let told = || fs::read_to_string(folder.path().join("worker-1.clock")).unwrap();
        assert_eq!(told(), "+0\n");
        clock.set(600).unwrap();
        assert_eq!(told(), "+600\n");
        clock.set(-600).unwrap();
        assert_eq!(told(), "-600\n");
    }

    #[test]
    fn a_process_without_the_library_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::make(Path::new("/usr/lib/x/faketime/libfaketimeMT.so.1"), folder.path(), "gateway").unwrap();
        assert!(clock.check("7f00-7f01 r-xp 0 00:00 1 /usr/lib/x/faketime/libfaketimeMT.so.1\n").is_ok());
        assert!(clock.check("7f00-7f01 r-xp 0 00:00 1 /usr/lib/x/libc.so.6\n").is_err());
    }
}
