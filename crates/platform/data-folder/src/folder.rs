//! Where things lie in the data folder, its format, and which process has which role on it.

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use forebay_types::{Error, Result, ResultExt};

use crate::FileLock;
use crate::place::runtime_folder;
use crate::taken::Taken;

/// Layout of the data folder that this version writes, and the newest that it reads.
const FORMAT: u32 = 1;
/// The file that has its number.
const FORMAT_FILE: &str = "format";
/// Roles that keep something in a data folder.
const ROLES: [&str; 3] = ["coordinator", "worker", "executor"];

/// A data folder in use by this process: no other process takes the same role on it meanwhile.
#[derive(Debug)]
pub struct DataFolder {
    _locks: Vec<FileLock>,
    _taken: Taken,
}

impl DataFolder {
    /// Takes the folder for `roles`, and makes it where it isn't there. `Invalid` when another process has one of the
    /// roles on it, or when a newer version wrote it.
    pub fn take(path: &Path, roles: &[&str]) -> Result<Self> {
        make(path)?;
        check_format(path)?;
        let locks = roles.iter().map(|role| lock(path, role)).collect::<Result<Vec<_>>>()?;
        Ok(Self { _locks: locks, _taken: Taken::new(path)? })
    }

    /// The tiers' folder of a worker that has its folder here.
    pub fn tiers_in(path: &Path) -> PathBuf {
        path.join("tiers")
    }

    /// The SQLite database of a coordinator that was given no other, as a URL.
    pub fn metadata_url(path: &Path) -> String {
        format!("sqlite:{}", path.join("metadata.db").display())
    }

    /// The Unix socket of a worker that has its folder here, for clients of this host.
    pub fn socket_in(path: &Path) -> PathBuf {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).join("worker.sock");
        // Addresses of Unix sockets hold 107 bytes; a deeper folder gets a short name elsewhere.
        if absolute.as_os_str().len() <= 100 {
            return absolute;
        }
        let runtime = runtime_folder().unwrap_or_else(std::env::temp_dir);
        // One process may run several workers, each with a folder of its own.
        let mut hasher = DefaultHasher::new();
        absolute.hash(&mut hasher);
        runtime.join(format!("forebay-{}-{:08x}.sock", std::process::id(), hasher.finish() as u32))
    }
}

/// Makes a data folder where it isn't there. One that is there is as open as its owner made it; what holds data in it is closed
/// all the same. `Invalid` where it is a file.
pub(crate) fn make(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        return Err(Error::invalid(format!("data folder {shown} is a file: choose another with --data-dir")));
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.context(|| format!("data folder {shown} can't be made: choose another with --data-dir"))
}

fn check_format(path: &Path) -> Result<()> {
    let file = path.join(FORMAT_FILE);
    let shown = path.display();
    match fs::read_to_string(&file) {
        Ok(text) => {
            let format: u32 = text.trim().parse().map_err(|_| {
                Error::invalid(format!(
                    "data folder {shown}: {} does not hold a number: choose another with --data-dir",
                    file.display()
                ))
            })?;
            if format > FORMAT {
                return Err(Error::invalid(format!(
                    "data folder {shown} was written by a newer version of forebay (format {format}, this one reads up to {FORMAT}): \
                     run that version, or choose another folder with --data-dir"
                )));
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::write(&file, format!("{FORMAT}\n")).context(|| format!("data folder {shown} can't be written"))
        }
        Err(error) => Err(Error::from(error).context(format!("data folder {shown}"))),
    }
}

/// Whether a process has or had a role on a folder, which `has` files of these names.
pub(crate) fn has_role(has: impl Fn(&str) -> bool) -> bool {
    has(FORMAT_FILE) && ROLES.iter().any(|role| has(&lock_name(role)))
}

/// Whether a file of this name is one of those by which [`has_role`] goes.
pub(crate) fn is_of_role(name: &str) -> bool {
    name == FORMAT_FILE || ROLES.iter().any(|role| lock_name(role) == name)
}

/// Whether no process has a role on a folder any more, or the folder is gone. Where that can't be told, some process has it.
pub(crate) fn is_left(path: &Path, role: &str) -> bool {
    let name = lock_of(path, role);
    let process = match fs::read_to_string(&name) {
        Ok(process) => process,
        Err(error) => return matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    // The lock is the last word, and is not touched while the process is there to see: a process that starts takes it.
    let is_seen = process.parse::<u32>().is_ok_and(|process| Path::new("/proc").join(process.to_string()).exists());
    !is_seen && File::open(&name).is_ok_and(|file| matches!(FileLock::take(file), Ok(Ok(_))))
}

fn lock_of(path: &Path, role: &str) -> PathBuf {
    path.join(lock_name(role))
}

fn lock_name(role: &str) -> String {
    format!("{role}.lock")
}

fn lock(path: &Path, role: &str) -> Result<FileLock> {
    let shown = path.display();
    let name = lock_of(path, role);
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&name)
        .context(|| format!("data folder {shown} can't be written: {}", name.display()))?;
    match FileLock::take(file).context(|| format!("data folder {shown} can't be locked"))? {
        Ok(mut file) => {
            // For the message of who comes second; the lock itself is the file's.
            let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            written.context(|| format!("data folder {shown} can't be written: {}", name.display()))?;
            Ok(file)
        }
        Err(mut file) => {
            let mut process = String::new();
            // Only decorates the message.
            let _ = file.read_to_string(&mut process);
            let process = if process.is_empty() { "another process".to_string() } else { format!("process {process}") };
            Err(Error::invalid(format!(
                "data folder {shown} is in use by the {role} of {process}: stop that one, or choose another folder with --data-dir"
            )))
        }
    }
}
