//! Fields of the metadata as bytes; whoever reads them gets an error with its place, and never much memory.

use forebay_types::{Error, Result};

/// Appends little-endian fields.
#[derive(Default)]
pub(crate) struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.bytes(text.as_bytes());
    }
}

/// Takes fields off a block that may be anything; errors say at which byte.
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(format!("metadata of the table, byte {}: {what}", self.at))
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.corrupt("it ends too early")),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.corrupt("a flag is neither 0 nor 1")),
        }
    }

    /// A count of things of at least `bytes_each`, so that a wrong one can't ask for much memory.
    pub fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        match count.checked_mul(bytes_each) {
            Some(bytes) if bytes <= self.bytes.len() - self.at => Ok(count),
            _ => Err(self.corrupt("a count is larger than what follows")),
        }
    }

    pub fn text(&mut self) -> Result<String> {
        let length = self.count(1)?;
        match std::str::from_utf8(self.take(length)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.corrupt("a name is not UTF-8")),
        }
    }

    pub fn end(&self) -> Result<()> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.corrupt("bytes are left over")) }
    }
}
