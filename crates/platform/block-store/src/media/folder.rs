//! The store's folder on disk: locked against other processes, and refused where a newer version wrote it.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use forebay_data_folder::{FileLock, make_private_folder};
use forebay_types::{Error, Result, ResultExt};

use super::record::FORMAT_VERSION;

const NAME: &str = "forebay block store";

/// A folder that this process alone works in, as long as this lives.
#[derive(Debug)]
pub(crate) struct Folder {
    _lock: FileLock,
}

impl Folder {
    /// Makes the folder if it is not there and locks it. `Invalid` when another process has it, or when it was written by a
    /// newer version.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        make_private_folder(path).map_err(|error| error.context("the folder of the tiers"))?;
        let lock = File::options().create(true).write(true).truncate(false).open(path.join("lock"));
        let doing = || format!("{shown}: the folder of the tiers can't be locked");
        let Ok(lock) = FileLock::take(lock.context(doing)?).context(doing)? else {
            return Err(Error::invalid(format!(
                "{shown}: in use by another process: stop that one, or give this one a folder of its own"
            )));
        };
        check_version(path)?;
        Ok(Self { _lock: lock })
    }

    /// The same of a folder on another disk, which has to be there. `NotFound` when it is not.
    pub fn open_there(path: &Path) -> Result<Self> {
        let shown = path.display();
        let there = std::fs::metadata(path).context(|| {
            format!("{shown}: mount its disk, or make the folder on it if the disk is new, and start the worker again")
        })?;
        if !there.is_dir() {
            return Err(Error::invalid(format!("{shown}: not a folder: name one on the disk")));
        }
        Self::open(path)
    }
}

fn check_version(path: &Path) -> Result<()> {
    let (shown, file) = (path.display(), path.join("version"));
    let write = || {
        let new = path.join("version.new");
        let mut made = File::create(&new)?;
        writeln!(made, "{NAME} {FORMAT_VERSION}")?;
        made.sync_all()?;
        std::fs::rename(&new, &file)
    };
    let write = || write().context(|| format!("{}: can't be written", file.display()));
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return write(),
        Err(error) => return Err(Error::from(error).context(file.display())),
    };
    let version = text.trim().strip_prefix(NAME).and_then(|rest| rest.trim().parse::<u32>().ok());
    match version {
        Some(FORMAT_VERSION) => Ok(()),
        // Its index has the same version and is not read: the tier starts empty.
        Some(1..FORMAT_VERSION) => write(),
        Some(version) if version > FORMAT_VERSION => Err(Error::invalid(format!(
            "{shown}: written by a newer version of forebay (layout {version}, this one knows {FORMAT_VERSION}): \
             run that version, or remove the folder, which only holds a cache"
        ))),
        _ => Err(Error::invalid(format!("{shown}: not a folder of forebay's tiers (see {}): use another one", file.display()))),
    }
}
