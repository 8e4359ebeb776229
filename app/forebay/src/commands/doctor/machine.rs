//! Limits of this machine and of this account.

use std::fs;

use forebay_data_folder::memory_bytes;
use forebay_types::format_bytes;
use rustix::process::{Resource, getrlimit};

use super::finding::Finding;
use crate::config::Config;

/// Fewer open files than this, and a server soon refuses connections: each is a file, and so is each mapped one.
const FILES_MIN: u64 = 4096;
/// So many serve thousands of clients.
const FILES_GOOD: u64 = 65_536;
/// Of the memory, the DRAM tier and what queries hold may take this together; the rest is for the processes and the system.
const MEMORY_SHARE_MAX: f64 = 0.9;

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    vec![
        open_files(maximum.unwrap_or(u64::MAX)),
        memory(memory_bytes(), config.settings.dram.0, config.settings.sql_memory.0),
        huge_pages(fs::read_to_string(HUGE_PAGES).ok().as_deref()),
    ]
}

fn open_files(most: u64) -> Finding {
    let found = if most == u64::MAX { "no limit".to_string() } else { format!("{most} at most") };
    let remedy =
        "raise the hard limit: LimitNOFILE=1048576 of systemd, /etc/security/limits.conf, or --ulimit nofile of a container";
    match most {
        0..FILES_MIN => Finding::failure("open files", found, remedy),
        FILES_MIN..FILES_GOOD => Finding::warning("open files", found, remedy),
        _ => Finding::ok("open files", found),
    }
}

fn memory(all: u64, tier: u64, of_queries: u64) -> Finding {
    let found = format!(
        "{}, of which the DRAM tier may take {} and queries {}",
        format_bytes(all),
        format_bytes(tier),
        format_bytes(of_queries)
    );
    let planned = tier.saturating_add(of_queries) as f64;
    if tier > all {
        return Finding::failure("memory", found, "set dram to less than the machine has; without it a quarter is taken");
    }
    if planned > all as f64 * MEMORY_SHARE_MAX {
        let remedy = "set dram or sql-memory to less: together they leave the rest of the machine under a tenth";
        return Finding::warning("memory", found, remedy);
    }
    Finding::ok("memory", found)
}

/// The tier is memory that processes share; with huge pages, reading it misses fewer translations.
fn huge_pages(setting: Option<&str>) -> Finding {
    let Some(setting) = setting else { return Finding::ok("huge pages", "this system has none") };
    let chosen = setting.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or("unknown");
    let found = format!("{chosen} for shared memory");
    match chosen {
        "never" | "deny" => Finding::ok("huge pages", format!("{found}: `advise` may make reads from the DRAM tier faster")),
        _ => Finding::ok("huge pages", found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn few_open_files_are_told_of() {
        let states = [1024, 4096, 65_536, u64::MAX].map(|most| open_files(most).state);
        assert_eq!(states, [State::Failure, State::Warning, State::Ok, State::Ok]);
    }

    #[test]
    fn a_tier_that_does_not_fit_is_told_of() {
        const GIB: u64 = 1 << 30;
        let states = [(33, 0), (20, 10), (8, 8)].map(|(tier, queries)| memory(32 * GIB, tier * GIB, queries * GIB).state);
        assert_eq!(states, [State::Failure, State::Warning, State::Ok]);
    }

    #[test]
    fn the_chosen_setting_stands_in_brackets() {
        assert_eq!(huge_pages(Some("always within_size [advise] never deny force\n")).found, "advise for shared memory");
    }
}
