//! How large tiers are when nobody says: a quarter of the memory that this process may use, and of the disk's free space.

use std::fs;
use std::path::Path;

use rustix::fs::StatVfs;

/// Tiers smaller than this are not worth their bookkeeping.
const TIER_BYTES_MIN: u64 = 64 << 20;
const MIB: u64 = 1 << 20;

/// The memory that this process may use, in bytes: the machine's, or what its group is given of it.
pub fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_total(&text));
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    [machine, group].into_iter().flatten().min().unwrap_or(1 << 30)
}

/// A quarter of the memory that this process may use, in whole MiB.
pub fn default_dram_bytes() -> u64 {
    quarter(memory_bytes())
}

/// A quarter of the free space of the disk that holds `folder` (or will hold it), in whole MiB.
pub fn default_disk_bytes(folder: &Path) -> u64 {
    free_disk_bytes(folder).map_or(TIER_BYTES_MIN, quarter)
}

/// The free space of the disk that holds `folder` (or will hold it); none where the system does not say.
pub fn free_disk_bytes(folder: &Path) -> Option<u64> {
    disk_of(folder).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// All space of the disk that holds `folder` (or will hold it), whoever has it; none where the system does not say.
pub fn whole_disk_bytes(folder: &Path) -> Option<u64> {
    disk_of(folder).map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize)).filter(|bytes| *bytes > 0)
}

fn disk_of(folder: &Path) -> Option<StatVfs> {
    let there = folder.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
    // An empty path is the last ancestor of a relative one.
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    rustix::fs::statvfs(there).ok()
}

fn quarter(bytes: u64) -> u64 {
    (bytes / 4 / MIB * MIB).max(TIER_BYTES_MIN)
}

fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_kib() {
        assert_eq!(memory_total("MemTotal:       24689128 kB\nMemFree: 1 kB\n"), Some(24_689_128 * 1024));
        assert_eq!(memory_total("nothing"), None);
    }

    #[test]
    fn disk_of_a_folder_that_is_not_there_yet_is_its_parents() {
        assert!(default_disk_bytes(Path::new("not/there/yet")) >= TIER_BYTES_MIN);
        let (free, whole) = (free_disk_bytes(Path::new("not/there/yet")), whole_disk_bytes(Path::new("not/there/yet")));
        assert!(free.is_some() && whole >= free, "{free:?} of {whole:?}");
    }
}
