//! Writing so that a crash leaves the old file or the new one: bytes first, then the name, then the folder.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use forebay_types::{Error, ErrorKind, Result, ResultExt};

use super::step;

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).context(|| folder.display())
}

/// Writes a new file of a name that there is none of, and makes its bytes durable. One that is there may be mapped: to cut it would
/// end who reads it.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create_new(path).map_err(|error| explain(error, path))?;
    let mut write = || {
        step();
        file.write_all(bytes)?;
        step();
        file.sync_all()
    };
    write().map_err(|error| {
        // Half a file is of no use to anyone.
        let _ = std::fs::remove_file(path);
        explain(error, path)
    })
}

/// Puts a file in place: readers find all of it or the one before, also after a crash.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    // Of a process that died before it gave it its name.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).context(|| temporary.display()),
        _ => {}
    }
    write_file(&temporary, bytes)?;
    step();
    std::fs::rename(&temporary, path).context(|| path.display())?;
    step();
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// An error of a write, with the file and what to do.
pub(crate) fn explain(error: std::io::Error, path: &Path) -> Error {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let remedy = match error.kind() {
        StorageFull | QuotaExceeded => "the disk is full; nothing was changed: make room and try again",
        FileTooLarge => "the file is larger than this process may write; nothing was changed: raise its limit (ulimit -f)",
        _ => return Error::from(error).context(path.display()),
    };
    Error::new(ErrorKind::Retry, format!("{}: {remedy}", path.display())).with_source(Error::from(error))
}
