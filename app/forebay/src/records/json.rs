//! Records of JSON files, whose columns and types are found by reading all of the file first.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use forebay_shard_store::{Column, Columns, JsonKinds, JsonRecords};
use forebay_types::{Error, Result};

use super::{Input, PIECE_BYTES, Piece, Wanted, bytes_of};

const ROWS_A_PIECE: usize = 8192;

/// Opens a file of JSON objects, one after the other or in one array; the types are those that all values of a column have.
pub(super) fn open(path: &Path, wanted: &Wanted<'_>) -> Result<Input> {
    let bytes = std::fs::metadata(path)?.len();
    let mut kinds = JsonKinds::default();
    for object in objects(path)? {
        let row = kinds.records() + 1;
        let seen = object.and_then(|object| kinds.see(&object));
        seen.map_err(|error| error.context(format!("record {row}")))?;
    }
    let all = kinds.columns();
    let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
    let places = wanted.places(&names)?;
    let kept: Vec<Column> = places.iter().map(|&place| all[place].clone()).collect();
    let columns = Columns::new(kept, wanted.key)?;
    let total = kinds.records().max(1);
    let mut objects = objects(path)?;
    let (for_records, mut row) = (columns.clone(), 0u64);
    let records = std::iter::from_fn(move || {
        let (mut records, mut taken) = (Vec::new(), 0);
        while records.len() < ROWS_A_PIECE && taken < PIECE_BYTES {
            let Some(object) = objects.next() else { break };
            row += 1;
            let record = object.and_then(|mut object| {
                object.retain(|name, _| for_records.all().iter().any(|column| column.name == *name));
                for_records.record_of(&object)
            });
            match record {
                Ok(record) => {
                    taken += bytes_of(&record);
                    records.push(record);
                }
                Err(error) => return Some(Err(error.context(format!("record {row}")))),
            }
        }
        (!records.is_empty()).then(|| Ok(Piece { bytes: bytes * records.len() as u64 / total, records }))
    });
    Ok(Input { columns, bytes, records: Box::new(records) })
}

fn objects(path: &Path) -> Result<JsonRecords<impl BufRead + use<>>> {
    let file = File::open(path).map_err(Error::from)?;
    Ok(JsonRecords::new(BufReader::with_capacity(1 << 20, file)))
}
