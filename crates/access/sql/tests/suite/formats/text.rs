//! Files of text: compressed in several parts behind each other, such that end early, and the order and the types of columns in JSON.

use std::io::Write;

use forebay_types::ErrorKind;

use crate::support::Lake;

const ENDINGS: [&str; 4] = ["gz", "bz2", "xz", "zst"];

fn packed(ending: &str, text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    match ending {
        "gz" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        "bz2" => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        "xz" => {
            let mut writer = liblzma::write::XzEncoder::new(Vec::new(), 1);
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        _ => zstd::encode_all(text, 1).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parts_of_a_compressed_file_are_read() {
    let lake = Lake::new();
    for ending in ENDINGS {
        let parts = |parts: [&str; 3]| parts.map(|part| packed(ending, part)).concat();
        lake.put(&format!("x.csv.{ending}"), parts(["id,word\n1,o", "ne\n2,two\n", "3,three\n"])).await;
        let rows = lake.rows(&format!("select id, word from '/lake/x.csv.{ending}' order by id")).await;
        assert_eq!(rows, "1 one\n2 two\n3 three", "{ending}");
        // Types are found in all of them, too.
        lake.put(&format!("y.csv.{ending}"), parts(["id\n", "1\n", "2.5\n"])).await;
        assert_eq!(lake.rows(&format!("select sum(id) from '/lake/y.csv.{ending}'")).await, "3.5", "{ending}");
        lake.put(&format!("x.ndjson.{ending}"), parts(["{\"id\": 1}\n", "{\"id\": 2}\n{\"id\"", ": 4}\n"])).await;
        assert_eq!(lake.rows(&format!("select sum(id) from '/lake/x.ndjson.{ending}'")).await, "7", "{ending}");
    }
    // Also where a table is made of them.
    lake.rows("create table held as select id from '/lake/x.csv.zst'").await;
    assert_eq!(lake.rows("select count(*) from held").await, "3");
    // Streams of xz may have zeros behind them.
    let padded = [packed("xz", "id\n1\n"), vec![0; 8], packed("xz", "2\n"), vec![0; 4]].concat();
    lake.put("padded.csv.xz", padded).await;
    assert_eq!(lake.rows("select sum(id) from '/lake/padded.csv.xz'").await, "3");
    // What pzstd writes begins with a frame that has no text.
    let skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00size".to_vec();
    lake.put("skipped.csv.zst", [skipped, packed("zst", "id\n7\n")].concat()).await;
    assert_eq!(lake.rows("select id from '/lake/skipped.csv.zst'").await, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_file_that_ends_early_is_named() {
    let lake = Lake::new();
    let text: String = (0..100_000_u64).fold("id\n".to_string(), |text, id| text + &format!("{}\n", id * 7919));
    for ending in ENDINGS {
        let mut bytes = packed(ending, &text);
        bytes.truncate(bytes.len() - 100);
        lake.put(&format!("short.csv.{ending}"), bytes).await;
        let error = lake.error(&format!("select sum(id) from '/lake/short.csv.{ending}'")).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let told = error.message();
        assert!(told.starts_with(&format!("'/lake/short.csv.{ending}'")) && told.ends_with("; write it again"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_json_come_in_the_order_of_the_file() {
    let lake = Lake::new();
    lake.put("order.ndjson", "{\"z\": 1, \"a\": \"x\", \"m\": 2}\n{\"z\": 3, \"a\": \"y\", \"m\": 4}\n").await;
    assert_eq!(lake.rows("select * from '/lake/order.ndjson' where z = 3").await, "3 y 4");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_json_with_several_types_says_where_it_is_and_what_to_do() {
    let lake = Lake::new();
    for (name, values, said) in [
        // Found when the lines are read.
        ("texts", ["1", "\"x\""], "field 'a': expected string got 1"),
        ("truths", ["true", "2"], "field 'a': expected string got true"),
        // Found when types are looked for.
        ("objects", ["{\"b\": 1}", "2"], "the field 'a' is a number in line 2 and an object in line 1"),
        ("late", ["\"x\"", "{\"b\": 1}"], "the field 'a' is an object in line 2 and a text in line 1"),
        ("lists", ["[1]", "{\"b\": 1}"], "the field 'a' is an object in line 2 and a list in line 1"),
    ] {
        let lines: String = values.iter().zip(1..).map(|(value, id)| format!("{{\"id\": {id}, \"a\": {value}}}\n")).collect();
        lake.put(&format!("{name}.ndjson"), lines).await;
        let error = lake.error(&format!("select * from '/lake/{name}.ndjson'")).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        let file = format!("'/lake/{name}.ndjson'");
        for part in [file.as_str(), said, "one type in each line", "CREATE EXTERNAL TABLE"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
        // What it says to do is done.
        lake.rows(&format!("create external table {name} (id bigint) stored as json location '/lake/{name}.ndjson'")).await;
        assert_eq!(lake.rows(&format!("select sum(id) from {name}")).await, "3", "{name}");
    }
    let sum = "select sum(id) from '/lake/texts.ndjson'";
    assert_eq!(lake.rows(sum).await, "3", "a column that nobody asks for is not read");
}
