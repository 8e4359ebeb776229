//! Columns of text files in the table form: by what their lines are taken for, each row in one chunk, and never wrong.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use forebay_protocol::{DataReply, DataRequest, PeerRequest};
use forebay_types::{CsvLines, ErrorKind, FormId, ObjectVersion, OperationId, SegmentId, TEXT_CHUNK_BYTES, TextForm, TextLines};

use crate::bed::{Bed, Client};
use crate::cells::{ask_as, hot, made_as, rows, warm};

const CSV: CsvLines =
    CsvLines { header: true, delimiter: b',', quote: b'"', escape: None, comment: None, terminator: None, truncated_rows: false };

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("word", DataType::Utf8View, true),
        Field::new("price", DataType::Decimal128(10, 2), true),
        Field::new("day", DataType::Date32, true),
    ])
}

fn form(lines: TextLines, schema: &Schema) -> Arc<TextForm> {
    Arc::new(TextForm { lines, schema: forebay_table::schema_to_bytes(schema).unwrap() })
}

fn csv() -> Arc<TextForm> {
    form(TextLines::Csv(CSV), &schema())
}

fn word(id: i64) -> String {
    format!("a word, {} \"quoted\"", id % 50)
}

/// More than a chunk of CSV, with a header and quotes.
fn csv_file(rows: i64) -> Vec<u8> {
    let mut text = String::from("id,word,price,day\n");
    for id in 0..rows {
        let (word, shown) = (word(id).replace('"', "\"\""), if id % 7 == 0 { String::new() } else { id.to_string() });
        text += &format!("{shown},\"{word}\",{}.25,2024-02-{:02}\n", id % 1000, 1 + id % 29);
    }
    text.into_bytes()
}

fn json_file(rows: i64) -> Vec<u8> {
    let line = |id: i64| format!("{{\"word\":{:?},\"id\":{},\"price\":{}.25,\"else\":[1]}}\n", word(id), id, id % 1000);
    (0..rows).map(line).collect::<String>().into_bytes()
}

async fn open(bed: &Bed, client: &Client, key: &str, bytes: &[u8]) -> ObjectVersion {
    bed.s3.put("lake", key, bytes).unwrap();
    let version = client.open(key).await.unwrap().version;
    warm(client, &version).await;
    version
}

/// Asks again and again, and gets nothing.
async fn never(client: &Client, version: &ObjectVersion, form: &Arc<TextForm>, columns: &[u32]) {
    for operation in 0..12 {
        for column in columns {
            assert!(ask_as(client, operation, version, Some(form), (0, *column)).await.is_none());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// All values of a column, chunk by chunk.
fn values<T>(chunks: &[Vec<Bytes>], column: usize, of: impl Fn(&RecordBatch, usize) -> T) -> Vec<T> {
    let batches: Vec<_> = chunks.iter().flat_map(|chunk| rows(&chunk[column])).collect();
    assert!(batches.iter().all(|batch| batch.num_rows() <= 8192));
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| of(batch, row)).collect::<Vec<_>>()).collect()
}

fn int(batch: &RecordBatch, row: usize) -> Option<i64> {
    let ids = batch.column(0).as_primitive::<Int64Type>();
    ids.is_valid(row).then(|| ids.value(row))
}

#[tokio::test]
async fn each_row_of_a_csv_file_is_in_one_chunk() {
    let bed = Bed::new(hot()).await;
    let client = bed.client().await;
    let count = 120_000;
    let file = csv_file(count);
    assert!(file.len() as u64 > TEXT_CHUNK_BYTES + 1000, "{} bytes", file.len());
    let version = open(&bed, &client, "t.csv", &file).await;
    let fetched = bed.s3.counters().bytes_out;
    let mut chunks = Vec::new();
    for chunk in 0..2 {
        chunks.push(made_as(&client, &version, Some(&csv()), chunk, &[0, 1, 2, 3]).await);
    }
    let all = || 0..count;
    assert!(values(&chunks, 0, int).into_iter().eq(all().map(|id| (id % 7 != 0).then_some(id))));
    let words = values(&chunks, 1, |batch, row| batch.column(0).as_string_view().value(row).to_string());
    assert!(words.into_iter().eq(all().map(word)));
    let prices = values(&chunks, 2, |batch, row| batch.column(0).as_primitive::<Decimal128Type>().value(row));
    assert!(prices.into_iter().eq(all().map(|id| i128::from(id % 1000) * 100 + 25)));
    let days = values(&chunks, 3, |batch, row| batch.column(0).as_primitive::<Date32Type>().value(row));
    assert!(days.into_iter().eq(all().map(|id| 19754 + (id % 29) as i32)));
    assert_eq!(bed.s3.counters().bytes_out, fetched, "nothing is fetched for it");
    assert!(bed.worker().report().form_bytes > 0);
    client.call(DataRequest::Free { segments: vec![SegmentId::of(&version, 0)] }).await.unwrap();
    assert_eq!(bed.worker().report().form_bytes, 0, "freed with the object");
}

#[tokio::test]
async fn columns_of_json_are_found_by_name() {
    let bed = Bed::new(hot()).await;
    let client = bed.client().await;
    let version = open(&bed, &client, "t.json", &json_file(30_000)).await;
    let form = form(TextLines::Json, &schema());
    let chunks = [made_as(&client, &version, Some(&form), 0, &[0, 2, 3]).await];
    assert!(values(&chunks, 0, int).into_iter().eq((0..30_000).map(Some)));
    let prices = values(&chunks, 1, |batch, row| batch.column(0).as_primitive::<Decimal128Type>().value(row));
    assert!(prices.into_iter().eq((0..30_000).map(|id| id % 1000 * 100 + 25)));
    assert_eq!(values(&chunks, 2, |batch, row| batch.column(0).is_null(row)), vec![true; 30_000], "it is in no line");
}

#[tokio::test]
async fn other_options_and_schemas_have_other_cells() {
    let bed = Bed::new(hot()).await;
    let client = bed.client().await;
    let version = open(&bed, &client, "t.csv", b"1;a,7\n2;b,8\n").await;
    let of = |lines, data_type| {
        form(TextLines::Csv(lines), &Schema::new(vec![Field::new("a", data_type, true), Field::new("b", DataType::Utf8, true)]))
    };
    let plain = CsvLines { header: false, ..CSV };
    let text = |cell: &Bytes| {
        let batch = rows(cell).remove(0);
        let text = |row| batch.column(0).as_string::<i32>().value(row).to_string();
        (0..batch.num_rows()).map(text).collect::<Vec<_>>()
    };
    let commas = made_as(&client, &version, Some(&of(plain.clone(), DataType::Utf8)), 0, &[0]).await;
    assert_eq!(text(&commas[0]), ["1;a", "2;b"]);
    let semicolons = CsvLines { delimiter: b';', ..plain };
    let numbers = of(semicolons.clone(), DataType::Int64);
    assert!(ask_as(&client, 1, &version, Some(&numbers), (0, 0)).await.is_none());
    let cells = made_as(&client, &version, Some(&numbers), 0, &[0]).await;
    assert_eq!(values(&[cells], 0, int), [Some(1), Some(2)]);
    let header = of(CsvLines { header: true, ..semicolons }, DataType::Utf8);
    let cells = made_as(&client, &version, Some(&header), 0, &[0, 1]).await;
    assert_eq!((text(&cells[0]), text(&cells[1])), (vec!["2".to_string()], vec!["b,8".to_string()]));

    let known = async |form| match client.ask_peer(PeerRequest::Form { form }).await.unwrap() {
        (DataReply::Form(form), _) => form,
        (other, _) => panic!("{other:?}"),
    };
    assert_eq!(known(header.id()).await, Some(header));
    assert_eq!(known(FormId(7)).await, None);
}

#[tokio::test]
async fn what_is_not_as_the_form_says_stays_raw() {
    let bed = Bed::new(hot()).await;
    let client = bed.client().await;
    let long = [b"1,\"".as_slice(), &vec![b'x'; 2 * TEXT_CHUNK_BYTES as usize + 9], b"\",1.00,2024-01-01\n"].concat();
    for (name, wrong) in [
        ("type.csv", b"id,word,price,day\nx,b,1,2024-01-01\n".as_slice()),
        ("fields.csv", b"id,word,price,day\n1,b\n"),
        ("lines.csv", b"id,word,price,day\n1,\"b\nc\",1,2024-01-01\n"),
        ("long.csv", &long),
    ] {
        let version = open(&bed, &client, name, wrong).await;
        never(&client, &version, &csv(), &[0, 1]).await;
    }
    let json = form(TextLines::Json, &schema());
    for (name, wrong) in [("array.json", b"[{\"id\":1}]".as_slice()), ("cut.json", b"{\"id\":1}\n{\"id\":")] {
        let version = open(&bed, &client, name, wrong).await;
        never(&client, &version, &json, &[0]).await;
    }
    let good = open(&bed, &client, "good.csv", &csv_file(1000)).await;
    let nested = Field::new("l", DataType::new_list(DataType::Int64, true), true);
    for odd in [
        Arc::new(TextForm { lines: TextLines::Json, schema: vec![9; 40] }),
        form(TextLines::Json, &Schema::new(vec![nested])),
        form(TextLines::Json, &Schema::empty()),
    ] {
        never(&client, &good, &odd, &[0, 1, u32::MAX]).await;
    }
    let endless = Arc::new(TextForm { lines: TextLines::Json, schema: vec![0; 1 << 20] });
    let (version, operation) = (good.clone(), OperationId(1));
    let ask = DataRequest::ReadCell { operation, version, form: Some(endless), row_group: 0, column: 0, in_place: false };
    assert_eq!(client.call(ask).await.unwrap_err().kind(), ErrorKind::Invalid);
    // The thread lives on.
    made_as(&client, &good, Some(&csv()), 0, &[0, 1]).await;
}
