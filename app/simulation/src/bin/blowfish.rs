//! Runs BlowFish in simulation: `blowfish run SCENARIO [SEED [ROUTING]]` prints a table, `blowfish skew CURVE SHARDS [STORAGE..]` figure 8's
//! rows, `blowfish figures FOLDER [NAME..]` draws.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use forebay_simulation::{
    SHARD_FIGURES, ShardCurve, ShardRouting, pictures, shard_figure, shards, shards_skew, shards_table, skew_table,
};
use forebay_types::{Error, Result};

/// Storage over input where none is named.
const STORAGE: [f64; 6] = [0.55, 0.6, 0.65, 0.7, 0.8, 1.0];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match run(&words).and_then(|text| io::stdout().lock().write_all(text.as_bytes()).map_err(Error::from)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("blowfish: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<String> {
    match words {
        ["run", scenario] => Ok(shards_table(&shards(scenario, ShardRouting::default(), 1)?)),
        ["run", scenario, seed, routing] => Ok(shards_table(&shards(scenario, routing.parse()?, number(seed)?)?)),
        ["run", scenario, seed] => Ok(shards_table(&shards(scenario, ShardRouting::default(), number(seed)?)?)),
        ["skew", curve, count, storage @ ..] => {
            let storage = if storage.is_empty() {
                STORAGE.to_vec()
            } else {
                storage.iter().map(|word| number(word)).collect::<Result<_>>()?
            };
            Ok(skew_table(&shards_skew(curve.parse::<ShardCurve>()?, number(count)?, 0.99, &storage, 1)?))
        }
        ["figures", folder, names @ ..] => {
            pictures(Path::new(folder), names, &SHARD_FIGURES, shard_figure)?;
            Ok(String::new())
        }
        _ => Err(Error::invalid(
            "say what to do: blowfish run SCENARIO [SEED [ROUTING]], blowfish skew CURVE SHARDS [STORAGE..], or blowfish figures FOLDER \
             [NAME..]",
        )),
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_| Error::invalid(format!("{word:?} is no number that fits here")))
}
