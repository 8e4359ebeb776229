//! A disk that is full or fails is a warning, and reads go on.

#![allow(unsafe_code, reason = "replaces the store's own descriptors to make its disk fail")]

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_block_store::BlockStore;

use crate::support::*;

/// Puts another file in place of the one that the store has open: a device that is full, one that gives nothing.
pub fn replace(path: &Path, with: &File) {
    let path = path.canonicalize().unwrap();
    let mut replaced = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|target| target == path) {
            let fd = entry.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: the descriptor belongs to the store, which goes on using it; it is not closed here.
            let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(fd) });
            rustix::io::dup2(with, &mut target).unwrap();
            replaced += 1;
        }
    }
    assert_eq!(replaced, 1, "{path:?}");
}

fn filled(folder: &Path) -> (BlockStore, Vec<forebay_block_store::SegmentSpec>) {
    let store = with_disk(folder, 16 * MIB, 64 * MIB);
    let specs: Vec<_> = (0..24).map(|number| spec(number, MIB as u32)).collect();
    for spec in &specs[..8] {
        fill(&store, spec, all(spec)).unwrap();
    }
    wait(store.flush());
    (store, specs)
}

#[test]
fn a_full_disk_is_a_warning_and_reads_go_on() {
    let folder = folder();
    let (store, specs) = filled(folder.path());
    assert!(store.usage().warnings.is_empty());
    replace(&folder.path().join("disk.tier"), &File::options().read(true).write(true).open("/dev/full").unwrap());
    for spec in &specs[8..] {
        fill(&store, spec, all(spec)).unwrap();
        check(&store, spec, all(spec));
    }
    wait(store.flush());
    let usage = store.usage();
    assert_eq!(usage.warnings.len(), 1, "{:?}", usage.warnings);
    assert!(usage.warnings[0].contains("paused") && usage.warnings[0].contains("space"), "{:?}", usage.warnings);
    // What the device gives now does not verify: missing, not wrong, not an error.
    for spec in &specs {
        wait(load_and_check(&store, spec, all(spec)));
    }
    for spec in &specs {
        fill(&store, spec, all(spec)).unwrap();
        check(&store, spec, all(spec));
    }
    wait(store.close());
}

#[test]
fn a_disk_that_fails_counts_as_missing() {
    let folder = folder();
    let (store, specs) = filled(folder.path());
    for spec in &specs[8..] {
        fill(&store, spec, all(spec)).unwrap();
    }
    wait(store.flush());
    let gone: Vec<_> = specs.iter().filter(|spec| store.held(spec.id).dram_bytes == 0).collect();
    assert!(gone.len() >= 6, "some are on disk only");
    // Every read of a descriptor that is open for writing only fails.
    replace(&folder.path().join("disk.tier"), &File::options().write(true).open("/dev/null").unwrap());
    for spec in &gone {
        assert_eq!(wait(load_and_check(&store, spec, all(spec))), 0);
        assert_eq!(store.state(spec.id, all(spec)).missing, [all(spec)]);
        fill(&store, spec, all(spec)).unwrap();
        check(&store, spec, all(spec));
    }
    let warnings = store.usage().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("reading is paused")), "{warnings:?}");
}

/// A real file system that fills up, where one can be mounted; the device above stands in for it everywhere.
#[test]
fn a_small_file_system_that_fills_up_is_no_failure() {
    let folder = folder();
    let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
    File::create(&image).unwrap().set_len(24 * MIB).unwrap();
    std::fs::create_dir(&mount).unwrap();
    let mounted = ran(Command::new("mkfs.ext4").args(["-q", "-F", "-O", "^has_journal"]).arg(&image))
        && ran(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount));
    let _mounted = mounted.then(|| Mounted(mount.clone()));
    let tier_folder = if mounted { mount.join("tier") } else { folder.path().join("tier") };
    let store = with_disk(&tier_folder, 16 * MIB, 64 * MIB);
    if !mounted {
        let full = File::options().read(true).write(true).open("/dev/full").unwrap();
        replace(&tier_folder.join("disk.tier"), &full);
    }
    let specs: Vec<_> = (0..48).map(|number| spec(number, MIB as u32)).collect();
    for spec in &specs {
        fill(&store, spec, all(spec)).unwrap();
        check(&store, spec, all(spec));
        wait(store.flush());
    }
    let usage = store.usage();
    assert!(usage.warnings.iter().any(|warning| warning.contains("space")), "{:?}", usage.warnings);
    assert!(usage.disk.used_bytes < 30 * MIB);
    let there: u32 = specs.iter().map(|spec| wait(load_and_check(&store, spec, all(spec)))).sum();
    assert!(!mounted || there > 16 * 256, "what was written before is still read: {there} pages");
}

fn ran(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Unmounts, whatever happens.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = ran(Command::new("umount").arg(&self.0)) || ran(Command::new("umount").arg("-l").arg(&self.0));
        assert!(unmounted || std::thread::panicking(), "{:?} is still mounted", self.0);
    }
}
