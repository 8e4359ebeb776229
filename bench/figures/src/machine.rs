//! The machine that figures come from, and how busy it is.

use std::thread::available_parallelism;

use forebay_types::{Error, Result, ResultExt};
use serde::{Deserialize, Serialize};

/// Of `/proc/stat`, `/proc/PID/stat`: fixed at 100 a second for programs, whatever the kernel's own clock is.
const TICKS_PER_SEC: f64 = 100.0;

/// What one has to know to measure again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This one.
    ///
    /// # Errors
    /// Where `/proc` does not say.
    pub fn here() -> Result<Self> {
        let memory = field("/proc/meminfo", "MemTotal")?;
        let kib = memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok());
        Ok(Self {
            // Not every architecture has it.
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|_| std::env::consts::ARCH.to_owned()),
            cores: available_parallelism().map_or(1, usize::from),
            memory_bytes: kib.ok_or_else(|| Error::internal(format!("/proc/meminfo: no KiB in {memory:?}")))? * 1024,
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        })
    }
}

/// Tasks that ran or waited to run, over the last 1, 5 and 15 minutes.
pub(crate) fn load() -> Result<[f64; 3]> {
    numbers(&read("/proc/loadavg")?).and_then(|three| three.try_into().ok()).ok_or_else(|| unread("/proc/loadavg"))
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    text.split_whitespace().take(3).map(|word| word.parse().ok()).collect()
}

/// Processor seconds up to a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    /// Of everyone, and what there was to have.
    all: f64,
    there: f64,
    /// Of this process' children that have ended, and theirs.
    children: f64,
}

impl Busy {
    /// Until now.
    pub(crate) fn now() -> Result<Self> {
        let (all, there) = everyone(&read("/proc/stat")?).ok_or_else(|| unread("/proc/stat"))?;
        let children = ended(&read("/proc/self/stat")?).ok_or_else(|| unread("/proc/self/stat"))?;
        Ok(Self { all, there, children })
    }

    /// Since then: what the children took, and the share of the machine that others took meanwhile.
    pub(crate) fn since(self, before: Self) -> (f64, f64) {
        let children = self.children - before.children;
        let others = (self.all - before.all - children).max(0.0);
        (children, others / (self.there - before.there).max(1.0 / TICKS_PER_SEC))
    }
}

/// Busy and all seconds: user, nice, system, idle, iowait, irq, softirq, steal.
fn everyone(stat: &str) -> Option<(f64, f64)> {
    let words = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let there: f64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(((there - idle) / TICKS_PER_SEC, there / TICKS_PER_SEC))
}

/// The 16th and 17th field; the second one is a name in brackets that may hold blanks.
fn ended(stat: &str) -> Option<f64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let ticks = after_name.split_whitespace().skip(13).take(2).map(|word| word.parse::<f64>().ok());
    Some(ticks.collect::<Option<Vec<_>>>()?.iter().sum::<f64>() / TICKS_PER_SEC)
}

fn field(path: &str, name: &str) -> Result<String> {
    let text = read(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map(|value| value.trim().to_owned()).ok_or_else(|| Error::internal(format!("{path} has no {name}")))
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).context(|| path.to_owned())
}

fn unread(path: &str) -> Error {
    Error::internal(format!("{path} is not as Linux writes it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_says_what_it_is() {
        let here = Machine::here().unwrap();
        assert!(here.cores > 0 && here.memory_bytes > 1 << 20 && !here.cpu.is_empty() && !here.kernel.is_empty(), "{here:?}");
        assert!(load().unwrap().iter().all(|load| *load >= 0.0));
    }

    #[test]
    fn the_processors_time_is_read_as_the_kernel_writes_it() {
        assert_eq!(everyone("cpu  100 0 50 800 50 0 0 0 7 7\ncpu0 1\n"), Some((1.5, 10.0)));
        assert_eq!(everyone("cpu  100 x"), None);
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 1 2 3 4 11 12 150 50 20 0 1";
        assert_eq!(ended(stat), Some(2.0));
    }

    #[test]
    fn what_children_took_is_not_what_others_took() {
        let before = Busy { all: 10.0, there: 100.0, children: 1.0 };
        let (children, others) = Busy { all: 13.0, there: 110.0, children: 3.0 }.since(before);
        assert_eq!((children, others), (2.0, 0.1));
    }
}
