//! A shard of one text instead of records: its base samples positions at a fixed rate, as the papers do.

use bytes::Bytes;
use forebay_types::{Error, Result};

use super::layers::FlatLayerBuilder;
use super::{BASE_RATE, FlatText, dial};
use crate::base::{BASE_KIND, Numbers};
use crate::bits::pack;
use crate::bits::word::width_of;
use crate::build::INPUT_BYTES_MAX;
use crate::build::assemble::BuiltShard;
use crate::build::rows::sort_rows;
use crate::keys;
use crate::model::alphabet::{Alphabet, END};
use crate::model::key::KeyType;
use crate::model::schema::Schema;
use crate::part;

/// Makes a shard of flat text: the base, and the layers that bring it to `ratio` of the text, or as near below as they
/// come. Takes about 9.5 bytes a byte of text at its peak.
pub fn build_flat(text: &[u8], ratio: f64) -> Result<BuiltShard> {
    if text.len() as u64 > INPUT_BYTES_MAX {
        return Err(Error::invalid(format!("a shard takes at most {INPUT_BYTES_MAX} bytes of text; begin another one")));
    }
    let mut used = [false; 256];
    text.iter().for_each(|byte| used[*byte as usize] = true);
    let alphabet = Alphabet::new(0, used, false);
    let mut symbols = Vec::with_capacity(text.len());
    alphabet.encode(text, &mut symbols);
    // One symbol is the end's, so in a text of all 256 bytes the lowest few are written as two symbols each.
    if symbols.len() as u64 > INPUT_BYTES_MAX {
        return Err(Error::invalid(
            "the text has all 256 bytes, and too many of the lowest: it takes more than a gigabyte of symbols; \
            cut it in two",
        ));
    }
    let rows = sort_rows(&symbols, alphabet.symbols, END)?;
    let end = rows.columns.last().map_or(0, |column| u64::from(column.end()));
    let mut positions = vec![0u64; end.div_ceil(u64::from(BASE_RATE)) as usize];
    let mut starts = Vec::with_capacity(text.len() / BASE_RATE as usize + 1);
    // Samples are of the text's bytes, whatever symbols they take.
    let (mut position, mut begins) = (0u64, true);
    for (place, row) in rows.inverse.iter().enumerate() {
        if row % BASE_RATE == 0 {
            positions[(row / BASE_RATE) as usize] = position;
        }
        if begins && position.is_multiple_of(u64::from(BASE_RATE)) {
            starts.push(u64::from(*row));
        }
        begins = !symbols.get(place).is_some_and(|symbol| alphabet.is_first(*symbol));
        position += u64::from(begins);
    }
    assert_eq!(position, text.len() as u64 + 1, "each byte of the text has its place, and so has the end");
    assert_eq!(starts.len(), text.len() / BASE_RATE as usize + 1, "the text is sampled at one rate");
    let starts = pack(starts, (1 << width_of(end)) - 1);
    let positions = pack(positions, (1 << width_of(symbols.len() as u64)) - 1);
    let numbers = Numbers {
        flat: 1,
        symbols: symbols.len() as u64,
        input_bytes: text.len() as u64,
        longest: symbols.len() as u64,
        row_bits: u64::from(rows.psi.row_bits),
        symbol_bits: u64::from(rows.psi.symbol_bits),
        unit: u64::from(rows.psi.unit),
        ..Numbers::default()
    };
    let counts: Vec<u8> = rows.counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    let (mut schema, mut letters) = (Vec::new(), Vec::new());
    Schema::new("", KeyType::U64).write(&mut schema);
    alphabet.write(&mut letters);
    let none = keys::encode_numbers(&[]);
    let (directory, payload) = (&rows.psi.directory, &rows.psi.payload);
    let sections: [&[u8]; 15] = [
        &numbers.write(),
        &schema,
        &letters,
        &counts,
        &[],
        directory,
        payload,
        &starts,
        &positions,
        &[],
        &none[0],
        &none[1],
        &none[2],
        &none[3],
        &none[4],
    ];
    let base = Bytes::from(part::write(BASE_KIND, None, 0, &sections));
    let flat = FlatText::open(base.clone(), [])?;
    let ids = dial(&flat.base, ratio, false);
    if ids.is_empty() {
        return Ok(BuiltShard { base, layers: Vec::new() });
    }
    let builder = FlatLayerBuilder::new(flat.base.clone(), &ids)?;
    builder.run(builder.everything());
    Ok(BuiltShard { base, layers: builder.finish()? })
}
