//! Many worlds, a process each, and the fewest faults with which a failed one fails.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::{Value, json};

use crate::options::Options;

/// Runs the worlds that the options ask for.
pub(crate) fn many(options: &Options) -> io::Result<ExitCode> {
    let mut running: VecDeque<(u64, Child)> = VecDeque::new();
    let mut seeds = options.seed..options.seed.saturating_add(options.seeds);
    let mut all_passed = true;
    loop {
        while (running.len() as u64) < options.jobs
            && let Some(seed) = seeds.next()
        {
            running.push_back((seed, start(seed, options, &options.without)?));
        }
        let Some((seed, child)) = running.pop_front() else { break };
        let mut line = line_of(child)?;
        if !passed(&line) {
            all_passed = false;
            if !options.as_it_is {
                line["fewest_faults"] = fewest(seed, options)?;
            }
        }
        writeln!(io::stdout(), "{line}")?;
        if options.until_one_fails && !all_passed {
            // What runs beside it says nothing any more.
            seeds = 0..0;
        }
    }
    Ok(if all_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The faults that are left when many at a time, then each, were tried without, once more after each one less; a world without them has no
/// violation.
fn fewest(seed: u64, options: &Options) -> io::Result<Value> {
    let faults = options.plan(seed).faults;
    let quiet = Options { trace: false, ..options.clone() };
    let mut without = options.without.clone();
    let mut at_a_time = faults.len().div_ceil(2).max(1);
    loop {
        let before = without.len();
        let left: Vec<usize> = (0..faults.len()).filter(|place| !without.contains(place)).collect();
        for some in left.chunks(at_a_time) {
            let fewer = [&without[..], some].concat();
            if !passed(&line_of(start(seed, &quiet, &fewer)?)?) {
                without = fewer;
            }
        }
        if at_a_time == 1 && without.len() == before {
            break;
        }
        at_a_time = (at_a_time / 2).max(1);
    }
    without.sort_unstable();
    let left: Vec<_> = faults.iter().enumerate().filter(|(place, _)| !without.contains(place)).map(|(_, fault)| fault).collect();
    Ok(json!({ "faults": left, "without": without }))
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
