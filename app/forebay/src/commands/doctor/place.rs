//! Where this configuration would run: its folder and its addresses.

use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;

use forebay_types::format_bytes;

use super::finding::Finding;
use super::listener::{self, Listener};
use crate::config::Config;

/// What the system calls a process of this program.
const PROGRAM: &str = "forebay";
/// Of the free disk the tier and what queries spill may take this together.
const DISK_SHARE_MAX: f64 = 0.95;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let mut findings = vec![folder(&config.settings.data_dir), disk(config)];
    findings.extend(config.disk_folders().iter().map(|(folder, bytes)| other_disk(folder, *bytes)));
    let addresses = [
        ("coordinator-listen", config.coordinator_listen().ok().map(str::to_string)),
        ("worker-listen", config.worker_listen().ok().map(str::to_string)),
        ("flight", config.flight().ok().flatten().map(str::to_string)),
        ("s3", config.gateway().ok().flatten().map(|gateway| gateway.listen)),
        ("http", config.http(crate::roles::HTTP_PORT).ok().flatten()),
    ];
    findings.extend(addresses.into_iter().filter_map(|(key, address)| address.map(|address| listening(key, &address))));
    findings
}

/// The folder, or the first one above it that is there.
fn existing(folder: &Path) -> &Path {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    if there.as_os_str().is_empty() { Path::new(".") } else { there }
}

fn folder(folder: &Path) -> Finding {
    let there = existing(folder);
    let found = match there == folder {
        true => folder.display().to_string(),
        false => format!("{} (would be made in {})", folder.display(), there.display()),
    };
    let writable = rustix::fs::access(there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    match writable {
        Ok(()) => Finding::ok("data folder", found),
        Err(error) => Finding::failure(
            "data folder",
            format!("{found}: {error}"),
            "give it to this account (chown), or name another one with --data-dir",
        ),
    }
}

fn disk(config: &Config) -> Finding {
    let there = existing(&config.settings.data_dir);
    let Ok(disk) = rustix::fs::statvfs(there) else {
        return Finding::warning("disk", format!("{}: its free space can't be found", there.display()), "look at it with df");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    fits(free, config.settings.disk.0, config.settings.sql_spill.0)
}

/// A folder of the disk tier on a disk of its own.
fn other_disk(folder: &Path, bytes: u64) -> Finding {
    let check = "disk-folders";
    let shown = folder.display();
    if !folder.is_dir() {
        return Finding::failure(
            check,
            format!("{shown}: not there"),
            "mount its disk, or make the folder on it if the disk is new",
        );
    }
    let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
    if let Err(error) = writable {
        return Finding::failure(check, format!("{shown}: {error}"), "give it to this account (chown)");
    }
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Finding::warning(check, format!("{shown}: its free space can't be found"), "look at it with df");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let found = format!("{shown}: {} free; the disk tier may take {}", format_bytes(free), format_bytes(bytes));
    if bytes as f64 > free as f64 * DISK_SHARE_MAX {
        return Finding::warning(check, found, "set less of it, unless the tier's files are what fills it already");
    }
    Finding::ok(check, found)
}

fn fits(free: u64, tier: u64, spill: u64) -> Finding {
    let found =
        format!("{} free; the disk tier may take {}, queries {}", format_bytes(free), format_bytes(tier), format_bytes(spill));
    // What the tier holds already is not free any more, so only a tier larger than what is free may be wrong.
    if tier.saturating_add(spill) as f64 > free as f64 * DISK_SHARE_MAX {
        let remedy = "set disk or sql-spill to less, unless the tier's files are what fills it already";
        return Finding::warning("disk", found, remedy);
    }
    Finding::ok("disk", found)
}

fn listening(key: &str, address: &str) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(key, format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            in_use(key, address, address.to_socket_addrs().into_iter().flatten().find_map(listener::at))
        }
        Err(error) => {
            Finding::failure(key, format!("{address}: {error}"), format!("name an address of this machine with --{key}"))
        }
    }
}

/// Where Forebay is to listen somebody does already.
fn in_use(key: &str, address: &str, by: Option<Listener>) -> Finding {
    match by {
        Some(Listener { process: Some((process, name)), .. }) if name == PROGRAM => {
            Finding::ok(key, format!("{address} is in use by a running Forebay, process {process}"))
        }
        Some(Listener { process: Some((process, name)), .. }) => Finding::warning(
            key,
            format!("{address} is in use by process {process}, {name:?}"),
            format!("stop that one, unless it runs Forebay in it, as Python may, or choose another address with --{key}"),
        ),
        Some(Listener { user, process: None }) => Finding::ok(
            key,
            format!("{address} is in use by account {user}: by a running Forebay, or choose another with --{key}"),
        ),
        None => Finding::ok(key, format!("{address} is in use: by a running Forebay, or choose another with --{key}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_is_told_of() {
        assert_eq!(fits(100, 60, 30).state, State::Ok);
        assert_eq!(fits(100, 60, 40).state, State::Warning);
    }

    #[test]
    fn a_folder_on_another_disk_has_to_be_there() {
        let temp = tempfile::tempdir().unwrap();
        let missing = other_disk(&temp.path().join("disk1"), 1);
        assert!(missing.state == State::Failure && missing.remedy.as_ref().is_some_and(|remedy| remedy.contains("mount")));
        assert_eq!(other_disk(temp.path(), 1).state, State::Ok);
        assert_eq!(other_disk(temp.path(), u64::MAX).state, State::Warning);
    }

    #[test]
    fn a_folder_that_is_not_there_is_its_parents() {
        let temp = tempfile::tempdir().unwrap();
        let missing = temp.path().join("a/b");
        assert_eq!(existing(&missing), temp.path());
        assert_eq!(folder(&missing).state, State::Ok);
    }

    #[test]
    fn the_gateways_address_is_looked_at_where_somebody_may_come_in() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("forebay.toml");
        let looked = |settings: &str| {
            std::fs::write(&file, format!("s3 = \"192.0.2.1:7490\"\n{settings}")).unwrap();
            let config = Config::load(Some(&file), Vec::new()).unwrap();
            check(&config).into_iter().find(|finding| finding.check == "s3").map(|finding| finding.state)
        };
        assert_eq!((looked(""), looked("s3-anonymous = \"read\"\n")), (None, Some(State::Failure)));
    }

    #[test]
    fn an_address_of_another_machine_is_told_of() {
        assert_eq!(listening("worker-listen", "192.0.2.1:7401").state, State::Failure);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listening("worker-listen", &taken.local_addr().unwrap().to_string());
        let this = format!("in use by process {},", std::process::id());
        assert!(found.state == State::Warning && found.found.contains(&this), "{found:?}");
    }

    #[test]
    fn only_a_forebay_is_taken_for_one() {
        let by = |process: Option<(u32, &str)>| {
            let process = process.map(|(process, name)| (process, name.to_string()));
            in_use("http", "127.0.0.1:7480", Some(Listener { user: 998, process }))
        };
        assert_eq!(by(Some((7, "forebay"))), Finding::ok("http", "127.0.0.1:7480 is in use by a running Forebay, process 7"));
        let other = by(Some((8, "nginx")));
        assert!(other.state == State::Warning && other.found.contains("process 8, \"nginx\""), "{other:?}");
        assert!(other.remedy.is_some_and(|remedy| remedy.contains("--http")));
        // Who may not look into it can't tell.
        let hidden = by(None);
        assert!(hidden.state == State::Ok && hidden.found.contains("account 998: by a running Forebay, or"), "{hidden:?}");
    }
}
