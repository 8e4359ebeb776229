//! File systems of this process's own, by the kernel's protocol of FUSE: what happens to them can be called.

mod failing;
mod hanging;
mod question;
mod still;
mod volume;

use std::fs::{File, OpenOptions};
use std::io::{self, Error, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd};

use question::{Answers, QUESTION_BYTES_MAX, answer};

pub use failing::FailingDisk;
pub use hanging::{Hanging, KEYS};

const DEVICE: &str = "/dev/fuse";
/// Until it is mounted there are no questions.
const MOUNTED_PAUSE: Duration = Duration::from_millis(5);

/// Whether this process may mount one.
pub fn may_mount() -> bool {
    rustix::process::geteuid().is_root() && Path::new(DEVICE).exists()
}

/// Unmounted when dropped.
#[derive(Debug)]
struct Mounted {
    place: PathBuf,
}

impl Mounted {
    /// Mounts files at a place, which is made; `before` is called before each answer.
    fn mount(place: PathBuf, files: impl Answers, before: impl Fn() + Send + 'static) -> io::Result<Self> {
        std::fs::create_dir(&place)?;
        let device = OpenOptions::new().read(true).write(true).open(DEVICE)?;
        // The command that mounts it has to have it.
        fcntl_setfd(&device, FdFlags::empty())?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device.as_raw_fd());
        let served = device.try_clone()?;
        std::thread::Builder::new().name("files".to_owned()).spawn(move || serve(served, files, before))?;
        let output = Command::new("mount").args(["-i", "-t", "fuse", "-o", &options, "storm"]).arg(&place).output()?;
        fcntl_setfd(&device, FdFlags::CLOEXEC)?;
        match output.status.success() {
            true => Ok(Self { place }),
            false => Err(Error::other(format!("mount: {}", String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Its thread ends with it.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

/// Answers one question after the other, until it is unmounted.
fn serve(mut device: File, mut files: impl Answers, before: impl Fn()) {
    let mut question = vec![0; QUESTION_BYTES_MAX];
    loop {
        match device.read(&mut question) {
            Ok(len) => {
                before();
                if let Some(answer) = answer(&mut files, &question[..len]) {
                    // Who asked may be gone.
                    let _ = device.write_all(&answer);
                }
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::PERM) => std::thread::sleep(MOUNTED_PAUSE),
                Some(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                _ => return,
            },
        }
    }
}
