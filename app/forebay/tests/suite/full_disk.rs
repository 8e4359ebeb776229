//! A disk tier whose disk is full, for real: a small file system. Root mounts one in a file; others get one in memory, in a
//! namespace of their own, which the test is run again in.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bucket, Role, forebay};

const NAME: &str = "full_disk::a_full_disk_is_a_warning_and_no_failed_query";
/// Set where the test runs in a namespace.
const WITHIN: &str = "FOREBAY_TEST_IN_NAMESPACE";
const REMEDY: &str = "a full disk needs root, or user namespaces that may mount (sysctl kernel.unprivileged_userns_clone=1 \
                      user.max_user_namespaces=1000): to test all else, `cargo test .. -- --skip full_disk`";

/// A mounted file system of a few megabytes.
struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    fn mount(home: &Path) -> Self {
        let place = home.join("disk");
        std::fs::create_dir(&place).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
            assert!(output.status.success(), "{program}: {}; {REMEDY}", String::from_utf8_lossy(&output.stderr));
        };
        if std::env::var_os(WITHIN).is_some() {
            run("mount", &["-t", "tmpfs", "-o", "size=48m", "tmpfs", place.to_str().unwrap()]);
        } else {
            let image = home.join("disk.img");
            std::fs::File::create(&image).unwrap().set_len(48 << 20).unwrap();
            run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
            run("mount", &["-o", "loop", image.to_str().unwrap(), place.to_str().unwrap()]);
        }
        Self { place }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

/// Runs this test where it may mount. False when that is here.
fn runs_elsewhere() -> bool {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if is_root || std::env::var_os(WITHIN).is_some() {
        return false;
    }
    let this = std::env::current_exe().unwrap();
    let mut again = Command::new("unshare");
    again.args(["--user", "--map-root-user", "--mount", "--"]).arg(this).args(["--exact", NAME, "--nocapture"]).env(WITHIN, "1");
    let output = again.output().unwrap_or_else(|error| panic!("unshare: {error}; {REMEDY}"));
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{REMEDY}");
    true
}

#[test]
fn a_full_disk_is_a_warning_and_no_failed_query() {
    if runs_elsewhere() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(home.path());
    let bucket = Bucket::s3();
    // More than the disk holds, and than it says it has.
    bucket.put_csv("t", 12, 300_000);
    let folder = disk.place.join("data");
    let up = Role::up_with(home.path(), &["--data-dir", folder.to_str().unwrap()]);
    bucket.mount(&up);
    let at = up.address();
    let count = || forebay(&at, &["sql", "--csv", "select count(*) as n from '/lake/t/*.csv'"]).ok().text();
    assert_eq!(count(), "n\n3600000\n");
    let warned = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let status = forebay(&at, &["status", "--json"]).ok().json().remove(0);
        let warnings = status["workers"][0]["warnings"].as_array()?.clone();
        warnings.into_iter().find(|warning| warning.as_str().is_some_and(|warning| warning.contains("paused")))
    });
    let warned = warned.expect("a full disk is in the status");
    assert!(warned.as_str().unwrap().contains("disk"), "{warned:?}");
    assert_eq!(count(), "n\n3600000\n");
    drop(up);
}
