//! Files of every format, named by paths, patterns and folders: read, written, and refused with their path where damaged.

mod damaged;
mod fuzz;
mod headers;
mod pages;
mod text;
mod told;
mod written;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::ipc::root_as_footer;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::arrow_avro::writer::AvroWriter;
use forebay_types::ErrorKind;

use crate::support::{Lake, parquet};

fn batch(from: i64) -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![from, from + 1])) as _),
        ("name", Arc::new(StringArray::from(vec!["a b", "ü"])) as _),
    ])
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_that_is_written_is_read_back() {
    let lake = Lake::new();
    let select = "select 1 as id, 'a b' as name union all select 2, 'ü'";
    let endings = "parquet csv tsv json ndjson arrow albis csv.gz csv.bz2 csv.xz csv.zst tsv.gz json.gz json.bz2 ndjson.xz \
        json.zst";
    for ending in endings.split(' ') {
        let count = lake.rows(&format!("copy ({select}) to '/lake/out/x.{ending}'")).await;
        assert_eq!(count, "2", "{ending}");
        let rows = lake.rows(&format!("select * from '/lake/out/x.{ending}' order by id")).await;
        assert_eq!(rows, "1 a b\n2 ü", "{ending}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_rows_are_read_as_they_were_written() {
    let lake = Lake::new();
    for ending in ["parquet", "csv", "json", "ndjson", "arrow"] {
        let count = lake.rows(&format!("copy (select 1 as id, 'a' as name where 1 > 2) to '/lake/none/x.{ending}'")).await;
        assert_eq!(count, "0", "{ending}");
        let count = lake.rows(&format!("select count(*) from '/lake/none/x.{ending}'")).await;
        assert_eq!(count, "0", "{ending}");
        assert_eq!(lake.rows(&format!("select * from '/lake/none/x.{ending}'")).await, "", "{ending}");
    }
    // Beside others such a file is left out.
    lake.put("some/a.json", "").await;
    lake.put("some/b.json", "{\"id\": 7}\n").await;
    assert_eq!(lake.rows("select id from '/lake/some/'").await, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn avro_and_json_arrays_are_read() {
    let lake = Lake::new();
    let mut writer = AvroWriter::new(Vec::new(), batch(1).schema().as_ref().clone()).unwrap();
    writer.write(&batch(1)).unwrap();
    writer.finish().unwrap();
    lake.put("x.avro", writer.into_inner()).await;
    assert_eq!(lake.rows("select * from '/lake/x.avro' order by id").await, "1 a b\n2 ü");

    lake.put("array.json", " \n[{\"id\": 1, \"name\": \"a\"}, {\"id\": 2, \"name\": \"b\"}]").await;
    assert_eq!(lake.rows("select name from '/lake/array.json' order by id").await, "a\nb");

    // So long that a file of lines would be read in parts.
    let rows: Vec<_> = (0..400_000).map(|id| format!("{{\"id\": {id}, \"name\": \"name-{id}\"}}")).collect();
    lake.put("long.json", format!("[{}]", rows.join(", "))).await;
    let sql = "select count(*), sum(id), max(name) from '/lake/long.json'";
    assert_eq!(lake.rows(sql).await, "400000 79999800000 name-99999");
}

#[tokio::test(flavor = "multi_thread")]
async fn globs_folders_and_hidden_files() {
    let lake = Lake::new();
    for (path, from) in [("s/a1.parquet", 1), ("s/a2.parquet", 3), ("s/b.parquet", 5), ("s/deep/a3.parquet", 7)] {
        lake.put(path, parquet(&[batch(from)], 100)).await;
    }
    lake.put("s/_SUCCESS", "").await;
    lake.put("s/.a.parquet.crc", "x").await;
    let sum = async |path: &str| lake.rows(&format!("select sum(id) from '/lake/{path}'")).await;
    assert_eq!(sum("s/*.parquet").await, "21");
    assert_eq!(sum("s/a?.parquet").await, "10");
    assert_eq!(sum("s/[ab]*.parquet").await, "21");
    assert_eq!(sum("s/**/*.parquet").await, "36");
    assert_eq!(sum("*/deep/*.parquet").await, "15");
    assert_eq!(sum("s/").await, "36");
    assert_eq!(sum("s").await, "36");

    let none = lake.error("select * from '/lake/s/x*.parquet'").await;
    assert_eq!((none.kind(), none.message().contains("/lake/s/x*.parquet")), (ErrorKind::NotFound, true), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hive_partitions_become_columns_and_prune() {
    let lake = Lake::new();
    for (year, month, from) in [(2023, "01", 1), (2023, "02", 3), (2024, "01", 5)] {
        lake.put(&format!("h/year={year}/month={month}/x.parquet"), parquet(&[batch(from)], 100)).await;
    }
    let by = "select year, month, sum(id) from '/lake/h/' group by year, month order by year, month";
    assert_eq!(lake.rows(by).await, "2023 01 3\n2023 02 7\n2024 01 11");
    // Whole numbers are numbers, so that they compare as such; `01` is text.
    assert_eq!(lake.rows("select sum(id) from '/lake/h' where year > 2023").await, "11");
    assert_eq!(lake.rows("select sum(id) from '/lake/h/*/*/x.parquet' where month = '02'").await, "7");
    lake.store.clear();
    lake.rows("select sum(id) from '/lake/h' where year = 2024 and month = '01'").await;
    let reads = lake.store.reads.lock().unwrap().clone();
    assert!(reads.iter().all(|(path, _)| path.contains("year=2024")), "{reads:?}");

    lake.put("h/other.parquet", parquet(&[batch(9)], 100)).await;
    let mixed = lake.error("select * from '/lake/h/'").await;
    assert!(mixed.message().contains("partition columns"), "{mixed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_come_through_byte_for_byte() {
    let lake = Lake::new();
    for (at, name) in ["a b", "50%", "%20", "ü#?", "x+y&z", "tab=1"].iter().enumerate() {
        lake.put(&format!("k/{name}/{name}.parquet"), parquet(&[batch(at as i64)], 100)).await;
        let path = format!("/lake/k/{name}/{name}.parquet").replace('?', "[?]");
        assert_eq!(lake.rows(&format!("select id from '{path}' order by id limit 1")).await, at.to_string(), "{name}");
    }
    lake.rows("copy (select 7 as id) to '/lake/out/50% of %20 ü.parquet'").await;
    assert_eq!(lake.rows("select id from '/lake/out/50% of %20 ü.parquet'").await, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_told_with_its_path() {
    let lake = Lake::new();
    let whole = parquet(&[batch(1)], 100);
    lake.put("good/a.parquet", whole.clone()).await;
    lake.put("good/b.parquet", whole.slice(..whole.len() - 20)).await;
    lake.put("cut.parquet", whole.slice(..whole.len() / 2)).await;
    lake.put("empty.parquet", "").await;
    lake.put("empty.csv", "").await;
    lake.put("mixed/a.csv", "id\n1\n").await;
    lake.put("mixed/b.parquet", whole.clone()).await;
    lake.put("odd/a.docx", "x").await;

    let told = async |path: &str, kind: ErrorKind, with: &str| {
        let error = lake.error(&format!("select * from '{path}'")).await;
        assert_eq!(error.kind(), kind, "{path}: {error}");
        assert!(error.message().contains(path) && error.message().contains(with), "{path}: {error}");
    };
    told("/lake/cut.parquet", ErrorKind::Corrupt, "cut short").await;
    told("/lake/good/", ErrorKind::Corrupt, "b.parquet").await;
    told("/lake/empty.parquet", ErrorKind::Invalid, "0 bytes").await;
    told("/lake/empty.csv", ErrorKind::Invalid, "0 bytes").await;
    told("/lake/mixed/", ErrorKind::Invalid, "several formats").await;
    told("/lake/odd/", ErrorKind::Invalid, "a.docx").await;
    told("/lake/no.parquet", ErrorKind::NotFound, "no files").await;
    told("/lake/no/", ErrorKind::NotFound, "no files").await;
    told("/pond/x.parquet", ErrorKind::NotFound, "outside of every mount").await;
    told("/lake/../x.parquet", ErrorKind::Invalid, "not resolved").await;
    told("/lake/a//b.parquet", ErrorKind::Invalid, "forebay cat").await;
    told("ftp://host/x.csv", ErrorKind::Invalid, "no store for ftp").await;

    // An empty file beside others is no row, and no error.
    lake.put("beside/a.parquet", whole).await;
    lake.put("beside/b.parquet", "").await;
    assert_eq!(lake.rows("select count(*) from '/lake/beside/'").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn local_files_need_no_mount() {
    let lake = Lake::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b.csv");
    std::fs::write(&path, "id\n1\n2\n").unwrap();
    assert_eq!(lake.rows(&format!("select sum(id) from '{}'", path.display())).await, "3");
    let url = format!("file://{}/*.csv", folder.path().display());
    assert_eq!(lake.rows(&format!("select sum(id) from '{url}'")).await, "3");
    let target = folder.path().join("out.parquet");
    lake.rows(&format!("copy (select 5 as id) to '{}'", target.display())).await;
    assert_eq!(lake.rows(&format!("select id from '{}'", target.display())).await, "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arrow_file_whose_footer_lies_costs_no_memory() {
    let lake = Lake::new();
    lake.rows("copy (select value as id from range(0, 1000)) to '/lake/x.arrow'").await;
    let whole = lake.store_bytes("x.arrow").await.to_vec();
    let length = u32::from_le_bytes(whole[whole.len() - 10..whole.len() - 6].try_into().unwrap()) as usize;
    let footer = root_as_footer(&whole[whole.len() - 10 - length..whole.len() - 10]).unwrap();
    let block = footer.recordBatches().unwrap().get(0);
    // The length of its body is what a block ends with, and begins 16 bytes after its offset.
    let written =
        [block.offset().to_le_bytes(), i64::from(block.metaDataLength()).to_le_bytes(), block.bodyLength().to_le_bytes()];
    let body = whole.windows(24).rposition(|at| at == written.concat()).unwrap() + 16;
    for lie in [8i64 << 30, -1, i64::MAX] {
        let mut bytes = whole.clone();
        bytes[body..body + 8].copy_from_slice(&lie.to_le_bytes());
        lake.put("lie.arrow", bytes).await;
        lake.rows("drop table if exists t").await;
        let error = lake.error("select * from '/lake/lie.arrow'").await;
        assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("lie.arrow"), "{lie}: {error}");
        let declared = "create external table t (id bigint) stored as arrow location '/lake/lie.arrow'";
        assert_eq!(lake.error(declared).await.kind(), ErrorKind::Corrupt, "{lie}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shown_of_arrow_files_whose_rows_stop_coming() {
    let lake = Lake::new();
    for to in ["half.arrow", "half/"] {
        let rows = "select 1 / (150000 - value) as x from range(0, 200000)";
        let error = lake.error(&format!("copy ({rows}) to '/lake/{to}' stored as arrow")).await;
        assert!(error.message().contains("ivide by zero"), "{to}: {error}");
    }
    assert_eq!(lake.names().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_leads_beyond_the_end_of_a_file_is_told_as_damage() {
    let lake = Lake::new();
    lake.rows("copy (select value as id, 'v' || value as name from range(0, 5000)) to '/lake/x.parquet'").await;
    let whole = lake.store_bytes("x.parquet").await;
    let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize + 8;
    // The data is gone, the metadata that names it is there.
    lake.put("cut.parquet", [&whole[..100], &whole[whole.len() - footer..]].concat()).await;
    for query in ["select sum(id) from '/lake/cut.parquet'", "select max(name) from '/lake/cut.parquet' where id > 3"] {
        let error = lake.error(query).await;
        assert!(error.message().contains("cut.parquet"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_below_a_null_struct_of_an_arrow_file_is_null() {
    let lake = Lake::new();
    let inner = Field::new("a", DataType::Int64, false);
    let deep =
        StructArray::try_new(vec![inner].into(), vec![Arc::new(Int64Array::from(vec![1, 2, 4, 8])) as ArrayRef], None).unwrap();
    let fields = [Field::new("deep", deep.data_type().clone(), true), Field::new("b", DataType::Int64, true)];
    let b = Int64Array::from(vec![Some(1), Some(2), None, Some(8)]);
    let nulls = NullBuffer::from(vec![true, false, true, false]);
    let whole = StructArray::try_new(fields.to_vec().into(), vec![Arc::new(deep) as ArrayRef, Arc::new(b)], Some(nulls)).unwrap();
    let item = Arc::new(Field::new("item", whole.data_type().clone(), true));
    let list = ListArray::try_new(item, OffsetBuffer::from_lengths([1, 1, 0, 2]), Arc::new(whole.clone()), None).unwrap();
    let rows = RecordBatch::try_from_iter([("s", Arc::new(whole) as ArrayRef), ("l", Arc::new(list) as ArrayRef)]).unwrap();
    let mut file = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
    file.write(&rows).unwrap();
    lake.put("s.arrow", file.into_inner().unwrap()).await;
    let of = "select count(*), count(s['b']), sum(s['b']), count(s['deep']), sum(s['deep']['a']) from '/lake/s.arrow'";
    assert_eq!(lake.rows(of).await, "4 1 1 2 5");
    assert_eq!(lake.rows("select count(*) from '/lake/s.arrow' where s['deep']['a'] is null").await, "2");
    assert_eq!(lake.rows("select count(l[1]['b']), sum(l[1]['deep']['a']) from '/lake/s.arrow'").await, "1 5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_a_struct_always_has_is_null_where_the_struct_is() {
    let lake = Lake::new();
    let of = |name: &str, values: ArrayRef, nulls: Vec<bool>| {
        let field = Field::new(name, values.data_type().clone(), false);
        Arc::new(StructArray::try_new(vec![field].into(), vec![values], Some(NullBuffer::from(nulls))).unwrap()) as ArrayRef
    };
    let s = of("a", Arc::new(Int64Array::from(vec![1, 2, 4, 8])), vec![true, false, true, false]);
    let inner = StructArray::try_new(
        vec![Field::new("a", DataType::Int64, false)].into(),
        vec![Arc::new(Int64Array::from(vec![1, 2, 4, 8])) as ArrayRef],
        None,
    );
    let t = of("deep", Arc::new(inner.unwrap()), vec![true, false, true, false]);
    let rows = RecordBatch::try_from_iter_with_nullable([("s", s, true), ("t", t, true)]).unwrap();
    lake.put("x.parquet", parquet(&[rows], 100)).await;
    for field in ["s['a']", "s.a", "t['deep']['a']", "t.deep.a"] {
        assert_eq!(lake.rows(&format!("select count({field}), sum({field}) from '/lake/x.parquet'")).await, "2 5", "{field}");
        let none = format!("select count(*) from '/lake/x.parquet' where {field} is null");
        assert_eq!(lake.rows(&none).await, "2", "{field}");
        let groups = format!("select coalesce({field}, 0), count(*) from '/lake/x.parquet' group by {field} order by {field}");
        assert_eq!(lake.rows(&groups).await, "1 1\n4 1\n0 2", "{field}");
    }
    assert_eq!(lake.rows("select count(s['a'] + t.deep.a) from (select s, t from '/lake/x.parquet')").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_a_struct_always_has_in_some_files_is_null_where_the_struct_is_in_each() {
    let lake = Lake::new();
    // Of each row of one file: whether `s` is there, whether `t` in it is, and `t`'s field.
    let file = |t_always: bool, a_always: bool, extra: bool, there: [bool; 3], t_there: [bool; 3]| {
        let values = Arc::new(Int64Array::from(vec![1, 2, 4])) as ArrayRef;
        let a = Field::new("a", DataType::Int64, !a_always);
        let t_nulls = (!t_always).then(|| NullBuffer::from(t_there.to_vec()));
        let t = StructArray::try_new(vec![a].into(), vec![Arc::clone(&values)], t_nulls).unwrap();
        let mut fields = vec![Field::new("t", t.data_type().clone(), !t_always)];
        let mut columns = vec![Arc::new(t) as ArrayRef];
        if extra {
            fields.push(Field::new("x", DataType::Int64, false));
            columns.push(values);
        }
        let s = StructArray::try_new(fields.into(), columns, Some(NullBuffer::from(there.to_vec()))).unwrap();
        parquet(&[RecordBatch::try_from_iter_with_nullable([("s", Arc::new(s) as ArrayRef, true)]).unwrap()], 100)
    };
    lake.put("m/a.parquet", file(true, true, true, [true, false, true], [true; 3])).await;
    lake.put("m/b.parquet", file(false, true, false, [true, true, false], [true, false, false])).await;
    lake.put("m/c.parquet", file(false, false, true, [false, true, true], [false, true, false])).await;
    // 1 and 4 of the first, 1 of the second, 2 of the third.
    for field in ["s['t']['a']", "s.t.a"] {
        assert_eq!(
            lake.rows(&format!("select count(*), count({field}), sum({field}) from '/lake/m/'")).await,
            "9 4 8",
            "{field}"
        );
        assert_eq!(lake.rows(&format!("select count(*) from '/lake/m/' where {field} is null")).await, "5", "{field}");
    }
    assert_eq!(lake.rows("select count(s), count(s['t']), count(s['x']), sum(s['x']) from '/lake/m/'").await, "6 4 4 11");
    assert_eq!(lake.rows("select count(u['t']['a']) from (select s as u from '/lake/m/')").await, "4");
    lake.rows("create external table told stored as parquet location '/lake/m/'").await;
    for statement in ["describe '/lake/m/'", "select * from information_schema.columns", "show columns from told"] {
        let told = lake.rows(statement).await;
        assert!(told.contains("Struct") && !told.contains("metadata"), "{statement}: {told}");
    }
    // Whoever declares a table can't say so.
    let declared = "s struct<t struct<a bigint>, x bigint>";
    lake.rows(&format!("create external table m ({declared}) stored as parquet location '/lake/m/'")).await;
    assert_eq!(lake.rows("select count(*), count(s['t']['a']), sum(s['t']['a']), count(s['x']) from m").await, "9 4 8 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_found_by_their_names_and_null_where_a_file_lacks_them() {
    let lake = Lake::new();
    for ending in ["arrow", "parquet", "albis"] {
        // None of them is null in the files that have it, which the files say.
        let files = [("a", "1 as id, 10 as v, 'x' as w"), ("b", "20 as v, 2 as id"), ("c", "'z' as w, 3 as id")];
        for (file, columns) in files {
            lake.rows(&format!("copy (select {columns}) to '/lake/{ending}/{file}.{ending}'")).await;
        }
        let t = format!("'/lake/{ending}/'");
        let all = lake.rows(&format!("select id, coalesce(v, -1), coalesce(w, '-') from {t} order by id")).await;
        assert_eq!(all, "1 10 x\n2 20 -\n3 -1 z", "{ending}");
        assert_eq!(lake.rows(&format!("select id from {t} where v is null")).await, "3", "{ending}");
        assert_eq!(
            lake.rows(&format!("select count(*), count(v), sum(v), count(distinct w) from {t}")).await,
            "3 2 30 2",
            "{ending}"
        );
        assert_eq!(lake.rows(&format!("select id from {t} where v > 10 or w = 'z' order by id")).await, "2\n3", "{ending}");
    }
    lake.rows("copy (select 'text' as id) to '/lake/other/b.arrow'").await;
    lake.rows("copy (select 1 as n, 1 as id) to '/lake/other/a.arrow'").await;
    let other = lake.error("select id from '/lake/other/'").await;
    assert_eq!(other.kind(), ErrorKind::Invalid, "{other}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_no_number_are_not_left_out_by_what_a_parquet_file_says_of_its_numbers() {
    let lake = Lake::new();
    // Writers leave NaN out of the least and the greatest: the first file says that all is 5, the second that nothing is above 3.
    for (file, values) in [("a", "('5'), ('NaN')"), ("b", "('1'), ('NaN'), ('3')"), ("c", "('12'), (null)")] {
        let rows = format!("select cast(x as double) as x, cast(x as float) as y from (values {values}) as t(x)");
        lake.rows(&format!("copy ({rows}) to '/lake/n/{file}.parquet'")).await;
    }
    for column in ["x", "y"] {
        for (query, rows) in [
            (format!("select count(*) from '/lake/n/' where {column} >= 10"), "3"),
            (format!("select count(*) from '/lake/n/' where {column} = cast('NaN' as double)"), "2"),
            (format!("select count(*) from '/lake/n/' where {column} <> 5"), "5"),
            (format!("select count(*) from '/lake/n/' where {column} < 4"), "2"),
            (format!("select count(*) from '/lake/n/a.parquet' where {column} = 5"), "1"),
            (format!("select {column} from '/lake/n/a.parquet' order by {column}"), "5.0\nNaN"),
            (format!("select max({column}), min({column}) from '/lake/n/'"), "NaN 1.0"),
            (
                format!("select {column} from '/lake/n/' where {column} is not null order by {column} desc limit 3"),
                "NaN\nNaN\n12.0",
            ),
        ] {
            // As it is read first, and as it is kept.
            for _ in 0..2 {
                assert_eq!(lake.rows(&query).await, rows, "{query}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_behind_a_byte_order_mark_says_what_is_wrong_with_it() {
    let lake = Lake::new();
    for (file, text) in
        [("a.json", "\u{feff}{\"a\": 1}\n"), ("b.json", "\u{feff}[{\"a\": 1}]"), ("c.ndjson", "\u{feff}{\"a\": 1}\n")]
    {
        lake.put(file, text).await;
        let error = lake.error(&format!("select * from '/lake/{file}'")).await;
        assert!(error.message().contains(file) && error.message().contains("without one"), "{error}");
    }
    lake.rows("create external table t (a bigint) stored as json location '/lake/a.json'").await;
    let error = lake.error("select * from t").await;
    assert!(error.message().contains("byte-order mark"), "{error}");
}
