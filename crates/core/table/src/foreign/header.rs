//! The header of a page, read as decoders read it, and no looser: what two readers may take for something else is refused.

use super::thrift::{Broken, NUMBER, Read, Reader, STRUCT};

/// What stands before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes that it has, without the header.
    pub(super) compressed: i32,
    /// Bytes that it takes when it is decoded.
    pub(super) uncompressed: i32,
    pub(super) page: Page,
}

/// A page, by how many values it says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Data(i32),
    Dictionary(i32),
    /// Readers pass over it.
    Index,
}

/// Numbers of a page's own header, which come before what else it has.
const NUMBERS_OF_DATA: i16 = 4;
const NUMBERS_OF_DICTIONARY: i16 = 2;
const NUMBERS_OF_DATA_2: i16 = 6;

const OTHER_TYPE: Broken = Broken::Odd("a field has another type");
const MISSING: Broken = Broken::Odd("a field is missing");

impl Header {
    pub(super) fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let (mut kind, mut uncompressed, mut compressed) = (None, None, None);
        let (mut data, mut dictionary, mut data_2) = (None, None, None);
        let mut last = 0;
        while let Some((id, of)) = reader.field(last)? {
            match (id, of) {
                (1, NUMBER) => kind = Some(reader.number()?),
                (2, NUMBER) => uncompressed = Some(reader.number()?),
                (3, NUMBER) => compressed = Some(reader.number()?),
                (5, STRUCT) => data = Some(values(reader, NUMBERS_OF_DATA)?),
                (7, STRUCT) => dictionary = Some(values(reader, NUMBERS_OF_DICTIONARY)?),
                (8, STRUCT) => data_2 = Some(values(reader, NUMBERS_OF_DATA_2)?),
                // A sum of the page's bytes, and the header of an index, which is empty.
                (4, NUMBER) | (6, STRUCT) => reader.skip(of)?,
                (1..=8, _) => return Err(OTHER_TYPE),
                _ => reader.skip(of)?,
            }
            last = id;
        }
        let page = match kind.ok_or(MISSING)? {
            0 => Page::Data(data.ok_or(MISSING)?),
            1 => Page::Index,
            2 => Page::Dictionary(dictionary.ok_or(MISSING)?),
            3 => Page::Data(data_2.ok_or(MISSING)?),
            _ => return Err(Broken::Odd("there is no such page")),
        };
        Ok(Self { compressed: compressed.ok_or(MISSING)?, uncompressed: uncompressed.ok_or(MISSING)?, page })
    }
}

/// How many values the header of a kind of page says, which is its first field; as many first ones are numbers.
fn values(reader: &mut Reader<'_>, numbers: i16) -> Read<i32> {
    let (mut values, mut last) = (None, 0);
    while let Some((id, of)) = reader.field(last)? {
        match (id, of) {
            (1, NUMBER) => values = Some(reader.number()?),
            (id, of) if (1..=numbers).contains(&id) && of != NUMBER => return Err(OTHER_TYPE),
            _ => reader.skip(of)?,
        }
        last = id;
    }
    values.ok_or(MISSING)
}
