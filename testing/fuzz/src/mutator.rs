//! Inputs that are nearly right: what is known to reach far, changed in a few places. What reaches somewhere new is kept and changed on.

use std::collections::BTreeMap;

/// Inputs that are kept beside the seeds.
const KEPT_MAX: usize = 2_000;
/// Bytes of an input.
const BYTES_MAX: usize = 64 << 10;

/// Makes inputs of seeds, and of inputs that have led somewhere new.
pub struct Mutator {
    state: u64,
    inputs: Vec<Vec<u8>>,
    /// Where inputs have led, and how often.
    pub reached: BTreeMap<String, u64>,
}

impl Mutator {
    /// The seed is printed, so that a run can be had again: `FOREBAY_TEST_FUZZ_SEED`.
    pub fn new(seeds: Vec<Vec<u8>>) -> Self {
        let seed = std::env::var("FOREBAY_TEST_FUZZ_SEED")
            .map_or(0x9e37_79b9_7f4a_7c15, |text| text.parse().expect("FOREBAY_TEST_FUZZ_SEED is a number"));
        eprintln!("FOREBAY_TEST_FUZZ_SEED={seed}");
        Self { state: seed | 1, inputs: seeds, reached: BTreeMap::new() }
    }

    /// A number below `sides`; 0 where there are none.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % sides.max(1)
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let at = self.roll(self.inputs.len());
        let mut input = self.inputs[at].clone();
        for _ in 0..self.roll(5) {
            self.change(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.roll(input.len() + 1);
        let end = (at + 1 + self.roll(8)).min(input.len());
        match self.roll(8) {
            0 if at < input.len() => input[at] ^= 1 << self.roll(8),
            1 if at < input.len() => input[at] = [0, 1, 2, 0x7f, 0x80, 0xff][self.roll(6)],
            2 if at < input.len() => input[at] = self.roll(256) as u8,
            // Numbers at their limits, as they are written.
            3 | 4 if at < input.len() => {
                let number =
                    [0, 1, 0x3fff, 1 << 14, 1 << 20, (1 << 20) + 1, 1 << 31, u32::MAX.into(), 1 << 58, u64::MAX][self.roll(10)];
                let mut length = 1;
                while at + length < input.len() && input[at + length - 1] & 0x80 != 0 {
                    length += 1;
                }
                input.splice(at..at + length, varint(number));
            }
            5 if at < end => drop(input.drain(at..end)),
            6 if at < end => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            _ => {
                let other = self.roll(self.inputs.len());
                let from = self.roll(self.inputs[other].len() + 1);
                input.truncate(at);
                input.extend_from_slice(&self.inputs[other][from..]);
            }
        }
    }

    /// Says where an input has led.
    pub fn led_to(&mut self, input: &[u8], edge: String) {
        let count = self.reached.entry(edge).or_insert(0);
        *count += 1;
        if *count == 1 && self.inputs.len() < KEPT_MAX {
            self.inputs.push(input.to_vec());
        }
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}
