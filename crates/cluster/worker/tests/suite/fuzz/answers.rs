//! Answers that mean harm, as who asked reads them: clients, workers and coordinators, of this version of the protocol and the one before.
//! Each is read or refused, in little time and memory.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use forebay_fuzz::{run, shape};
use forebay_protocol::{ControlReply, DataReply, NodeReply, PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST, decode_from, encode_for};
use forebay_types::{ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::variant;

/// Types of answers, as the files of samples name them.
const TYPES: [&str; 3] = ["DataReply", "ControlReply", "NodeReply"];

/// The sample of each kind of answer, with two bytes before it: its type's place, and whether it is read as of the version before.
fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/protocol/tests/suite/golden");
    let read = |version: u16| fs::read_to_string(folder.join(format!("v{version}.txt"))).ok();
    // Those of a version that is being made are not written before the next one begins.
    let samples =
        [PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST].into_iter().find_map(read).expect("there are samples of all messages");
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let sample = |line: &str| -> Option<Vec<u8>> {
        let (name, bytes) = line.split_once(' ')?;
        let place = TYPES.iter().position(|known| *known == name)?;
        let bytes = bytes.rsplit(' ').next()?.as_bytes().chunks(2).map(byte);
        Some([place as u8, 0].into_iter().chain(bytes).collect())
    };
    samples.lines().filter_map(sample).collect()
}

/// What an answer is taken for; what was read can be written again.
fn read<T: DeserializeOwned + Serialize + Debug>(version: u16, bytes: &[u8]) -> String {
    let read: Result<T> = decode_from(version, bytes);
    if let Ok(answer) = &read {
        let _ = encode_for(version, answer);
    }
    told(read)
}

fn told<T: Debug>(read: Result<T>) -> String {
    match read {
        Ok(answer) => variant(format!("{answer:?}")),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
            shape(error.message())
        }
    }
}

#[test]
fn any_answer_is_read_or_refused() {
    let seeds = seeds();
    for (place, name) in TYPES.iter().enumerate() {
        assert!(seeds.iter().filter(|seed| usize::from(seed[0]) == place).count() > 10, "{name}: its kinds are all there");
    }
    run(
        "answers",
        seeds,
        |_| (),
        |input| {
            let [place, age, bytes @ ..] = input else { return String::new() };
            let version = if age % 2 == 0 { PROTOCOL_VERSION } else { PROTOCOL_VERSION_OLDEST };
            let read = match TYPES[usize::from(*place) % TYPES.len()] {
                "DataReply" => read::<DataReply>(version, bytes),
                "ControlReply" => read::<ControlReply>(version, bytes),
                _ => {
                    let read = NodeReply::decode(bytes);
                    if let Ok(answer) = &read {
                        let _ = answer.encode();
                    }
                    told(read)
                }
            };
            format!("{place} {version} {read}")
        },
    );
}
