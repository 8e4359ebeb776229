//! A limit on the memory of all processes of a cluster together: a control group of the system.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};

/// Where groups are: those that limit all things, or where the system has older ones, those of memory.
const GROUPS: &str = "/sys/fs/cgroup";
const OF_MEMORY: &str = "/sys/fs/cgroup/memory";

/// A group with a limit; gone when it is dropped, and all of its processes have ended.
#[derive(Debug)]
pub struct Group {
    /// Where processes are put into it.
    pub place: PathBuf,
    /// The file that says how many processes were ended.
    told: PathBuf,
}

impl Group {
    /// Makes one whose processes have at most so much memory, with the pages of files that they read and write.
    pub fn make(bytes: u64) -> io::Result<Self> {
        let all = Path::new(GROUPS).join("cgroup.controllers").is_file();
        let (above, limit, told) = match all {
            true => (GROUPS, "memory.max", "memory.events"),
            false => (OF_MEMORY, "memory.limit_in_bytes", "memory.oom_control"),
        };
        let place = Path::new(above).join(format!("forebay-soak-{}", std::process::id()));
        let named = |error: Error| Error::other(format!("{}: {error}", place.display()));
        fs::create_dir(&place).map_err(named)?;
        let group = Self { told: place.join(told), place: place.clone() };
        fs::write(group.place.join(limit), bytes.to_string()).map_err(named)?;
        Ok(group)
    }

    /// Processes that were ended for want of memory.
    pub fn ended(&self) -> io::Result<u64> {
        ended(&fs::read_to_string(&self.told)?).ok_or_else(|| Error::other(format!("{}: no oom_kill", self.told.display())))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Empty, unless a process has not ended.
        let _ = fs::remove_dir(&self.place);
    }
}

fn ended(told: &str) -> Option<u64> {
    told.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_groups_say_how_many_were_ended() {
        assert_eq!(ended("low 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 0\n"), Some(1));
        assert_eq!(ended("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), Some(3));
        assert_eq!(ended("low 0\n"), None);
    }
}
