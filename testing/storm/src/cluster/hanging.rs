//! A folder that hangs when it is told to, as one of NFS does whose server answers no more.
//!
//! It is a file system of this process's own, by the kernel's protocol of FUSE ([`fuse`]): some files that never change. Nothing of it is kept
//! by the kernel, so that each question comes here.

use std::fs::{File, OpenOptions};
use std::io::{self, Error, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use forebay_oracle::contents;
use parking_lot::{Condvar, Mutex};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use super::fuse::Files;

/// Objects that are its files, each by its number. Their only version is the first.
pub const KEYS: [u32; 4] = [102, 105, 108, 111];
const DEVICE: &str = "/dev/fuse";
/// Longer than any question.
const QUESTION_BYTES_MAX: usize = 256 << 10;
/// Until it is mounted there are no questions.
const MOUNTED_PAUSE: Duration = Duration::from_millis(5);

/// A mounted folder; unmounted when dropped.
#[derive(Debug)]
pub struct Hanging {
    place: PathBuf,
    hangs: Arc<Hangs>,
}

#[derive(Debug, Default)]
struct Hangs {
    now: Mutex<bool>,
    goes_on: Condvar,
}

impl Hanging {
    /// Whether this process may mount one.
    pub fn may_mount() -> bool {
        rustix::process::geteuid().is_root() && Path::new(DEVICE).exists()
    }

    /// Mounts one below a folder.
    pub fn mount(folder: &Path) -> io::Result<Self> {
        let place = folder.join("hanging");
        std::fs::create_dir(&place)?;
        let device = OpenOptions::new().read(true).write(true).open(DEVICE)?;
        // The command that mounts it has to have it.
        fcntl_setfd(&device, FdFlags::empty())?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions,ro", device.as_raw_fd());
        let hangs = Arc::new(Hangs::default());
        let (theirs, served) = (Arc::clone(&hangs), device.try_clone()?);
        std::thread::Builder::new().name("hanging".to_owned()).spawn(move || serve(served, &theirs))?;
        let output = Command::new("mount").args(["-i", "-t", "fuse", "-o", &options, "storm"]).arg(&place).output()?;
        fcntl_setfd(&device, FdFlags::CLOEXEC)?;
        match output.status.success() {
            true => Ok(Self { place, hangs }),
            false => Err(Error::other(format!("mount: {}", String::from_utf8_lossy(&output.stderr)))),
        }
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Nothing is answered from now on.
    pub fn hang(&self) {
        *self.hangs.now.lock() = true;
    }

    /// What waits is answered, and all that comes.
    pub fn go_on(&self) {
        *self.hangs.now.lock() = false;
        self.hangs.goes_on.notify_all();
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.go_on();
        // Its thread ends with it.
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

impl Hangs {
    fn wait(&self) {
        let mut now = self.now.lock();
        while *now {
            self.goes_on.wait(&mut now);
        }
    }
}

/// Answers one question after the other, until it is unmounted.
fn serve(mut device: File, hangs: &Hangs) {
    let files = Files(KEYS.map(|key| (key.to_string(), contents::bytes(key, 1))).to_vec());
    let mut question = vec![0; QUESTION_BYTES_MAX];
    loop {
        match device.read(&mut question) {
            Ok(len) => {
                hangs.wait();
                if let Some(answer) = files.answer(&question[..len]) {
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
