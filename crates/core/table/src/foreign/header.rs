//! The header of a page, read as decoders read it, and no looser: what two readers may take for something else is refused.

use super::thrift::{Broken, FALSE, NUMBER, Read, Reader, STRUCT, TRUE};

/// What stands before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes that it has, without the header.
    pub(super) compressed: i32,
    /// Bytes that it takes when it is decoded.
    pub(super) uncompressed: i32,
    /// Bytes of definition and repetition levels that stand before what is compressed.
    pub(super) levels: [i32; 2],
    /// Whether it says that it is not compressed, though its column is.
    pub(super) is_plain: bool,
    pub(super) page: Page,
}

/// A page, by how many values it says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Data(i32, Values, Deltas),
    Dictionary(i32),
    /// Readers pass over it.
    Index,
}

/// How the values of a data page stand there, as far as it matters before they are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Text in a delta encoding.
    Deltas,
    /// In a dictionary, of which the page says which.
    Indices,
    /// In full.
    Plain,
}

/// Lengths that stand before text of a data page in a delta encoding, and the levels that stand before all values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deltas {
    /// How often lengths stand before the text: those of what a value has in common with the one before it, and of the rest. Never in
    /// other encodings.
    pub(super) streams: u64,
    /// How repetition levels are encoded, or how many bytes they have.
    pub(super) repetition: i32,
    /// The same of definition levels.
    pub(super) definition: i32,
    /// Whether they are bytes, which pages of the second version have.
    pub(super) are_bytes: bool,
}

/// Encodings, numbered as the format does it.
const PLAIN_DICTIONARY: i32 = 2;
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const DELTA_BYTE_ARRAY: i32 = 7;
const RLE_DICTIONARY: i32 = 8;

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
                (5, STRUCT) => data = Some(numbers(reader, NUMBERS_OF_DATA)?.0),
                (7, STRUCT) => dictionary = Some(numbers(reader, NUMBERS_OF_DICTIONARY)?.0),
                (8, STRUCT) => data_2 = Some(numbers(reader, NUMBERS_OF_DATA_2)?),
                // A sum of the page's bytes, and the header of an index, which is empty.
                (4, NUMBER) | (6, STRUCT) => reader.skip(of)?,
                (1..=8, _) => return Err(OTHER_TYPE),
                _ => reader.skip(of)?,
            }
            last = id;
        }
        // Decoders go by these of a page of any kind.
        let (levels, is_plain) = match data_2 {
            Some(([.., definition, repetition], is_compressed)) => {
                ([definition.ok_or(MISSING)?, repetition.ok_or(MISSING)?], is_compressed == Some(false))
            }
            None => ([0, 0], false),
        };
        let page = match kind.ok_or(MISSING)? {
            0 => Page::of_data(data.ok_or(MISSING)?)?,
            1 => Page::Index,
            2 => {
                let [values, ..] = dictionary.ok_or(MISSING)?;
                Page::Dictionary(values.ok_or(MISSING)?)
            }
            3 => Page::of_data_2(data_2.ok_or(MISSING)?.0)?,
            _ => return Err(Broken::Odd("there is no such page")),
        };
        let (compressed, uncompressed) = (compressed.ok_or(MISSING)?, uncompressed.ok_or(MISSING)?);
        Ok(Self { compressed, uncompressed, levels, is_plain, page })
    }
}

impl Page {
    fn of_data([values, encoding, definition, repetition, ..]: Numbers) -> Read<Self> {
        Self::with_deltas(values, encoding, [repetition, definition], false)
    }

    fn of_data_2([values, _, _, encoding, definition, repetition]: Numbers) -> Read<Self> {
        Self::with_deltas(values, encoding, [repetition, definition], true)
    }

    fn with_deltas(values: Option<i32>, encoding: Option<i32>, levels: [Option<i32>; 2], are_bytes: bool) -> Read<Self> {
        let values = values.ok_or(MISSING)?;
        let (stand, streams) = match encoding {
            Some(DELTA_LENGTH_BYTE_ARRAY) => (Values::Deltas, 1),
            Some(DELTA_BYTE_ARRAY) => (Values::Deltas, 2),
            Some(PLAIN_DICTIONARY | RLE_DICTIONARY) => (Values::Indices, 0),
            _ => (Values::Plain, 0),
        };
        let [repetition, definition] = levels;
        let (repetition, definition) = (repetition.ok_or(MISSING)?, definition.ok_or(MISSING)?);
        Ok(Self::Data(values, stand, Deltas { streams, repetition, definition, are_bytes }))
    }
}

/// The numbers that the header of a kind of page has first, in their order.
type Numbers = [Option<i32>; NUMBERS_OF_DATA_2 as usize];

/// Reads as many first numbers of the header of a kind of page and what is true or false behind them, and passes over the rest.
fn numbers(reader: &mut Reader<'_>, count: i16) -> Read<(Numbers, Option<bool>)> {
    let (mut numbers, mut truth, mut last): (Numbers, Option<bool>, i16) = Default::default();
    while let Some((id, of)) = reader.field(last)? {
        match (id, of) {
            (id, NUMBER) if (1..=count).contains(&id) => numbers[id as usize - 1] = Some(reader.number()?),
            (id, _) if (1..=count).contains(&id) => return Err(OTHER_TYPE),
            // It stands in the type.
            (id, TRUE | FALSE) if id == count + 1 => truth = Some(of == TRUE),
            _ => reader.skip(of)?,
        }
        last = id;
    }
    Ok((numbers, truth))
}
