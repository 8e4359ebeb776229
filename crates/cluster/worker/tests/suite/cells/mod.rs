//! Columns in the table form: made when they are popular, never stale, never in the way.

mod disk;
mod far;
mod text;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use forebay_block_store::StoreSettings;
use forebay_protocol::{DataReply, DataRequest, PutCondition, WantedRows};
use forebay_table::Table;
use forebay_types::{Comparison, HotForm, Key, MountOptions, ObjectVersion, OperationId, RowTest, TextForm, Validate};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::bed::{Bed, Client, Plan, start_worker, until};

const ROWS: i64 = 20_000;

/// A mount whose popular columns are decoded.
pub fn hot() -> Plan {
    Plan { options: MountOptions { hot_form: HotForm::Table, ..MountOptions::default() }, ..Plan::default() }
}

/// Two row groups of a number and a text that repeats.
fn file(from: i64) -> Vec<u8> {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter((from..from + ROWS).map(|id| (id % 7 != 0).then_some(id))));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|id| format!("a word that repeats {}", id % 50))));
    let batch = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("word", words, false)]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(ROWS as usize / 2)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// A bed with such a file, a client, and the version that it has opened.
async fn with_file(plan: Plan) -> (Bed, Client, ObjectVersion) {
    let bed = Bed::new(plan).await;
    bed.s3.put("lake", "t.parquet", &file(0)).unwrap();
    let client = bed.client().await;
    let version = client.version("t.parquet").await;
    (bed, client, version)
}

/// Asks for a cell of a Parquet file.
async fn ask(client: &Client, operation: u64, version: &ObjectVersion, row_group: u32, column: u32) -> Option<Bytes> {
    ask_as(client, operation, version, None, (row_group, column)).await
}

/// Asks for a cell.
pub async fn ask_as(
    client: &Client,
    operation: u64,
    version: &ObjectVersion,
    form: Option<&Arc<TextForm>>,
    (row_group, column): (u32, u32),
) -> Option<Bytes> {
    let (operation, form) = (OperationId(operation), form.cloned());
    let request = DataRequest::ReadCell { operation, version: version.clone(), form, row_group, column, in_place: false };
    match client.call(request).await.unwrap() {
        (DataReply::Read { in_place: None, .. }, payload) => Some(payload),
        (DataReply::NoCell { .. }, _) => None,
        (other, _) => panic!("{other:?}"),
    }
}

/// Rows of columns of the first row group.
pub fn rows_of(operation: OperationId, version: &ObjectVersion, columns: &[u32], tests: Vec<RowTest>) -> WantedRows {
    let (version, columns, bytes) = (version.clone(), columns.to_vec(), 1 << 20);
    WantedRows {
        operation,
        version,
        form: None,
        row_group: 0,
        columns,
        tests,
        limit: None,
        bytes_max: bytes,
        raw_bytes: bytes.into(),
        link_bytes_per_sec: None,
        within_us: None,
    }
}

/// A condition on a number and a text: 15,000 or more, and this one.
pub fn few(word: &[u8]) -> Vec<RowTest> {
    let number = RowTest::Compare { column: 0, by: Comparison::AtLeast, value: 15_000i64.to_le_bytes().to_vec() };
    vec![number, RowTest::Compare { column: 1, by: Comparison::Equal, value: word.to_vec() }, RowTest::And]
}

/// Asks as one operation after the other until it is there; the thread that decodes gives way to all others.
async fn made(client: &Client, version: &ObjectVersion, row_group: u32, column: u32) -> Bytes {
    made_as(client, version, None, row_group, &[column]).await.remove(0)
}

/// The same for columns that are asked for together.
pub async fn made_as(
    client: &Client,
    version: &ObjectVersion,
    form: Option<&Arc<TextForm>>,
    row_group: u32,
    columns: &[u32],
) -> Vec<Bytes> {
    let began = Instant::now();
    for operation in 100.. {
        let mut cells = Vec::new();
        for column in columns {
            cells.extend(ask_as(client, operation, version, form, (row_group, *column)).await);
        }
        if cells.len() == columns.len() {
            return cells;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nothing was decoded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!()
}

pub async fn warm(client: &Client, version: &ObjectVersion) {
    assert_eq!(client.read(version, 0, version.size as usize).await.unwrap().len() as u64, version.size);
}

pub fn rows(cell: &Bytes) -> Vec<RecordBatch> {
    let table = Table::open(cell).unwrap();
    let all = table.schema().projection();
    (0..table.row_groups()).map(|group| table.plan(group, &all).unwrap().read(cell).unwrap().batch().unwrap()).collect()
}

#[tokio::test]
async fn a_column_that_two_operations_ask_for_is_decoded() {
    let (bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    let fetched = bed.s3.counters().bytes_out;
    for _ in 0..3 {
        assert!(ask(&client, 1, &version, 1, 0).await.is_none(), "one operation is not enough");
    }
    let cell = made(&client, &version, 1, 0).await;
    let batches = rows(&cell);
    assert!(batches.iter().all(|batch| batch.num_rows() <= 8192));
    let ids = batches.iter().flat_map(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().iter());
    assert!(ids.eq((ROWS / 2..ROWS).map(|id| (id % 7 != 0).then_some(id))), "other values");
    let words = rows(&made(&client, &version, 0, 1).await);
    let words =
        words.iter().flat_map(|batch| batch.column(0).as_any().downcast_ref::<arrow_array::StringViewArray>().unwrap().iter());
    assert!(
        words.eq((0..ROWS / 2)
            .map(|id| Some(format!("a word that repeats {}", id % 50)))
            .collect::<Vec<_>>()
            .iter()
            .map(|word| word.as_deref()))
    );
    let report = bed.worker().report();
    assert!(report.form_bytes >= cell.len() as u64, "{report:?}");
    assert_eq!(bed.s3.counters().bytes_out, fetched, "nothing is fetched for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_whose_bytes_lie_on_two_workers_is_decoded() {
    let options = MountOptions { hot_form: HotForm::Table, validate: Validate::Immutable, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let bytes = Bytes::from(file(0));
    bed.s3.put("lake", "t.parquet", &bytes).unwrap();
    bed.s3.put("lake", "told", b"old").unwrap();
    let settings = StoreSettings::new(bed.folder.path().join("second"), 64 << 20);
    let second = start_worker(bed.node.coordinator_at(), settings, None).await;
    let (one, other) = (bed.client().await, Client::connect(&second.address(), bed.mount.id).await);
    let old = other.version("told").await;
    until("the workers know of each other", async || {
        let put = DataRequest::Put { mount: bed.mount.id, key: Key::new("told").unwrap(), condition: PutCondition::Any };
        one.send(put, vec!["new".into()]).await.unwrap();
        other.version("told").await != old
    })
    .await;
    // Within the column's own bytes: neither has all of it, and the footer is the other one's.
    let (start, len) = SerializedFileReader::new(bytes.clone()).unwrap().metadata().row_group(1).column(0).byte_range();
    assert!(len > 20_000, "{len} bytes are some pages");
    let cut = (start + len / 2) as usize;
    let version = one.open("t.parquet").await.unwrap().version;
    assert_eq!(one.read(&version, 0, cut).await.unwrap(), bytes[..cut]);
    assert_eq!(other.read(&version, cut as u64, bytes.len() - cut).await.unwrap(), bytes[cut..]);
    let fetched = bed.s3.counters().bytes_out;
    let batches = rows(&made(&one, &version, 1, 0).await);
    let ids = batches.iter().flat_map(|batch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().iter());
    assert!(ids.eq((ROWS / 2..ROWS).map(|id| (id % 7 != 0).then_some(id))), "other values");
    assert_eq!(bed.s3.counters().bytes_out, fetched, "nothing is fetched for it");
}

#[tokio::test]
async fn what_is_in_no_tier_is_not_fetched_for_it() {
    let (bed, client, version) = with_file(hot()).await;
    for operation in 0..20 {
        assert!(ask(&client, operation, &version, 0, 0).await.is_none());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((bed.s3.counters().bytes_out, bed.worker().report().form_bytes), (0, 0));
}

#[tokio::test]
async fn another_version_has_other_cells() {
    let (bed, client, old) = with_file(hot()).await;
    warm(&client, &old).await;
    let first = made(&client, &old, 0, 0).await;
    bed.s3.put("lake", "t.parquet", &file(1_000_000)).unwrap();
    client.refresh("").await;
    let new = client.open("t.parquet").await.unwrap().version;
    assert_ne!(old, new);
    assert!(ask(&client, 1, &new, 0, 0).await.is_none(), "the old version's cell");
    warm(&client, &new).await;
    let second = made(&client, &new, 0, 0).await;
    let least = |cell: &Bytes| rows(cell)[0].column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(1);
    assert_eq!((least(&first), least(&second)), (1, 1_000_001));
}

#[tokio::test]
async fn raw_mounts_damaged_files_and_wrong_questions_have_no_cells() {
    let options = MountOptions { hot_form: HotForm::Raw, ..MountOptions::default() };
    let (_bed, client, version) = with_file(Plan { options, ..Plan::default() }).await;
    warm(&client, &version).await;
    for operation in 0..10 {
        assert!(ask(&client, operation, &version, 0, 0).await.is_none());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let bed = Bed::new(hot()).await;
    let mut damaged = file(0);
    // From the first page's header on; the footer is as it was.
    damaged[4..4000].fill(0xff);
    bed.s3.put("lake", "damaged.parquet", &damaged).unwrap();
    bed.s3.put("lake", "good.parquet", &file(0)).unwrap();
    let client = bed.client().await;
    let damaged = client.open("damaged.parquet").await.unwrap().version;
    let good = client.open("good.parquet").await.unwrap().version;
    for version in [&damaged, &good] {
        warm(&client, version).await;
    }
    for operation in 0..10 {
        assert!(ask(&client, operation, &damaged, 0, 0).await.is_none());
        for (row_group, column) in [(2, 0), (0, 2), (u32::MAX, 0), (0, u32::MAX)] {
            assert!(ask(&client, operation, &good, row_group, column).await.is_none());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The thread lives on.
    made(&client, &good, 0, 0).await;
}

#[tokio::test]
async fn cells_leave_when_room_is_needed_and_when_the_path_is_freed() {
    let (bed, client, version) = with_file(Plan { dram_bytes: 8 << 20, ..hot() }).await;
    warm(&client, &version).await;
    made(&client, &version, 0, 1).await;
    let segments = vec![forebay_types::SegmentId::of(&version, 0)];
    client.call(DataRequest::Free { segments }).await.unwrap();
    assert_eq!(bed.worker().report().form_bytes, 0, "freed with the object");

    warm(&client, &version).await;
    made(&client, &version, 0, 1).await;
    for object in 0..4 {
        let key = format!("big{object}");
        bed.object(&key, 6 << 20);
        let big = client.open(&key).await.unwrap().version;
        for _ in 0..2 {
            warm(&client, &big).await;
        }
    }
    assert_eq!(bed.worker().report().form_bytes, 0, "evicted as anything else");
    assert!(ask(&client, 2, &version, 0, 1).await.is_none());
}
