//! What happens to disks.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_types::PAGE_BYTES;
use rand::Rng;

use super::run::World;
use crate::outside::disks;
use crate::outside::packet::HostId;

/// Pages of this file rot, one in so many: the others are the books.
const ROTS: &str = "disk.tier";
const ROTS_ONE_IN: u32 = 3;
/// Read of it at once.
const READ_BYTES: usize = 256 << 10;
/// A page that nobody has written.
static EMPTY: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];

impl World<'_> {
    /// One in so many pages of a worker's disk has another byte than was written.
    pub(super) fn rot_disk(&mut self, host: HostId) {
        disks::turn_of_nobody();
        let path = self.folder.path().join(format!("{host}")).join(ROTS);
        let Ok(file) = File::options().read(true).write(true).open(path) else { return };
        let (mut piece, mut from) = (vec![0; READ_BYTES], 0);
        loop {
            let read = file.read_at(&mut piece, from).expect("a file of the world's");
            if read == 0 {
                return;
            }
            for (number, page) in piece[..read].chunks(PAGE_BYTES as usize).enumerate() {
                if *page != EMPTY[..page.len()] && self.chance.random_ratio(1, ROTS_ONE_IN) {
                    let at = self.chance.random_range(0..page.len());
                    let place = from + number as u64 * PAGE_BYTES + at as u64;
                    file.write_all_at(&[page[at] ^ 0x40], place).expect("a file of the world's");
                }
            }
            from += read as u64;
        }
    }

    /// A worker's host has lost its power: what it wrote lately and has not synchronised may be there, or in part, or not.
    pub(super) fn lose_power(&mut self, host: HostId) {
        disks::lose_unsynced(host, &self.folder.path().join(format!("{host}")));
    }

    /// The disk of a worker's host is another one.
    pub(super) fn lose_disk(&mut self, host: HostId) {
        let folder = self.folder.path().join(format!("{host}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder).expect("the folder of a process that has ended");
        }
    }
}
