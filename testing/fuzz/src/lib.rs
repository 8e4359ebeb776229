//! Inputs that mean harm, for tests of whatever reads bytes from outside.
//!
//! Owns: nearly right inputs ([`Mutator`]), the limits that every reader is held to ([`run`]: no panic, no long wait, no memory
//! beyond a bound), and what is told at the end ([`Tally`]). Never does: know a format; the tests that use it bring seeds and what
//! mends their checksums.
//!
//! `FOREBAY_TEST_FUZZ_SECS` makes all of them go on for so long; `make fuzz` does that.

mod mutator;
mod tally;

use std::time::{Duration, Instant};

pub use mutator::Mutator;
pub use tally::Tally;

/// What one input may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the process may grow by, at its highest.
const GROWTH_MAX: u64 = 1 << 30;

/// How long a fuzzer goes on: a few seconds among all tests, or what `FOREBAY_TEST_FUZZ_SECS` says.
pub fn lasts() -> Duration {
    let said = std::env::var("FOREBAY_TEST_FUZZ_SECS").ok();
    Duration::from_secs(said.map_or(4, |text| text.parse().expect("FOREBAY_TEST_FUZZ_SECS is a number of seconds")))
}

/// The memory that this process has, in bytes.
pub fn resident_bytes() -> u64 {
    kilobytes("VmRSS:") * 1024
}

/// The most that it ever had.
fn peak_bytes() -> u64 {
    kilobytes("VmHWM:") * 1024
}

fn kilobytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says how much memory a process has");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("as it always did");
    line.trim().trim_end_matches(" kB").trim().parse().expect("in kB")
}

/// Gives `read` inputs that are nearly one of the `seeds`, for [`lasts`]. `read` says where an input has led: how it was
/// refused, or what it held; what leads somewhere new is changed on. Every second input is `mend`ed before, so that what stands
/// behind a checksum is reached too.
///
/// # Panics
/// Where `read` does, with the input in a file; and where it takes long or more memory than any input is worth.
pub fn run(what: &str, seeds: Vec<Vec<u8>>, mend: impl Fn(&mut Vec<u8>), mut read: impl FnMut(&[u8]) -> String) {
    let (mut mutator, tally) = (Mutator::new(seeds), Tally::begin(what));
    let mut count = 0_u64;
    while tally.goes_on() {
        let mut input = mutator.input();
        if mutator.roll(2) == 0 {
            mend(&mut input);
        }
        let asked = Instant::now();
        tally.asks(&input);
        let kept = Kept(what, &input);
        let edge = read(&input);
        std::mem::forget(kept);
        let took = asked.elapsed();
        if took >= PATIENCE {
            tally.hang(format_args!("{took:?} for an input of {} bytes: {}", input.len(), keep(what, &input)));
        }
        if count.is_multiple_of(64) {
            let grown = tally.grown_bytes();
            assert!(
                grown < GROWTH_MAX,
                "{grown} bytes for an input of {} bytes or one before: {}",
                input.len(),
                keep(what, &input)
            );
        }
        count += 1;
        mutator.led_to(&input, edge);
        tally.took(1, took, mutator.reached.len());
    }
}

/// Writes an input down when its reader panics.
struct Kept<'a>(&'a str, &'a [u8]);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        eprintln!("the input is in {}", keep(self.0, self.1));
    }
}

fn keep(what: &str, input: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("forebay-fuzz-{}-{}", what.replace(' ', "-"), std::process::id()));
    match std::fs::write(&path, input) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("no file ({error}): {input:?}"),
    }
}

/// An error's text without what differs from one to the next.
pub fn shape(text: &str) -> String {
    let words = text.rsplit(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 3);
    words.take(4).collect::<Vec<_>>().join(" ")
}
