//! Arrow and Avro files of each kind that is read, as our own writers have them.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray, Float64Array, Int32Array,
    Int64Array, LargeStringArray, ListArray, NullArray, RecordBatch, RunArray, StringArray, StringViewArray, StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::arrow_avro::compression::CompressionCodec;
use datafusion::arrow_avro::writer::WriterBuilder;
use datafusion::arrow_avro::writer::format::AvroOcfFormat;

/// How Arrow files are compressed.
pub const ARROW_CODECS: [Option<CompressionType>; 3] = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

/// How Avro files are.
pub const AVRO_CODECS: [Option<CompressionCodec>; 6] = [
    None,
    Some(CompressionCodec::Deflate),
    Some(CompressionCodec::Snappy),
    Some(CompressionCodec::ZStandard),
    Some(CompressionCodec::Bzip2),
    Some(CompressionCodec::Xz),
];

/// So many rows from a number on, with columns that both formats have.
pub fn plain(from: i64, rows: i64) -> RecordBatch {
    let at = || from..from + rows;
    let lists = at().map(|at| Some((0..at % 4).map(|item| Some(item as i32)).collect::<Vec<_>>()));
    let pair: Vec<(_, ArrayRef)> = vec![("a", Arc::new(Int64Array::from_iter_values(at())) as _)];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(at()))),
        ("name", Arc::new(at().map(|at| (at % 5 != 0).then(|| "name ".repeat(at as usize % 3))).collect::<StringArray>())),
        ("flag", Arc::new(at().map(|at| (at % 3 != 0).then_some(at % 2 == 0)).collect::<BooleanArray>())),
        ("x", Arc::new(Float64Array::from_iter_values(at().map(|at| at as f64 / 3.0)))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ("pair", Arc::new(StructArray::try_from(pair).unwrap())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

/// Rows with the columns that Arrow has beside.
pub fn varied(from: i64, rows: i64) -> RecordBatch {
    let at = || from..from + rows;
    let plain = plain(from, rows);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(at().map(|at| at as i32)));
    let twos = Int32Array::from_iter_values(at().flat_map(|at| [at as i32, -1]));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    // A file has one dictionary for all of its batches.
    let keys = Int32Array::from_iter_values(at().map(|at| at as i32 % 2));
    let kinds = Arc::new(StringArray::from(vec!["red", "green"]));
    let long = |at: i64| format!("a text that is too long to stand in a view itself {at}");
    let more: Vec<(&str, ArrayRef)> = vec![
        ("kind", Arc::new(DictionaryArray::new(keys, kinds))),
        ("view", Arc::new(at().map(|at| (at % 4 != 0).then(|| long(at))).collect::<StringViewArray>())),
        ("raw", Arc::new(BinaryViewArray::from_iter_values(at().map(|at| long(at).into_bytes())))),
        ("large", Arc::new(LargeStringArray::from_iter_values(at().map(|at| at.to_string())))),
        ("price", Arc::new(Decimal128Array::from_iter_values(at().map(i128::from)).with_precision_and_scale(12, 2).unwrap())),
        ("two", Arc::new(FixedSizeListArray::new(item, 2, Arc::new(twos), None))),
        ("none", Arc::new(NullArray::new(rows as usize))),
        ("number", numbers),
    ];
    let names = plain.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let all = names.iter().map(String::as_str).zip(plain.columns().iter().cloned()).chain(more);
    RecordBatch::try_from_iter_with_nullable(all.map(|(name, column)| (name, column, true))).unwrap()
}

/// A column whose values are runs.
pub fn runs(rows: i32) -> RecordBatch {
    let column = RunArray::try_new(&Int32Array::from(vec![rows / 2, rows]), &Int32Array::from(vec![7, 8])).unwrap();
    RecordBatch::try_from_iter([("run", Arc::new(column) as ArrayRef)]).unwrap()
}

/// An Arrow IPC file.
pub fn arrow_file(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// An Arrow IPC stream.
pub fn arrow_stream(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

/// An Avro file with a block for each batch.
pub fn avro_file(batches: &[RecordBatch], codec: Option<CompressionCodec>) -> Vec<u8> {
    let builder = WriterBuilder::new(batches[0].schema().as_ref().clone()).with_compression(codec);
    let mut writer = builder.build::<_, AvroOcfFormat>(Vec::new()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner()
}

/// Those files, and what their names end with: what the fuzzer begins with beside the files of other writers.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let batches = [varied(0, 9), varied(9, 5)];
    for codec in ARROW_CODECS {
        files.extend([arrow_file(&batches, codec), arrow_stream(&batches, codec)].map(|bytes| (".arrow".to_string(), bytes)));
    }
    files.push((".arrow".to_string(), arrow_stream(&[runs(40)], None)));
    for codec in AVRO_CODECS {
        files.push((".avro".to_string(), avro_file(&[plain(0, 9), plain(9, 5)], codec)));
    }
    files
}
