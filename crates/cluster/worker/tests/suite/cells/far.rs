//! Rows of columns for readers of other hosts: those that meet the condition and no others, and never of another version.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use forebay_protocol::{AccessWay, DataReply, DataRequest, SelectedRows, WantedAccesses, WantedRows};
use forebay_table::{Coded, Narrow, unpack};
use forebay_types::{Comparison, ErrorKind, HotForm, MountOptions, ObjectVersion, OperationId, RowTest};

use crate::bed::{Bed, Client, Plan};
use crate::cells::{ROWS, few, file, hot, rows, rows_of, warm, with_file};

/// Asks once; none where it is not there.
async fn ask(client: &Client, wanted: &WantedRows) -> Option<(SelectedRows, Bytes)> {
    match client.call(DataRequest::SelectRows(wanted.clone())).await.unwrap() {
        (DataReply::Selected(selected), payload) => Some((selected, payload)),
        (DataReply::NoCell { .. }, payload) => {
            assert!(payload.is_empty());
            None
        }
        (other, _) => panic!("{other:?}"),
    }
}

/// Asks as one operation after the other until it is there.
async fn selected(client: &Client, wanted: &WantedRows) -> (SelectedRows, Bytes) {
    let began = Instant::now();
    for operation in 100.. {
        let wanted = WantedRows { operation: OperationId(operation), ..wanted.clone() };
        if let Some(found) = ask(client, &wanted).await {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "nothing was decoded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    unreachable!()
}

/// The numbers and texts of an answer.
fn values(table: &Bytes) -> Vec<(Option<i64>, String)> {
    let of = |batch: RecordBatch| {
        let narrow = Narrow::of_field(batch.schema().field(0)).unwrap().expect("its numbers take few bytes");
        let words = match Coded::of_field(batch.schema().field(1)).unwrap() {
            Some(coded) => coded.decode(batch.column(1)).unwrap(),
            None => batch.column(1).clone(),
        };
        let (ids, words) = (narrow.widen(batch.column(0)).unwrap(), words.as_string::<i32>());
        ids.as_primitive::<Int64Type>().iter().zip(words.iter().map(|word| word.unwrap().to_string())).collect::<Vec<_>>()
    };
    rows(table).into_iter().flat_map(of).collect()
}

/// The rows of the second row group, as they are in the file.
fn all() -> Vec<(Option<i64>, String)> {
    let id = |id: i64| (id % 7 != 0).then_some(id);
    (ROWS / 2..ROWS).map(|row| (id(row), format!("a word that repeats {}", row % 50))).collect()
}

async fn opened(bed: &Bed, client: &Client, from: i64) -> ObjectVersion {
    bed.s3.put("lake", "t.parquet", &file(from)).unwrap();
    client.refresh("").await;
    let version = client.open("t.parquet").await.unwrap().version;
    warm(client, &version).await;
    version
}

#[tokio::test]
async fn rows_that_meet_a_condition_are_sent_and_no_others() {
    let (bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    let fetched = bed.s3.counters().bytes_out;
    let wanted = WantedRows { row_group: 1, ..rows_of(OperationId(1), &version, &[0, 1], few(b"a word that repeats 7")) };
    let (answer, table) = selected(&client, &wanted).await;
    let is_wanted = |(id, word): &(Option<i64>, String)| id.is_some_and(|id| id >= 15_000) && word == "a word that repeats 7";
    let right: Vec<_> = all().into_iter().filter(is_wanted).collect();
    assert!(!right.is_empty() && right.len() < 100);
    assert_eq!((answer.rows, answer.fits, values(&table)), (right.len() as u64, true, right));
    assert!(table.len() < 10_000, "{} bytes", table.len());

    let null = RowTest::Null { column: 0, negated: false };
    let (_, nulls) = selected(&client, &WantedRows { tests: vec![null], ..wanted.clone() }).await;
    assert!(values(&nulls).into_iter().eq(all().into_iter().filter(|(id, _)| id.is_none())));
    let (whole, table) = selected(&client, &WantedRows { tests: vec![], ..wanted.clone() }).await;
    assert_eq!((whole.rows, values(&table)), (ROWS as u64 / 2, all()));
    let (few, table) = selected(&client, &WantedRows { tests: vec![], limit: Some(3), ..wanted.clone() }).await;
    assert_eq!((few.rows, values(&table)), (3, all()[..3].to_vec()));
    let too_many = WantedRows { tests: vec![], bytes_max: 1000, ..wanted };
    let (answer, table) = selected(&client, &too_many).await;
    assert_eq!((answer.rows, answer.fits, table.len()), (0, false, 0));
    assert_eq!(bed.s3.counters().bytes_out, fetched, "nothing is fetched for it");
}

#[tokio::test]
async fn an_answer_is_compressed_for_a_slow_link_and_for_no_other() {
    let (_bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    // Some columns more than once, so that there is something to compress.
    let wanted = WantedRows { row_group: 1, ..rows_of(OperationId(1), &version, &[0, 1, 0, 0, 0, 0], vec![]) };
    let over = |link| WantedRows { link_bytes_per_sec: Some(link), ..wanted.clone() };
    let (plain, table) = selected(&client, &wanted).await;
    assert_eq!((plain.packed, values(&table)), (None, all()), "nobody knows the link");
    assert!(table.len() > 100_000, "{} bytes", table.len());
    let (fast, same) = selected(&client, &over(u64::MAX)).await;
    assert_eq!((fast.packed, same == table), (None, true), "a link that is faster than any compressor");
    let slow = over(1_000_000);
    for _ in 0..5 {
        let (packed, payload) = selected(&client, &slow).await;
        assert!(payload.len() * 2 < table.len(), "{} bytes of {}", payload.len(), table.len());
        let whole = unpack(&payload, packed.packed.unwrap() as usize).unwrap();
        assert_eq!((packed.rows, packed.fits, whole == table), (plain.rows, true, true));
    }
    let (few, payload) = selected(&client, &WantedRows { limit: Some(3), ..slow.clone() }).await;
    assert_eq!((few.packed, values(&payload)), (None, all()[..3].to_vec()), "small ones go as they are");
    // An answer may have so many bytes on its way.
    let bytes_max = table.len() as u32 / 4 * 3;
    let fits = async |wanted: &WantedRows| selected(&client, &WantedRows { bytes_max, ..wanted.clone() }).await.0.fits;
    assert!(fits(&slow).await);
    assert!(!fits(&wanted).await && !fits(&over(u64::MAX)).await);
}

#[tokio::test]
async fn rows_that_take_longer_than_they_may_are_not_selected() {
    let (_bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    let wanted = rows_of(OperationId(1), &version, &[0, 1], few(b"a word that repeats 7"));
    let (right, table) = selected(&client, &wanted).await;
    let within = async |micros| ask(&client, &WantedRows { within_us: Some(micros), ..wanted.clone() }).await.unwrap();
    for _ in 0..3 {
        let (answer, nothing) = within(0).await;
        assert_eq!((answer.rows, answer.fits, nothing.len()), (0, false, 0));
    }
    let (answer, same) = within(u32::MAX).await;
    assert_eq!((answer.rows, answer.fits, same == table), (right.rows, true, true));
    // The first rows alone take no time.
    let first = WantedRows { tests: vec![], limit: Some(3), within_us: Some(0), ..wanted.clone() };
    assert_eq!(ask(&client, &first).await.unwrap().0.rows, 3);
}

#[tokio::test]
async fn rows_that_were_sent_are_recorded_as_reads_of_their_columns() {
    let (_bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    let wanted = rows_of(OperationId(1), &version, &[0, 1], few(b"a word that repeats 7"));
    selected(&client, &wanted).await;
    let told = async |since| match client.call(DataRequest::Accesses(WantedAccesses { since, one_in: 1, within_ms: 10 })).await {
        Ok((DataReply::Accesses(accesses), _)) => accesses,
        other => panic!("{other:?}"),
    };
    let next = told(0).await.next;
    assert!(ask(&client, &wanted).await.is_some());
    let made = told(next).await.made.into_iter().map(|access| (access.key, access.way)).collect::<Vec<_>>();
    assert_eq!(made, vec![(version.key.clone(), AccessWay::Decoded); 2]);
}

#[tokio::test]
async fn rows_are_of_the_version_that_is_asked_for() {
    let bed = Bed::new(hot()).await;
    let client = bed.client().await;
    let old = opened(&bed, &client, 0).await;
    let first = RowTest::Null { column: 0, negated: true };
    let of =
        |version: &ObjectVersion| WantedRows { limit: Some(1), ..rows_of(OperationId(1), version, &[0, 1], vec![first.clone()]) };
    assert_eq!(values(&selected(&client, &of(&old)).await.1)[0].0, Some(1));
    let new = opened(&bed, &client, 1_000_000).await;
    assert!(ask(&client, &of(&new)).await.is_none(), "the old version's rows");
    assert_eq!(values(&selected(&client, &of(&new)).await.1)[0].0, Some(1_000_000));
}

#[tokio::test]
async fn raw_mounts_and_wrong_questions_have_no_rows() {
    let options = MountOptions { hot_form: HotForm::Raw, ..MountOptions::default() };
    let bed = Bed::new(Plan { options, ..Plan::default() }).await;
    let client = bed.client().await;
    let version = opened(&bed, &client, 0).await;
    for operation in 0..10 {
        assert!(ask(&client, &rows_of(OperationId(operation), &version, &[0], vec![])).await.is_none());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let (_bed, client, version) = with_file(hot()).await;
    warm(&client, &version).await;
    let good = rows_of(OperationId(1), &version, &[0], vec![]);
    selected(&client, &good).await;
    let is = |column, value: &[u8]| vec![RowTest::Compare { column, by: Comparison::Equal, value: value.to_vec() }];
    for wrong in [
        WantedRows { columns: vec![], ..good.clone() },
        WantedRows { tests: is(1, &[0; 8]), ..good.clone() },
        WantedRows { tests: is(0, &[0; 7]), ..good.clone() },
        WantedRows { tests: vec![RowTest::Or], ..good.clone() },
        WantedRows { tests: is(0, &vec![0; 1 << 20]), ..good.clone() },
        WantedRows { columns: vec![0; 2000], ..good.clone() },
    ] {
        let error = client.call(DataRequest::SelectRows(wrong)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    for (row_group, column) in [(2, 0), (0, 2), (u32::MAX, 0), (0, u32::MAX)] {
        assert!(ask(&client, &WantedRows { row_group, columns: vec![0, column], ..good.clone() }).await.is_none());
    }
    // The threads live on.
    assert_eq!(selected(&client, &good).await.0.rows, ROWS as u64 / 2);
}
