//! Many worlds, a process each, and the fewest faults with which a failed one fails.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::options::Options;
use crate::record::Record;

/// Sets of few faults that are tried where taking faults out one by one leaves more: a fault less moves all that comes after it, so that
/// fewer may fail where one less of many does not.
const SETS_MAX: usize = 200;

/// Runs the worlds that the options ask for: as many at a time as they say, and another one as soon as any of them has ended.
pub(crate) fn many(options: &Options) -> io::Result<ExitCode> {
    let seeds = Mutex::new(options.seed..options.seed.saturating_add(options.seeds));
    let (tell, told) = mpsc::channel();
    let all_passed = std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            let (tell, seeds) = (tell.clone(), &seeds);
            // No longer locked than that.
            let next = move || seeds.lock().next();
            scope.spawn(move || {
                while let Some(seed) = next() {
                    let line = start(seed, options, &options.without).and_then(line_of);
                    if options.until_one_fails && !line.as_ref().is_ok_and(passed) {
                        *seeds.lock() = 0..0;
                    }
                    // Where nobody hears of it any more there is no need for others.
                    if tell.send((seed, line.and_then(|line| with_fewest(line, seed, options)))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tell);
        print(told, options)
    })?;
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints lines in the order of their seeds, up to the first world that fails where that is to be the last one; whether all passed.
fn print(told: mpsc::Receiver<(u64, io::Result<Value>)>, options: &Options) -> io::Result<bool> {
    let (mut early, mut next, mut all_passed) = (BTreeMap::new(), options.seed, true);
    let mut record = Record::new(options);
    'worlds: for (seed, line) in told {
        early.insert(seed, line?);
        while let Some(mut line) = early.remove(&next) {
            line["commit"] = record.commit().into();
            all_passed &= passed(&line);
            writeln!(io::stdout(), "{line}")?;
            record.add(next, &line);
            if options.write {
                record.write()?;
            }
            if options.until_one_fails && !all_passed {
                break 'worlds;
            }
            next = next.saturating_add(1);
        }
    }
    writeln!(io::stderr(), "{}", record.said())?;
    Ok(all_passed)
}

/// The line of a world; where it failed, with the fewest faults with which it does.
fn with_fewest(mut line: Value, seed: u64, options: &Options) -> io::Result<Value> {
    if !passed(&line) && !options.as_it_is {
        line["fewest_faults"] = fewest(seed, options)?;
    }
    Ok(line)
}

/// The faults that are left when many at a time, then each, were tried without, once more after each one less, and when sets of few were
/// tried; a world without them has no violation.
fn fewest(seed: u64, options: &Options) -> io::Result<Value> {
    let faults = options.plan(seed).faults;
    let quiet = Options { trace: false, ..options.clone() };
    let fails = |without: &[usize]| Ok::<_, io::Error>(!passed(&line_of(start(seed, &quiet, without)?)?));
    let mut without = options.without.clone();
    let mut at_a_time = faults.len().div_ceil(2).max(1);
    loop {
        let before = without.len();
        for some in others(&without, faults.len()).chunks(at_a_time) {
            let fewer = [&without[..], some].concat();
            if fails(&fewer)? {
                without = fewer;
            }
        }
        if at_a_time == 1 && without.len() == before {
            break;
        }
        at_a_time = (at_a_time / 2).max(1);
    }
    let (all, left) = (others(&options.without, faults.len()), others(&without, faults.len()).len());
    for few in (1..left).flat_map(|size| sets(&all, size)).take(SETS_MAX) {
        let fewer = others(&few, faults.len());
        if fails(&fewer)? {
            without = fewer;
            break;
        }
    }
    without.sort_unstable();
    let left: Vec<_> = others(&without, faults.len()).into_iter().map(|place| &faults[place]).collect();
    Ok(json!({ "faults": left, "without": without }))
}

/// The places that are not named, of so many.
fn others(named: &[usize], of: usize) -> Vec<usize> {
    (0..of).filter(|place| !named.contains(place)).collect()
}

/// Sets of so many of these, each once.
fn sets(of: &[usize], size: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut at = (size <= of.len()).then(|| (0..size).collect::<Vec<usize>>());
    std::iter::from_fn(move || {
        let now = at.take()?;
        let set = now.iter().map(|&place| of[place]).collect();
        // The last that can go on does, and those behind it follow it.
        if let Some(last) = (0..size).rev().find(|&last| now[last] < of.len() - size + last) {
            let mut next = now;
            next[last] += 1;
            for place in last + 1..size {
                next[place] = next[place - 1] + 1;
            }
            at = Some(next);
        }
        Some(set)
    })
}

fn start(seed: u64, options: &Options, without: &[usize]) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--world", &seed.to_string(), "--seconds", &options.seconds.to_string(), "--ops", &options.ops.to_string()]);
    if options.trace {
        command.arg("--trace");
    }
    if options.standby {
        command.arg("--standby");
    }
    if options.shards {
        command.arg("--shards");
    }
    if options.queries {
        command.arg("--queries");
    }
    #[cfg(feature = "planted")]
    if let Some(name) = &options.planted {
        command.args(["--planted", name]);
    }
    if !without.is_empty() {
        let places: Vec<String> = without.iter().map(usize::to_string).collect();
        command.args(["--without", &places.join(",")]);
    }
    command.stdout(Stdio::piped()).spawn()
}

fn line_of(child: Child) -> io::Result<Value> {
    let output = child.wait_with_output()?;
    match serde_json::from_slice(&output.stdout) {
        Ok(line) => Ok(line),
        Err(_) => Ok(json!({ "violations": 1, "first_violations": [format!("the world's process ended: {}", output.status)] })),
    }
}

fn passed(line: &Value) -> bool {
    line["violations"] == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_each_once_and_all() {
        let of = [3, 5, 7, 9];
        assert_eq!(sets(&of, 1).collect::<Vec<_>>(), [[3], [5], [7], [9]]);
        assert_eq!(sets(&of, 3).collect::<Vec<_>>(), [[3, 5, 7], [3, 5, 9], [3, 7, 9], [5, 7, 9]]);
        assert_eq!(sets(&of, 4).collect::<Vec<_>>(), [of]);
        assert_eq!(sets(&of, 5).count(), 0);
        for size in 1..=10 {
            let all: std::collections::BTreeSet<_> = sets(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], size).collect();
            let expected = (0..1_u32 << 10).filter(|bits| bits.count_ones() as usize == size).count();
            assert_eq!(all.len(), expected, "{size}");
        }
    }
}
