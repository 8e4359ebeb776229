//! What happens to disks.

use forebay_types::PAGE_BYTES;
use rand::Rng;

use super::run::World;
use crate::outside::disks;
use crate::outside::packet::HostId;

/// Of files of this length on, one in so many pages rots: what is shorter is the books.
const ROTS_FROM_BYTES: u64 = 1 << 20;
const ROTS_ONE_IN: u32 = 3;

impl World<'_> {
    /// One in so many pages of a worker's disk has another byte than was written.
    pub(super) fn rot_disk(&mut self, host: HostId) {
        disks::turn_of_nobody();
        let Ok(files) = std::fs::read_dir(self.folder.path().join(format!("{host}"))) else { return };
        let mut files: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        // As the folder lists them differs.
        files.sort();
        for file in files {
            let is_data = file.metadata().is_ok_and(|about| about.is_file() && about.len() >= ROTS_FROM_BYTES);
            let Some(mut bytes) = is_data.then(|| std::fs::read(&file).ok()).flatten() else { continue };
            for page in bytes.chunks_mut(PAGE_BYTES as usize).filter(|page| page.iter().any(|byte| *byte != 0)) {
                if self.chance.random_ratio(1, ROTS_ONE_IN) {
                    let at = self.chance.random_range(0..page.len());
                    page[at] ^= 0x40;
                }
            }
            std::fs::write(&file, bytes).expect("a file of the world's");
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
