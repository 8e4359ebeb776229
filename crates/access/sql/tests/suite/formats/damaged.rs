//! Arrow and Avro files whose parts lie about each other: each is an error that names the file, at once and in little memory.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, NullArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::ipc::{CompressionType, root_as_footer, root_as_message};
use datafusion::arrow::util::pretty::pretty_format_batches;
use forebay_sql::{EngineMemory, EngineSettings, QueryMemorySettings};
use forebay_types::ErrorKind;

use super::written::{ARROW_CODECS, AVRO_CODECS, arrow_file, arrow_stream, avro_file, plain, varied};
use crate::support::{Lake, rows, settings};

const MEMORY_BYTES: u64 = 64 << 20;

pub fn small_lake() -> Lake {
    let memory = QueryMemorySettings { memory_bytes: Some(MEMORY_BYTES), ..Default::default() };
    Lake::with(EngineSettings { memory: EngineMemory::Own(memory), ..settings() })
}

/// A file is refused with an error that names it and says this.
pub async fn refused(lake: &Lake, name: &str, bytes: Vec<u8>, kind: ErrorKind, says: &str) {
    lake.put(name, bytes).await;
    let error = lake.error(&format!("select * from '/lake/{name}'")).await;
    assert_eq!(error.kind(), kind, "{name}: {error}");
    assert!(error.message().contains(name) && error.message().contains(says), "{name}: {error}");
    assert!(error.message().contains("write it "), "{name}: {error}");
}

/// Where the first message with rows begins, and its body.
fn first_rows(bytes: &[u8], is_file: bool) -> (usize, usize) {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let at = match is_file {
        true => {
            let end = bytes.len() - 10;
            let footer = root_as_footer(&bytes[end - number(end)..end]).unwrap();
            footer.recordBatches().unwrap().get(0).offset() as usize
        }
        // After the schema, which has no body.
        false => 8 + number(4),
    };
    (at, at + 8 + number(at + 4))
}

#[tokio::test(flavor = "multi_thread")]
async fn arrow_files_and_streams_of_all_kinds_are_read() {
    let lake = Lake::new();
    let batches = [varied(0, 1_000), varied(1_000, 3), varied(1_003, 500)];
    let schema = batches[0].schema();
    let columns = schema.fields().iter().map(|field| format!("\"{}\"", field.name())).collect::<Vec<_>>().join(", ");
    let wanted = pretty_format_batches(&batches).unwrap().to_string();
    for (at, codec) in ARROW_CODECS.into_iter().enumerate() {
        for (form, bytes) in [("file", arrow_file(&batches, codec)), ("stream", arrow_stream(&batches, codec))] {
            let name = format!("{form}{at}.arrow");
            lake.put(&name, bytes).await;
            let found = lake.engine.execute(&format!("select * from '/lake/{name}'")).await.unwrap().collect().await.unwrap();
            assert_eq!(pretty_format_batches(&found).unwrap().to_string(), wanted, "{name}");
            let sql = format!("select count(*), sum(id), max(view), sum(number) from '/lake/{name}' where kind = 'red'");
            let last = "a text that is too long to stand in a view itself 998";
            assert_eq!(lake.rows(&sql).await, format!("752 564752 {last} 564752"), "{name}");
            assert_eq!(lake.rows(&format!("select count(*) from (select {columns} from '/lake/{name}')")).await, "1503");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_arrow_file_is_read_in_parts() {
    let lake = Lake::new();
    for (name, codec) in [("plain.arrow", None), ("lz4.arrow", Some(CompressionType::LZ4_FRAME))] {
        let batches: Vec<_> = (0..60).map(|at| plain(at * 8_000, 8_000)).collect();
        let bytes = arrow_file(&batches, codec);
        assert!(codec.is_some() || bytes.len() > 12 << 20, "shorter files are read in one part: {}", bytes.len());
        lake.put(name, bytes).await;
        let sql = format!("select count(*), sum(id), count(distinct id) from '/lake/{name}'");
        assert_eq!(lake.rows(&sql).await, "480000 115199760000 480000", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_arrow_file_whose_length_lies_costs_no_memory() {
    let lake = small_lake();
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        for is_file in [true, false] {
            let batch = [plain(0, 5_000)];
            let whole = if is_file { arrow_file(&batch, Some(codec)) } else { arrow_stream(&batch, Some(codec)) };
            let (at, body) = first_rows(&whole, is_file);
            let message = root_as_message(&whole[at + 8..body]).unwrap();
            let buffers = message.header_as_record_batch().unwrap().buffers().unwrap();
            let prefix = |place: usize| body + buffers.get(place).offset() as usize;
            let said = |place: usize| i64::from_le_bytes(whole[prefix(place)..][..8].try_into().unwrap());
            let compressed = (0..buffers.len()).find(|place| buffers.get(*place).length() > 8 && said(*place) > 0).unwrap();
            for lie in [1 << 40, i64::MAX, 8 << 30, said(compressed) + 8, said(compressed) - 8, -2, i64::MIN] {
                let mut bytes = whole.clone();
                bytes[prefix(compressed)..][..8].copy_from_slice(&lie.to_le_bytes());
                lake.put("lie.arrow", bytes).await;
                let error = lake.error("select * from '/lake/lie.arrow'").await;
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "{lie}: {error}");
                assert!(error.message().contains("lie.arrow") && error.message().contains("write it again"), "{lie}: {error}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arrow_batch_larger_than_memory_is_an_error() {
    let lake = small_lake();
    let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 10 << 20]));
    let batch = [RecordBatch::try_from_iter([("zero", zeros)]).unwrap()];
    let large = arrow_file(&batch, Some(CompressionType::ZSTD));
    assert!(large.len() < 1 << 20, "{}", large.len());
    refused(&lake, "large.arrow", large, ErrorKind::Invalid, "`sql-memory`").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arrow_rows_without_bytes_have_an_end() {
    const ROWS: usize = 1_234_567;
    let lake = small_lake();
    let nulls = RecordBatch::try_from_iter([("none", Arc::new(NullArray::new(ROWS)) as ArrayRef)]).unwrap();
    let whole = arrow_file(&[nulls], None);
    lake.put("some.arrow", whole.clone()).await;
    assert_eq!(lake.rows("select count(*) from '/lake/some.arrow'").await, ROWS.to_string());
    let (at, body) = first_rows(&whole, true);
    let mut bytes = whole.clone();
    for place in at..body - 8 {
        if bytes[place..place + 8] == (ROWS as u64).to_le_bytes() {
            bytes[place..place + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        }
    }
    assert_ne!(bytes, whole);
    refused(&lake, "many.arrow", bytes, ErrorKind::Corrupt, "without any bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arrow_footer_that_names_a_message_twice_is_an_error() {
    let lake = small_lake();
    let whole = arrow_file(&[plain(0, 10), plain(10, 10)], None);
    let end = whole.len() - 10;
    let length = u32::from_le_bytes(whole[end..end + 4].try_into().unwrap()) as usize;
    let footer = root_as_footer(&whole[end - length..end]).unwrap();
    let batches = footer.recordBatches().unwrap();
    let (first, second) = (batches.get(0).0, batches.get(1).0);
    let mut bytes = whole.clone();
    let at = whole.windows(24).rposition(|at| at == second).unwrap();
    bytes[at..at + 24].copy_from_slice(&first);
    refused(&lake, "twice.arrow", bytes, ErrorKind::Corrupt, "overlap").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arrow_files_and_streams_that_are_cut_are_errors() {
    let lake = small_lake();
    let batches = [plain(0, 50), plain(50, 50)];
    let (file, stream) = (arrow_file(&batches, None), arrow_stream(&batches, None));
    refused(&lake, "file.arrow", file[..file.len() - 1].to_vec(), ErrorKind::Corrupt, "footer").await;
    let (_, body) = first_rows(&stream, false);
    refused(&lake, "stream.arrow", stream[..body + 20].to_vec(), ErrorKind::Corrupt, "within a message").await;
    refused(&lake, "head.arrow", stream[..30].to_vec(), ErrorKind::Corrupt, "within a message").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn avro_files_of_all_codecs_are_read() {
    let lake = Lake::new();
    // Blocks that are longer and shorter than a batch of the engine.
    let batches = [plain(0, 20_000), plain(20_000, 1), plain(20_001, 9_999)];
    for (at, codec) in AVRO_CODECS.into_iter().enumerate() {
        let name = format!("{at}.avro");
        lake.put(&name, avro_file(&batches, codec)).await;
        let sql = format!("select count(*), sum(id), count(name), sum(pair.a), sum(cardinality(list)) from '/lake/{name}'");
        assert_eq!(lake.rows(&sql).await, "30000 449985000 24000 449985000 45000", "{name}");
        assert_eq!(lake.rows(&format!("select count(*) from '/lake/{name}'")).await, "30000", "{name}");
        let some = format!("select x, id from '/lake/{name}' where id in (0, 8192, 20000, 29999) order by id");
        assert_eq!(
            rows(&lake.engine, &some).await.lines().map(|line| line.split(' ').next_back().unwrap()).collect::<Vec<_>>(),
            ["0", "8192", "20000", "29999"]
        );
    }
}

/// A number as Avro and Thrift write it.
pub fn number(value: i64) -> Vec<u8> {
    let (mut bits, mut out) = (((value << 1) ^ (value >> 63)) as u64, Vec::new());
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
    out
}

/// An Avro file with these blocks: how many rows each says it has, and its bytes.
fn avro(fields: &str, codec: &str, blocks: &[(i64, &[u8])]) -> Vec<u8> {
    let schema = format!(r#"{{"type": "record", "name": "Row", "fields": [{fields}]}}"#);
    let text = |text: &[u8]| [number(text.len() as i64), text.to_vec()].concat();
    let head = [&number(2)[..], &text(b"avro.codec"), &text(codec.as_bytes()), &text(b"avro.schema"), &text(schema.as_bytes())];
    let mut file = [b"Obj\x01", &head.concat()[..], &number(0), &[7; 16]].concat();
    for (rows, bytes) in blocks {
        file.extend([&number(*rows)[..], &text(bytes), &[7; 16]].concat());
    }
    file
}

const ID: &str = r#"{"name": "id", "type": "long"}"#;
const NONE: &str = r#"{"name": "none", "type": "null"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_avro_block_with_more_bytes_than_rows_is_an_error() {
    let lake = small_lake();
    lake.put("good.avro", avro(ID, "null", &[(3, &[2, 4, 6]), (1, &[8])])).await;
    assert_eq!(lake.rows("select sum(id) from '/lake/good.avro'").await, "10");
    refused(&lake, "more.avro", avro(ID, "null", &[(2, &[2, 4, 6])]), ErrorKind::Corrupt, "more bytes than its rows").await;
    refused(&lake, "none.avro", avro(ID, "null", &[(0, &[2])]), ErrorKind::Corrupt, "more bytes than its rows").await;
    refused(&lake, "nulls.avro", avro(NONE, "null", &[(2, &[2])]), ErrorKind::Corrupt, "more bytes than its rows").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_avro_block_with_fewer_bytes_than_rows_is_an_error() {
    let lake = small_lake();
    for rows in [4, 1 << 60, -1] {
        let file = avro(ID, "null", &[(rows, &[2, 4, 6])]);
        refused(&lake, "fewer.avro", file, ErrorKind::Corrupt, "").await;
    }
    let whole = avro(ID, "null", &[(3, &[2, 4, 6])]);
    refused(&lake, "cut.avro", whole[..whole.len() - 3].to_vec(), ErrorKind::Corrupt, "within a block").await;
    let mut other = whole.clone();
    *other.last_mut().unwrap() += 1;
    refused(&lake, "sync.avro", other, ErrorKind::Corrupt, "doesn't end where it says").await;
    let long = [&whole[..whole.len() - 20], &number(i64::MAX)[..], &[0; 30]].concat();
    refused(&lake, "long.avro", long, ErrorKind::Corrupt, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn avro_rows_without_bytes_have_an_end() {
    let lake = small_lake();
    lake.put("some.avro", avro(NONE, "null", &[(20_000, &[]), (5, &[])])).await;
    assert_eq!(lake.rows("select count(*), count(none) from '/lake/some.avro'").await, "20005 0");
    refused(&lake, "many.avro", avro(NONE, "null", &[(1 << 60, &[])]), ErrorKind::Corrupt, "without any bytes").await;
    let list = r#"{"name": "nulls", "type": {"type": "array", "items": "null"}}"#;
    let row = [&number(1 << 30)[..], &number(0)].concat();
    refused(&lake, "lists.avro", avro(list, "null", &[(1, &row)]), ErrorKind::Corrupt, "without any bytes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_avro_block_that_is_decoded_to_more_than_memory_is_an_error() {
    let lake = small_lake();
    let long: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(70 << 20)]));
    let batch = [RecordBatch::try_from_iter([("long", long)]).unwrap()];
    for codec in AVRO_CODECS.into_iter().flatten().take(3) {
        let large = avro_file(&batch, Some(codec));
        assert!(large.len() < 8 << 20, "{}", large.len());
        refused(&lake, "large.avro", large, ErrorKind::Invalid, "`sql-memory`").await;
    }
    let bytes = [&number(1 << 31)[..], &[0; 12]].concat();
    refused(&lake, "snappy.avro", avro(ID, "snappy", &[(1, &bytes)]), ErrorKind::Corrupt, "").await;
    let unknown = avro(ID, "lzo", &[(1, &[2])]);
    lake.put("unknown.avro", unknown).await;
    let error = lake.error("select * from '/lake/unknown.avro'").await;
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("'lzo'"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_whose_values_take_all_memory_is_refused() {
    let lake = Lake::new();
    for wide in [
        DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int8, true)), i32::MAX),
        DataType::FixedSizeBinary(i32::MAX),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("wide", wide, true)]));
        let none = [RecordBatch::new_empty(schema)];
        refused(&lake, "wide.arrow", arrow_file(&none, None), ErrorKind::Invalid, "by its types alone").await;
        refused(&lake, "wide.arrow", arrow_stream(&none, None), ErrorKind::Invalid, "by its types alone").await;
    }
}
