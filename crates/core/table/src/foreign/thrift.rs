//! Thrift's compact protocol, as far as headers of pages need it, whose numbers stand before text in a delta encoding too: bytes that
//! mean harm take no memory and no more steps than they are.

/// How deep values that nobody asked for may stand in each other.
const DEPTH_MAX: u32 = 16;

/// Types of fields.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const TINY: u8 = 3;
pub(super) const SHORT: u8 = 4;
pub(super) const NUMBER: u8 = 5;
pub(super) const LONG: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Why no value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The bytes end within it.
    Cut,
    /// It can't be what was written.
    Odd(&'static str),
}

pub(super) type Read<T> = Result<T, Broken>;

/// Bytes that are read from their start on.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// Bytes that were read.
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next field of a struct, after that of the number `last`: its number and its type; none at the struct's end.
    pub(super) fn field(&mut self, last: i16) -> Read<Option<(i16, u8)>> {
        let head = self.byte()?;
        let (further, kind) = (i16::from(head >> 4), head & 15);
        if kind == 0 {
            return Ok(None);
        }
        let id = match further {
            0 => i16::try_from(self.signed()?).ok(),
            further => last.checked_add(further),
        };
        Ok(Some((id.ok_or(Broken::Odd("a field has no number"))?, kind)))
    }

    /// A number of 32 bits.
    pub(super) fn number(&mut self) -> Read<i32> {
        i32::try_from(self.signed()?).map_err(|_| Broken::Odd("a number is too large"))
    }

    /// Passes over a value of a type. Each takes a byte at least, so that this ends where the bytes do.
    pub(super) fn skip(&mut self, kind: u8) -> Read<()> {
        self.skip_within(kind, DEPTH_MAX)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Read<()> {
        let Some(depth) = depth.checked_sub(1) else { return Err(Broken::Odd("values stand too deep in each other")) };
        match kind {
            // What is true or false stands in the type.
            TRUE | FALSE => Ok(()),
            TINY => self.byte().map(drop),
            SHORT..=LONG => self.unsigned().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.unsigned()?;
                self.pass(length)
            }
            LIST | 10 => {
                let (count, kind) = self.list()?;
                self.skip_all(count, &[kind], depth)
            }
            11 => match self.unsigned()? {
                0 => Ok(()),
                count => {
                    let kinds = self.byte()?;
                    self.skip_all(count, &[kinds >> 4, kinds & 15], depth)
                }
            },
            STRUCT => {
                while let Some((_, kind)) = self.field(0)? {
                    self.skip_within(kind, depth)?;
                }
                Ok(())
            }
            13 => self.pass(16),
            _ => Err(Broken::Odd("a value has no type")),
        }
    }

    /// Passes over as many values of each type.
    fn skip_all(&mut self, count: u64, kinds: &[u8], depth: u32) -> Read<()> {
        // Readers don't agree on how many bytes a truth value takes here, and no header has any.
        if count > 0 && kinds.iter().any(|kind| matches!(*kind, TRUE | FALSE)) {
            return Err(Broken::Odd("a list has values that are true or false"));
        }
        if count > self.left() as u64 {
            return Err(Broken::Cut);
        }
        (0..count).try_for_each(|_| kinds.iter().try_for_each(|kind| self.skip_within(*kind, depth)))
    }

    /// What stands before the values of a list: how many they are, and their type.
    pub(super) fn list(&mut self) -> Read<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.unsigned()?,
            few => u64::from(few),
        };
        Ok((count, head & 15))
    }

    /// Bytes that were not read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Broken::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    pub(super) fn pass(&mut self, count: u64) -> Read<()> {
        self.take(count)?;
        Ok(())
    }

    /// As many bytes as they are.
    pub(super) fn take(&mut self, count: u64) -> Read<&'a [u8]> {
        if count > self.left() as u64 {
            return Err(Broken::Cut);
        }
        let (start, end) = (self.at, self.at + count as usize);
        self.at = end;
        Ok(&self.bytes[start..end])
    }

    pub(super) fn unsigned(&mut self) -> Read<u64> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Broken::Odd("a number has no end"))
    }

    pub(super) fn signed(&mut self) -> Read<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}
