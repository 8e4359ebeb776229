//! The secret by which the processes and commands of one user on one machine know each other.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use forebay_types::{Error, Result, ResultExt};

use crate::folder::{is_left, make};
use crate::place::{named_by, runtime_folder};
use crate::private::read_private_file;

const FILE: &str = "owner.secret";

/// Coordinators of this process, for callers where there is no folder for that.
static OWN: LazyLock<Mutex<HashMap<u16, PathBuf>>> = LazyLock::new(Mutex::default);

/// The owner's secret of a data folder: what `fresh` gives, kept in a file that only this user can read, when there is none yet.
/// `Denied` when others can read the file.
pub fn owner_secret(folder: &Path, fresh: impl FnOnce() -> Result<String>) -> Result<String> {
    let (path, draft) = (folder.join(FILE), folder.join(format!("{FILE}.{}", std::process::id())));
    if matches!(fs::File::open(&path), Err(error) if error.kind() == ErrorKind::PermissionDenied) {
        return Err(Error::denied(format!(
            "data folder {} is closed to this user: choose another with --data-dir, or run as who it belongs to",
            folder.display()
        )));
    }
    // The first that lies in a coordinator's folder.
    make(folder)?;
    if let Some(secret) = read_secret(folder)? {
        return Ok(secret);
    }
    // Written whole before it has its name, and never over one that is there: two processes may begin at once.
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{}\n", fresh().map_err(std::io::Error::other)?).as_bytes())?;
        file.sync_all()?;
        match fs::hard_link(&draft, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    let _ = fs::remove_file(&draft);
    written.context(|| format!("{} can't be written", path.display()))?;
    read_secret(folder)?
        .ok_or_else(|| Error::invalid(format!("{} is empty: delete it, so that another one is made", path.display())))
}

/// The owner's secret of a data folder, where there is one. One that this user may not read is another's, and none of its own; a
/// file has none.
pub fn owner_secret_in(folder: &Path) -> Result<Option<String>> {
    match fs::File::open(folder.join(FILE)) {
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotADirectory) => Ok(None),
        _ => read_secret(folder),
    }
}

/// Whether there is one, whoever may read it, in a folder that `has` files of these names.
pub(crate) fn has_secret(has: impl Fn(&str) -> bool) -> bool {
    has(FILE)
}

/// The owner's secret of the coordinator at `host:port`, where that runs on this machine as this user.
pub fn owner_secret_of(coordinator: &str) -> Result<Option<String>> {
    let Some(port) = port_of(coordinator) else { return Ok(None) };
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).get(&port).cloned();
    let folder = own.or_else(|| announced(port, &places()));
    if let Some(folder) = folder { read_secret(&folder) } else { Ok(None) }
}

/// The folder of the coordinator at a port, as the first of these places says it. What is said in the others, where this process
/// would announce nothing, counts while a process has that folder.
fn announced(port: u16, places: &[PathBuf]) -> Option<PathBuf> {
    let said = |place: &PathBuf| is_own(place).then(|| announced_in(&place.join(port.to_string()))).flatten();
    let (own, others) = places.split_first()?;
    said(own).or_else(|| others.iter().filter_map(said).find(|folder| !is_left(folder, "coordinator")))
}

/// Says where the data folder of a coordinator is, to commands of the same user; as long as this lives.
#[derive(Debug)]
pub struct Announced {
    port: u16,
    folder: PathBuf,
    file: Option<PathBuf>,
}

impl Announced {
    /// The coordinator at `host:port`, which this process is, has its data here. What others that were killed have said goes.
    pub fn new(coordinator: &str, folder: &Path) -> Option<Self> {
        let port = port_of(coordinator)?;
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(port, folder.clone());
        let clusters = clusters();
        if let Some(clusters) = &clusters {
            tidy(clusters);
        }
        let file = clusters.map(|clusters| clusters.join(port.to_string())).filter(|file| {
            let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
            opened.and_then(|mut opened| opened.write_all(folder.as_os_str().as_encoded_bytes())).is_ok()
        });
        Some(Self { port, folder, file })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        if own.get(&self.port) == Some(&self.folder) {
            own.remove(&self.port);
        }
        // Unless it is another one's by now, at the same port of another address.
        if let Some(file) = self.file.as_ref().filter(|file| announced_in(file).as_ref() == Some(&self.folder)) {
            let _ = fs::remove_file(file);
        }
    }
}

/// This user's folder for what outlives a command: `$XDG_STATE_HOME/forebay`, or `~/.local/state/forebay`.
pub fn state_folder() -> Option<PathBuf> {
    let state = named_by("XDG_STATE_HOME").or_else(|| named_by("HOME").map(|home| home.join(".local/state")))?;
    let folder = state.join("forebay");
    fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

/// Where this user's coordinators of this machine may be announced, whatever the home of who asks; the first is this process's own.
/// One that knows no `XDG_RUNTIME_DIR`, as `cron`, `sudo` and a container's shell start it, looks where a session has that.
fn places() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let temporary = |folder: PathBuf| folder.join(format!("forebay-{uid}"));
    match runtime_folder() {
        Some(runtime) => vec![runtime.join("forebay")],
        None => vec![
            temporary(std::env::temp_dir()),
            PathBuf::from(format!("/run/user/{uid}/forebay")),
            temporary(PathBuf::from("/tmp")),
        ],
    }
}

/// Where this process announces its coordinator.
fn clusters() -> Option<PathBuf> {
    let folder = places().into_iter().next()?;
    // There already, or made now: what it is says the rest.
    let _ = fs::DirBuilder::new().mode(0o700).create(&folder);
    is_own(&folder).then_some(folder)
}

/// Whether nobody but this user can have written what lies there. A folder of another user, who came first in a place that is open
/// to all, is not believed.
fn is_own(folder: &Path) -> bool {
    let uid = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid && meta.mode() & 0o077 == 0)
}

/// The folder that a coordinator's file names. None while it is written.
fn announced_in(file: &Path) -> Option<PathBuf> {
    let text = read_private_file(file).ok().flatten()?;
    Some(PathBuf::from(text.trim_end_matches('\n'))).filter(|folder| folder.is_absolute())
}

/// Takes away what coordinators that were killed have left.
fn tidy(clusters: &Path) {
    let Ok(entries) = fs::read_dir(clusters) else { return };
    for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_port = file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u16>().is_ok());
        if is_port && announced_in(&file).is_some_and(|folder| is_left(&folder, "coordinator")) {
            let _ = fs::remove_file(&file);
        }
    }
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

    use super::*;
    use crate::DataFolder;

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
        assert_eq!(error.kind(), forebay_types::ErrorKind::Denied);
        assert!(error.message().contains("chmod 600"), "{error}");
    }

    #[test]
    fn a_folder_that_is_made_for_it_is_for_its_user_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("new/data");
        owner_secret(&folder, || Ok("a secret of nobody else".into())).unwrap();
        for made in [folder.as_path(), folder.parent().unwrap()] {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700, "{}", made.display());
        }
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

    #[test]
    fn what_killed_coordinators_have_left_is_taken_away() {
        let (clusters, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = |name: &str| data.path().join(name);
        let announce = |port: &str, folder: &Path| {
            let file = clusters.path().join(port);
            fs::write(&file, folder.as_os_str().as_encoded_bytes()).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let live = DataFolder::take(&folder("live"), &["coordinator"]).unwrap();
        drop(DataFolder::take(&folder("killed"), &["coordinator"]).unwrap());
        // No process has that number.
        fs::write(folder("killed").join("coordinator.lock"), "4194305").unwrap();
        // One that can't be seen from here has the lock.
        let elsewhere = DataFolder::take(&folder("elsewhere"), &["coordinator"]).unwrap();
        fs::write(folder("elsewhere").join("coordinator.lock"), "4194305").unwrap();
        for (port, name) in [("1", "live"), ("2", "killed"), ("3", "elsewhere"), ("4", "gone"), ("other", "gone")] {
            announce(port, &folder(name));
        }
        announce("5", Path::new(""));
        tidy(clusters.path());
        let mut left: Vec<_> = fs::read_dir(clusters.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["1", "3", "5", "other"]);
        drop((live, elsewhere));
    }

    #[test]
    fn who_ends_leaves_what_another_one_at_its_port_has_said() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        for (folder, secret) in [(&one, "a secret of the first"), (&two, "a secret of the second")] {
            owner_secret(folder, || Ok(secret.into())).unwrap();
        }
        let first = Announced::new("127.0.0.1:3", &one).unwrap();
        let second = Announced::new("127.0.0.2:3", &two).unwrap();
        drop(first);
        assert_eq!(owner_secret_of("127.0.0.2:3").unwrap().as_deref(), Some("a secret of the second"));
        drop(second);
        assert_eq!(owner_secret_of("127.0.0.2:3").unwrap(), None);
    }

    #[test]
    fn a_secret_that_is_empty_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, "\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let made = || owner_secret(folder.path(), || Ok("a secret of nobody else".into()));
        let error = made().unwrap_err();
        assert!(error.message().contains("is empty: delete it"), "{error}");
        fs::remove_file(&file).unwrap();
        assert_eq!(made().unwrap(), "a secret of nobody else");
    }

    #[test]
    fn a_data_folder_that_is_a_file_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data");
        fs::write(&file, "").unwrap();
        let errors = [
            owner_secret(&file, || panic!("there is no place for one")).unwrap_err(),
            DataFolder::take(&file, &["coordinator"]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), forebay_types::ErrorKind::Invalid);
            assert!(error.message().contains("is a file: choose another with --data-dir"), "{error}");
        }
        // A command in a folder where it lies asks for none.
        assert_eq!(owner_secret_in(&file).unwrap(), None);
    }

    #[test]
    fn a_folder_that_is_closed_to_this_user_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("data");
        owner_secret(&closed, || Ok("a secret of nobody else".into())).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let read = owner_secret(&closed, || panic!("there is one"));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        // Root goes everywhere.
        match read {
            Ok(_) => assert!(rustix::process::geteuid().is_root()),
            Err(error) => assert!(error.message().contains("choose another with --data-dir"), "{error}"),
        }
    }

    #[test]
    fn a_coordinator_is_found_where_another_session_of_the_user_announces_it() {
        let place = tempfile::tempdir().unwrap();
        let places = ["own", "session", "open"].map(|name| place.path().join(name));
        for place in &places {
            fs::DirBuilder::new().mode(0o700).create(place).unwrap();
        }
        fs::set_permissions(&places[2], fs::Permissions::from_mode(0o755)).unwrap();
        let announce = |place: &Path, port: u16, folder: &Path| {
            let file = place.join(port.to_string());
            fs::write(&file, folder.as_os_str().as_encoded_bytes()).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let (live, gone) = (place.path().join("live"), place.path().join("gone"));
        let taken = DataFolder::take(&live, &["coordinator"]).unwrap();
        announce(&places[1], 1, &live);
        announce(&places[1], 2, &gone);
        announce(&places[0], 3, &gone);
        announce(&places[2], 4, &live);
        assert_eq!(announced(1, &places), Some(live), "as another session says");
        assert_eq!(announced(2, &places), None, "nobody has that folder any more");
        assert_eq!(announced(3, &places), Some(gone), "its own place is believed");
        assert_eq!(announced(4, &places), None, "others may write there");
        drop(taken);
    }
}
