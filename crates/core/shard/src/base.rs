//! The part that every shard has whatever its dial says, opened from its bytes: psi, alphabet, keys, and where records start.

use std::sync::OnceLock;

use bytes::Bytes;
use forebay_types::{Error, Result};
use zstd::zstd_safe::DDict;

use crate::bits::Packed;
use crate::bits::word::{load, width_of};
use crate::keys::KeyIndex;
use crate::model::alphabet::Alphabet;
use crate::model::key::KeyType;
use crate::model::schema::Schema;
use crate::part::Part;
use crate::psi::{Column, Psi};
use crate::record::codes::Codes;
use crate::sections::{HEAD, Sections, section};

/// The kind of a base part in its header; layers have the numbers of their kinds.
pub(crate) const BASE_KIND: u64 = 0;

/// The numbers of a base part, in the order of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// 0 for records, 1 for flat text.
    pub(crate) flat: u64,
    /// Symbols of the text, without the one that ends it.
    pub(crate) symbols: u64,
    pub(crate) records: u64,
    pub(crate) input_bytes: u64,
    /// Symbols of the longest record.
    pub(crate) longest: u64,
    pub(crate) row_bits: u64,
    pub(crate) symbol_bits: u64,
    pub(crate) unit: u64,
    /// What the record text takes in blocks, estimated from a sample.
    pub(crate) block_bytes: u64,
}

impl Numbers {
    const COUNT: usize = 9;

    pub(crate) fn write(&self) -> Vec<u8> {
        [
            self.flat,
            self.symbols,
            self.records,
            self.input_bytes,
            self.longest,
            self.row_bits,
            self.symbol_bits,
            self.unit,
            self.block_bytes,
        ]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
    }

    fn read(bytes: &[u8]) -> Self {
        let number: [u64; Self::COUNT] = std::array::from_fn(|index| load(bytes, index * 8));
        let [flat, symbols, records, input_bytes, longest, row_bits, symbol_bits, unit, block_bytes] = number;
        Self { flat, symbols, records, input_bytes, longest, row_bits, symbol_bits, unit, block_bytes }
    }
}

/// What every setting of the dial has: psi, the alphabet, the keys, and for records the row of each one's start with its
/// inverse.
pub(crate) struct Base {
    pub(crate) identity: u64,
    pub(crate) bytes: usize,
    pub(crate) numbers: Numbers,
    pub(crate) schema: Schema,
    pub(crate) alphabet: Alphabet,
    pub(crate) psi: Psi,
    pub(crate) keys: KeyIndex,
    /// Symbols, bytes and distinct values (estimated) of each attribute over all records.
    pub(crate) attributes: Vec<[u64; 3]>,
    /// Row of each record's start, within the column of the first delimiter; and the record of each such row.
    pub(crate) starts: Packed,
    pub(crate) owners: Packed,
    pub(crate) dictionary: Bytes,
    /// Values that the record text has by number.
    pub(crate) codes: Codes,
    unpacker: OnceLock<DDict<'static>>,
    /// What of it has verified: stands before each use of anything that does not say so itself.
    pub(crate) sections: Sections,
}

impl Base {
    /// Opens a base part by its head; what else it has is to be verified, by [`need`](Self::need), before it is used.
    pub(crate) fn open(bytes: Bytes) -> Result<Self> {
        let sections = Sections::new(Part::open_head(bytes)?);
        let part = &sections.part;
        let corrupt = |what: &str| Error::corrupt(format!("a shard's base does not hold together: {what}; build it again"));
        if part.kind != BASE_KIND {
            return Err(Error::invalid("this part of a shard is a layer, not its base; name the base file"));
        }
        sections.need(HEAD)?;
        let numbers = Numbers::read(&part.section(section::NUMBERS));
        if numbers.records > numbers.symbols || numbers.symbols >= 1 << 31 || numbers.flat > 1 {
            return Err(corrupt("its numbers"));
        }
        let schema = Schema::read(&part.section(section::SCHEMA)).ok_or_else(|| corrupt("its schema"))?;
        let alphabet = Alphabet::read(&part.section(section::ALPHABET)).ok_or_else(|| corrupt("its alphabet"))?;
        let counts = part.section(section::COLUMNS);
        let counts: Vec<u32> = (0..alphabet.symbols).map(|symbol| load(&counts, symbol * 4) as u32).collect();
        let columns = Column::layout(&counts).ok_or_else(|| corrupt("its columns"))?;
        let rows: u64 = counts.iter().map(|count| u64::from(*count)).sum();
        let delimited = (0..schema.attributes.len())
            .all(|attribute| numbers.flat == 1 || u64::from(counts[alphabet.delimiter(attribute) as usize]) == numbers.records);
        if rows != numbers.symbols + 1 || !delimited {
            return Err(corrupt("the sizes of its columns"));
        }
        let psi = Psi::new(
            part.section(section::DIRECTORY),
            part.section(section::PAYLOAD),
            [numbers.row_bits as u32, numbers.symbol_bits as u32, numbers.unit as u32],
            columns,
        );
        let keys = KeyIndex::open(part, section::KEYS, schema.key_type, numbers.records as usize);
        let lengths = part.section(section::ATTRIBUTES);
        let attributes = (0..schema.attributes.len())
            .map(|index| std::array::from_fn(|number| load(&lengths, index * 24 + number * 8)))
            .collect();
        // Records by row and rows by record, both within one column; for flat text, samples of positions and of rows.
        let rows = psi.columns.last().map_or(0, |column| u64::from(column.end()));
        let (start_bits, owner_bits) = match numbers.flat {
            0 => (record_bits(numbers.records), record_bits(numbers.records)),
            _ => (width_of(rows), width_of(numbers.symbols)),
        };
        let (starts, owners) = (part.section(section::STARTS), part.section(section::RECORDS));
        let holds = |section: &Bytes, bits: u32| section.len() as u64 * 8 / u64::from(bits.max(1)) >= numbers.records;
        if numbers.flat == 0 && !(holds(&starts, start_bits) && holds(&owners, owner_bits)) {
            return Err(corrupt("the number of its records"));
        }
        let codes = match section_of(&part.section(section::CODES)) {
            // A shard without record text.
            [] => Codes::none(schema.attributes.len()),
            bytes => Codes::read(bytes, schema.attributes.len()).ok_or_else(|| corrupt("the numbers of its values"))?,
        };
        Ok(Self {
            identity: part.shard,
            bytes: part.bytes,
            numbers,
            alphabet,
            psi,
            keys,
            attributes,
            starts: Packed::new(starts, start_bits),
            owners: Packed::new(owners, owner_bits),
            dictionary: part.section(section::DICTIONARY),
            codes,
            unpacker: OnceLock::new(),
            schema,
            sections,
        })
    }

    /// Verifies sections that were not used yet.
    #[inline]
    pub(crate) fn need(&self, wanted: u32) -> Result<()> {
        self.sections.need(wanted)
    }

    /// The dictionary of the record text, prepared at its first use.
    pub(crate) fn unpacker(&self) -> &DDict<'static> {
        self.unpacker.get_or_init(|| DDict::create(section_of(&self.dictionary)))
    }

    pub(crate) fn records(&self) -> u32 {
        self.numbers.records as u32
    }

    pub(crate) fn record_bits(&self) -> u32 {
        record_bits(self.numbers.records)
    }

    /// The row of the suffix that begins with attribute `attribute` of the record whose row in the column is `index`.
    #[inline(always)]
    pub(crate) fn delimiter_column(&self, attribute: usize) -> Column {
        self.psi.column(self.alphabet.delimiter(attribute))
    }

    /// Rows, with the few unused ones between columns.
    pub(crate) fn rows(&self) -> u64 {
        self.psi.columns.last().map_or(0, |column| u64::from(column.end()))
    }

    pub(crate) fn row_bits(&self) -> u32 {
        width_of(self.rows())
    }

    /// Bits of a position of the text.
    pub(crate) fn position_bits(&self) -> u32 {
        width_of(self.numbers.symbols)
    }

    /// About what an index of an attribute takes: its keys, its distinct values and a place in the hash table for each.
    pub(crate) fn index_bytes(&self, attribute: usize) -> f64 {
        let [_, bytes, distinct] = self.attributes[attribute];
        let records = self.numbers.records as f64;
        let distinct = (distinct as f64).min(records);
        let key = if self.key_type() == KeyType::U64 { 8.0 } else { 4.0 };
        records * key + distinct * (16.0 + bytes as f64 / records.max(1.0))
    }

    /// About what the postings of an attribute take: its records in Elias-Fano, and a place in the hash table for each of its
    /// distinct values.
    pub(crate) fn postings_bytes(&self, attribute: usize) -> f64 {
        let records = self.numbers.records as f64;
        let distinct = (self.attributes[attribute][2] as f64).clamp(1.0, records.max(1.0));
        let entry = 2.5 + (distinct * f64::from(1u32 << self.record_bits().min(31)) / records.max(1.0)).log2().max(0.0);
        let place = 1.25 * f64::from(width_of(self.numbers.records) + 8);
        (records * entry + distinct * place) / 8.0
    }

    pub(crate) fn key_type(&self) -> KeyType {
        self.schema.key_type
    }
}

/// Bits of a record's number.
pub(crate) fn record_bits(records: u64) -> u32 {
    width_of(records.saturating_sub(1))
}

/// The section without the padding behind it.
pub(crate) fn section_of(section: &[u8]) -> &[u8] {
    &section[..section.len().saturating_sub(8)]
}
