//! A disk tier whose disk is full, for real: a small file system in a file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bucket, Role, csv, forebay};

/// A mounted file system of a few megabytes.
struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    fn mount(home: &Path) -> Self {
        let (image, place) = (home.join("disk.img"), home.join("disk"));
        std::fs::File::create(&image).unwrap().set_len(48 << 20).unwrap();
        std::fs::create_dir(&place).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().unwrap();
            assert!(output.status.success(), "{program} (this test needs root): {}", String::from_utf8_lossy(&output.stderr));
        };
        run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]);
        run("mount", &["-o", "loop", image.to_str().unwrap(), place.to_str().unwrap()]);
        Self { place }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

#[test]
fn a_full_disk_is_a_warning_and_no_failed_query() {
    let home = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(home.path());
    let bucket = Bucket::s3();
    // More than the disk holds, and than it says it has.
    for file in 0..12 {
        bucket.put(&format!("t/{file}.csv"), &csv(300_000));
    }
    let folder = disk.place.join("data");
    let up = Role::up_with(home.path(), &["--data-dir", folder.to_str().unwrap()]);
    bucket.mount(&up);
    let at = up.address();
    let count = || forebay(&at, &["sql", "--csv", "select count(*) as n from '/lake/t/*.csv'"]).ok().text();
    assert_eq!(count(), "n\n3600000\n");
    let warned = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let status = forebay(&at, &["status", "--json"]).ok().json().remove(0);
        status["workers"][0]["warnings"].as_array().filter(|warnings| !warnings.is_empty()).cloned()
    });
    let warned = warned.expect("a full disk is in the status");
    assert!(warned[0].as_str().unwrap().contains("disk"), "{warned:?}");
    assert_eq!(count(), "n\n3600000\n");
    drop(up);
}
