//! The secret by which the processes and commands of one user on one machine know each other.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use forebay_types::{Error, Result, ResultExt};

use crate::private::read_private_file;

/// The file in the data folder.
const FILE: &str = "owner.secret";

/// Coordinators of this process, for callers where there is no folder for that.
static OWN: LazyLock<Mutex<HashMap<u16, PathBuf>>> = LazyLock::new(Mutex::default);

/// The owner's secret of a data folder: what `fresh` gives, kept in a file that only this user can read, when there is none yet.
/// `Denied` when others can read the file.
pub fn owner_secret(folder: &Path, fresh: impl FnOnce() -> Result<String>) -> Result<String> {
    if let Some(secret) = read_secret(folder)? {
        return Ok(secret);
    }
    let (path, draft) = (folder.join(FILE), folder.join(format!("{FILE}.{}", std::process::id())));
    fs::create_dir_all(folder).context(|| format!("data folder {} can't be made", folder.display()))?;
    // Written whole before it has its name, and never over one that is there: two processes may begin at once.
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{}\n", fresh().map_err(std::io::Error::other)?).as_bytes())?;
        file.sync_all()?;
        match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    let _ = fs::remove_file(&draft);
    written.context(|| format!("{} can't be written", path.display()))?;
    read_secret(folder)?.ok_or_else(|| Error::internal(format!("{} is gone", path.display())))
}

/// The owner's secret of a data folder, where there is one. One that this user may not read is another's, and none of its own.
pub fn owner_secret_in(folder: &Path) -> Result<Option<String>> {
    match fs::File::open(folder.join(FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        _ => read_secret(folder),
    }
}

/// The owner's secret of the coordinator at `host:port`, where that runs on this machine as this user.
pub fn owner_secret_of(coordinator: &str) -> Result<Option<String>> {
    let Some(port) = port_of(coordinator) else { return Ok(None) };
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).get(&port).cloned();
    let folder = own.or_else(|| {
        let text = read_private_file(&clusters()?.join(port.to_string())).ok().flatten()?;
        Some(PathBuf::from(text.trim_end_matches('\n')))
    });
    if let Some(folder) = folder { read_secret(&folder) } else { Ok(None) }
}

/// Says where the data folder of a coordinator is, to commands of the same user; as long as this lives.
#[derive(Debug)]
pub struct Announced {
    port: u16,
    file: Option<PathBuf>,
}

impl Announced {
    /// The coordinator at `host:port` has its data here.
    pub fn new(coordinator: &str, folder: &Path) -> Option<Self> {
        let port = port_of(coordinator)?;
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(port, folder.clone());
        let file = clusters().map(|clusters| clusters.join(port.to_string())).filter(|file| {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
            opened.and_then(|mut opened| opened.write_all(folder.as_os_str().as_encoded_bytes())).is_ok()
        });
        Some(Self { port, file })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        OWN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.port);
        if let Some(file) = &self.file {
            // What is left points to a folder whose secret no server knows any more, or to the next one's.
            let _ = fs::remove_file(file);
        }
    }
}

/// This user's folder for what outlives a command: `$XDG_STATE_HOME/forebay`, or `~/.local/state/forebay`.
pub fn state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let folder = state.join("forebay");
    fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

/// Where this user's coordinators of this machine are announced, whatever the home of who asks. A folder of another user, who
/// came first in a place that is open to all, is not believed.
fn clusters() -> Option<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) => PathBuf::from(runtime).join("forebay"),
        None => std::env::temp_dir().join(format!("forebay-{uid}")),
    };
    // There already, or made now: what it is says the rest.
    let _ = fs::DirBuilder::new().mode(0o700).create(&folder);
    let meta = fs::symlink_metadata(&folder).ok()?;
    (meta.is_dir() && meta.uid() == uid && meta.mode() & 0o077 == 0).then_some(folder)
}

fn port_of(address: &str) -> Option<u16> {
    address.rsplit_once(':')?.1.parse().ok().filter(|port| *port != 0)
}

fn read_secret(folder: &Path) -> Result<Option<String>> {
    let text = read_private_file(&folder.join(FILE))?;
    Ok(text.map(|text| text.trim().to_string()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use forebay_types::ErrorKind;

    use super::*;

    #[test]
    fn the_secret_is_made_once_and_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made = owner_secret(folder.path(), || Ok("a secret of nobody else".into())).unwrap();
        let again = owner_secret(folder.path(), || panic!("there is one")).unwrap();
        assert_eq!((made.as_str(), again.as_str()), ("a secret of nobody else", "a secret of nobody else"));
        let file = folder.path().join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = owner_secret(folder.path(), || panic!("there is one")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert!(error.message().contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_secret_that_can_not_be_read_is_another_users() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(owner_secret_in(folder.path()).unwrap(), None);
        owner_secret(folder.path(), || Ok("a secret of nobody else".into())).unwrap();
        assert_eq!(owner_secret_in(folder.path()).unwrap().as_deref(), Some("a secret of nobody else"));
        fs::set_permissions(folder.path().join(FILE), fs::Permissions::from_mode(0o000)).unwrap();
        // Root reads everything.
        let read = owner_secret_in(folder.path()).unwrap();
        assert!(read.is_none() || rustix::process::geteuid().is_root(), "{read:?}");
    }

    #[test]
    fn a_coordinator_is_found_by_its_port_while_it_is_announced() {
        let folder = tempfile::tempdir().unwrap();
        owner_secret(folder.path(), || Ok("a secret of nobody else".into())).unwrap();
        let announced = Announced::new("127.0.0.1:1", folder.path()).unwrap();
        assert_eq!(owner_secret_of("localhost:1").unwrap().as_deref(), Some("a secret of nobody else"));
        assert_eq!(owner_secret_of("localhost:2").unwrap(), None);
        drop(announced);
        assert_eq!(owner_secret_of("localhost:1").unwrap(), None);
    }
}
