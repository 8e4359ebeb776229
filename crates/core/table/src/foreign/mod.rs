//! Pages of Parquet files, checked by their headers before a decoder sees them: it makes room for what a header says, and a file of
//! 3 KiB can say that it takes 32 GiB.
//! So is the footer, before a library reads it.
//!
//! Only headers are read, and how many lengths text in a delta encoding says that it has. What is compressed is told, so that whoever knows
//! its codec can see whether it becomes as many bytes as it says. Values are the decoder's to check.

mod copies;
mod deltas;
mod footer;
mod header;
mod rows;
mod runs;
mod thrift;

#[cfg(test)]
mod tests;

use std::ops::Range;

use forebay_types::{Error, format_bytes};

pub use copies::ParquetCopies;
pub use deltas::ParquetText;
pub use footer::{PARQUET_TAIL_BYTES, check_parquet_footer, parquet_footer_bytes};
use header::{Deltas, Header, Page, Values};
use thrift::{Broken, Reader};

/// What the footer of a Parquet file says of a column of a row group, as far as its pages must agree with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetColumn {
    /// The type of its values, numbered as the format does it.
    pub physical_type: i32,
    /// Bytes of a value, where that is part of the type.
    pub type_length: i32,
    /// How many values it has, nulls among them.
    pub values: i64,
    /// Whether its pages are compressed. Others have the bytes that they have, whatever their header says.
    pub is_compressed: bool,
    /// The greatest repetition and definition levels of its values: pages say none where it is 0.
    pub levels: [i16; 2],
}

/// A page, as its header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetPage {
    /// Its bytes with its header.
    pub bytes: u64,
    /// What of it is compressed, if anything is.
    pub compressed: Option<ParquetCompressed>,
    /// What is to be looked at before it is decoded, which few pages have.
    pub text: Option<ParquetText>,
    /// How many values it has, if it is a dictionary.
    pub dictionary: Option<u32>,
    /// The same as `text` of a page whose values stand in a dictionary.
    pub indices: Option<ParquetText>,
    /// The same of a page whose values stand in it in full.
    pub plain: Option<ParquetText>,
}

impl ParquetPage {
    /// What a page of values says of them, whatever encoding they have.
    fn data(&self) -> Option<ParquetText> {
        self.text.or(self.indices).or(self.plain)
    }
}

/// The part of a page that is compressed: all of it from a place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParquetCompressed {
    /// Where it begins, counted from the page's header on.
    pub at: u64,
    /// Bytes that it becomes, as the header says it.
    pub becomes: u64,
}

/// Why a page is not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// It is at odds with itself, with its column or with the format.
    Damage(String),
    /// It takes more bytes when it is decoded than there may be; it may be damaged, or large.
    TooLarge {
        /// What it says that it takes.
        bytes: u64,
        /// The bound.
        most: u64,
    },
}

impl From<PageFault> for Error {
    fn from(fault: PageFault) -> Self {
        match fault {
            PageFault::Damage(why) => Self::corrupt(why),
            PageFault::TooLarge { bytes, most } => {
                let (bytes, most) = (format_bytes(bytes), format_bytes(most));
                Self::invalid(format!("a page says that it takes {bytes} of memory, and {most} are the most"))
            }
        }
    }
}

fn damage<T>(why: impl Into<String>) -> Result<T, PageFault> {
    Err(PageFault::Damage(why.into()))
}

impl ParquetColumn {
    /// Checks the pages that bytes of the column's are, the first at their start and each other one behind the one before it. `look` looks
    /// at what a page has behind its header.
    ///
    /// # Errors
    /// The first page that is not to be decoded.
    pub fn check(
        &self,
        bytes: &[u8],
        page_bytes_max: u64,
        look: impl FnMut(&ParquetPage, Range<usize>) -> Result<(), PageFault>,
    ) -> Result<(), PageFault> {
        self.pages(bytes, page_bytes_max, look).try_for_each(|page| page.map(drop))
    }

    /// The same, with where each page is. It ends with the first fault.
    pub fn pages(
        &self,
        bytes: &[u8],
        page_bytes_max: u64,
        mut look: impl FnMut(&ParquetPage, Range<usize>) -> Result<(), PageFault>,
    ) -> impl Iterator<Item = Result<Range<usize>, PageFault>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            if at >= bytes.len() {
                return None;
            }
            let page = self.page_from(at, bytes, page_bytes_max).and_then(|(page, place)| {
                look(&page, place.clone())?;
                Ok(place)
            });
            at = page.as_ref().map_or(bytes.len(), |page| page.end);
            Some(page)
        })
    }

    fn page_from(&self, at: usize, bytes: &[u8], page_bytes_max: u64) -> Result<(ParquetPage, Range<usize>), PageFault> {
        let rest = &bytes[at..];
        match self.page(rest, rest.len() as u64, page_bytes_max)? {
            Some(page) => {
                let left = rest.len() as u64;
                assert!(
                    (1..=left).contains(&page.bytes),
                    "a page of {} bytes ends within {left}, and behind its start",
                    page.bytes
                );
                Ok((page, at..at + page.bytes as usize))
            }
            None => damage("it ends within the header of a page"),
        }
    }

    /// Checks the header of the page that begins where `head` does; the column has `left` bytes from there on. Tells what it says; nothing
    /// where `head` ends within it.
    ///
    /// # Errors
    /// The page is not to be decoded.
    pub fn page(&self, head: &[u8], left: u64, page_bytes_max: u64) -> Result<Option<ParquetPage>, PageFault> {
        let mut reader = Reader::new(head);
        let header = match Header::read(&mut reader) {
            Ok(header) => header,
            Err(Broken::Cut) => return Ok(None),
            Err(Broken::Odd(why)) => {
                return damage(format!("the header of a page can't be read: {why} (or it is encrypted, which is not supported)"));
            }
        };
        let begins = reader.at as u64;
        let Ok(kept) = u64::try_from(header.compressed) else {
            return damage(format!("a page says that it has {} bytes", header.compressed));
        };
        let size = begins + kept;
        if size > left {
            return damage(format!("a page says that it has {kept} bytes, and {} are left", left.saturating_sub(begins)));
        }
        let Ok(decoded) = u64::try_from(header.uncompressed) else {
            return damage(format!("a page says that it takes {} bytes", header.uncompressed));
        };
        if decoded > page_bytes_max {
            return Err(PageFault::TooLarge { bytes: decoded, most: page_bytes_max });
        }
        let levels = header.levels.iter().try_fold(0, |sum, bytes| Some(sum + u64::try_from(*bytes).ok()?));
        let Some(levels) = levels.filter(|levels| *levels <= kept.min(decoded)) else {
            return damage(format!("a page says that its levels have {:?} bytes, and has {kept}", header.levels));
        };
        let becomes = decoded - levels;
        let is_compressed = self.is_compressed && !header.is_plain && becomes > 0;
        let compressed = is_compressed.then_some(ParquetCompressed { at: begins + levels, becomes });
        let mut page = ParquetPage { bytes: size, compressed, text: None, dictionary: None, indices: None, plain: None };
        match header.page {
            Page::Dictionary(values) => {
                page.dictionary = Some(self.check_dictionary(values, if self.is_compressed { decoded } else { kept })?);
            }
            Page::Data(said, stand, deltas) => {
                let Some(values) = u32::try_from(said).ok().filter(|values| i64::from(*values) <= self.values) else {
                    return damage(format!("a page says that it has {said} values, and its column has {}", self.values));
                };
                let data = Some(self.text(values, deltas));
                match stand {
                    Values::Deltas => page.text = data,
                    Values::Indices => page.indices = data,
                    Values::Plain => page.plain = data,
                }
            }
            Page::Index => {}
        }
        Ok(Some(page))
    }

    fn text(&self, values: u32, deltas: Deltas) -> ParquetText {
        let [repetition_level, definition_level] = self.levels;
        ParquetText { deltas, values, repetition_level, definition_level }
    }

    /// A decoder makes room for all values that a dictionary says it has. Those of no bytes are all the same one.
    fn check_dictionary(&self, values: i32, bytes: u64) -> Result<u32, PageFault> {
        let bits = self.value_bits();
        let fits = |values: u32| match bits {
            0 => values <= 1,
            bits => u128::from(values) * u128::from(bits) <= u128::from(bytes) * 8,
        };
        match u32::try_from(values) {
            Ok(values) if fits(values) => Ok(values),
            _ => damage(format!("a dictionary says that it has {values} values, and has {bytes} bytes")),
        }
    }

    /// Bits that a value takes at least where it is written as it is. Of a type that is unknown no dictionary can be read.
    fn value_bits(&self) -> u64 {
        match self.physical_type {
            0 => 1,
            1 | 4 => 32,
            2 | 5 => 64,
            3 => 96,
            // Text begins with its length.
            6 => 32,
            7 => u64::try_from(self.type_length).unwrap_or(0) * 8,
            _ => u64::MAX,
        }
    }
}
