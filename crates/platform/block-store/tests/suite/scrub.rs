//! A scrub goes through all that is held, and drops what does not verify.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_block_store::ScrubCursor;

use crate::support::*;

#[test]
fn a_scrub_goes_through_everything_in_steps_and_drops_what_does_not_verify() {
    let (folder, store) = on_disk(16 * MIB, 16 * MIB);
    let specs: Vec<_> = (0..6).map(|number| spec(number, 2 * MIB as u32)).collect();
    for spec in &specs {
        fill(&store, spec, all(spec)).unwrap();
        wait(store.flush());
    }
    let tier = File::options().write(true).open(folder.path().join("disk.tier")).unwrap();
    tier.write_all_at(&[0x55; 3], 5 * MIB + 10 * PAGE as u64 - 1).unwrap();
    tier.sync_all().unwrap();
    let (mut cursor, mut bytes, mut bad, mut steps) = (ScrubCursor::default(), 0, 0, 0);
    loop {
        let step = wait(store.scrub(cursor, 3 * MIB));
        (bytes, bad, steps) = (bytes + step.bytes, bad + step.bad_pages, steps + 1);
        assert!(step.bytes <= 5 * MIB);
        let Some(next) = step.next else { break };
        cursor = next;
    }
    assert_eq!((bytes, bad), (24 * MIB, 2));
    assert!(steps >= 6);
    // The copy in DRAM is still good, and is written to the disk again.
    assert_eq!(store.held(specs[2].id).disk_bytes, 2 * MIB - 2 * PAGE as u64);
    check(&store, &specs[2], all(&specs[2]));
    wait(store.flush());
    assert_eq!(store.held(specs[2].id).disk_bytes, 2 * MIB);
    assert_eq!(wait(store.scrub(ScrubCursor::default(), u64::MAX)).bad_pages, 0);
}

#[test]
fn a_scrub_without_a_disk_tier_verifies_dram() {
    let (_folder, store) = in_dram(16 * MIB);
    let spec = spec(1, 50_000);
    fill(&store, &spec, all(&spec)).unwrap();
    let step = wait(store.scrub(ScrubCursor::default(), u64::MAX));
    assert_eq!((step.bytes, step.bad_pages, step.next), (13 * PAGE as u64, 0, None));
}
