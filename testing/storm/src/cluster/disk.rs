//! A small file system of its own, which can be filled up: real ENOSPC.

use std::fs::File;
use std::io::{self, Error, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its size: what a worker's tier fills within seconds.
const BYTES: u64 = 96 << 20;
const PIECE_BYTES: usize = 1 << 20;

/// A mounted file system; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    /// Whether this process may mount one.
    pub fn may_mount() -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Makes one in a file of the folder.
    pub fn mount(folder: &Path) -> io::Result<Self> {
        let (place, image) = (folder.join("disk"), folder.join("disk.img"));
        std::fs::create_dir(&place)?;
        File::create(&image)?.set_len(BYTES)?;
        run(Command::new("mkfs.ext4").arg("-q").arg("-F").arg(&image))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&place))?;
        Ok(Self { place })
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Fills all that is free.
    pub fn fill(&self) -> io::Result<()> {
        let mut file = File::create(self.filler())?;
        let piece = vec![1; PIECE_BYTES];
        loop {
            match file.write_all(&piece) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Frees it again.
    pub fn free(&self) -> io::Result<()> {
        std::fs::remove_file(self.filler())
    }

    fn filler(&self) -> PathBuf {
        self.place.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What still has a file open there lets go of it when it ends.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}
