//! `forebay shard`: real Parquet, CSV and JSON files, built, asked, tuned, changed and damaged as users do it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::support::{Ran, forebay_in, forebay_with};

const ROWS: i64 = 500;

/// Orders with a column of each type; the expected records by key.
fn orders(path: &Path) -> BTreeMap<i64, Value> {
    let rows: Vec<i64> = (0..ROWS).collect();
    let key = |row: i64| row * 7 - 100;
    let clerk = |row: i64| format!("Clerk#{:09}", row % 10);
    let comment =
        |row: i64| if row % 3 == 0 { "special handling requests".to_string() } else { format!("plain, row {row} \"ü\"") };
    let bytes = |row: i64| if row % 2 == 0 { vec![0, 255, (row % 5) as u8] } else { format!("text {}", row % 5).into_bytes() };
    let price = |row: i64| (row % 50 != 0).then_some(row as i128 * 125 + 5);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("o_orderkey", Arc::new(Int64Array::from_iter_values(rows.iter().map(|&row| key(row))))),
        ("o_clerk", Arc::new(StringArray::from_iter_values(rows.iter().map(|&row| clerk(row))))),
        ("o_comment", Arc::new(StringArray::from_iter_values(rows.iter().map(|&row| comment(row))))),
        ("o_bytes", Arc::new(BinaryArray::from_iter_values(rows.iter().map(|&row| bytes(row))))),
        (
            "o_totalprice",
            Arc::new(rows.iter().map(|&row| price(row)).collect::<Decimal128Array>().with_precision_and_scale(15, 2).unwrap()),
        ),
        ("o_weight", Arc::new(Float64Array::from_iter_values(rows.iter().map(|&row| row as f64 / 4.0 - 10.0)))),
        ("o_open", Arc::new(rows.iter().map(|&row| Some(row % 4 == 0)).collect::<BooleanArray>())),
        ("o_orderdate", Arc::new(Date32Array::from_iter_values(rows.iter().map(|&row| 9204 + (row % 30) as i32)))),
        ("o_seen", Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|&row| row * 3_600_000_000)))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let json_bytes = |row: i64| match row % 2 {
        0 => json!({"base64": (["AP8A", "AP8B", "AP8C", "AP8D", "AP8E"][(row % 5) as usize])}),
        _ => json!(format!("text {}", row % 5)),
    };
    let hours = |row: i64| {
        let (day, hour) = (row / 24, row % 24);
        let (month, day) = if day < 31 { (1, day + 1) } else { (2, day - 30) };
        format!("1970-{month:02}-{day:02}T{hour:02}:00:00")
    };
    let date = |row: i64| {
        let day = 15 + row % 30;
        if day <= 31 { format!("1995-03-{day:02}") } else { format!("1995-04-{:02}", day - 31) }
    };
    rows.iter()
        .map(|&row| {
            let record = json!({
                "o_orderkey": key(row),
                "o_clerk": clerk(row),
                "o_comment": comment(row),
                "o_bytes": json_bytes(row),
                "o_totalprice": price(row).map(|cents| cents as f64 / 100.0),
                "o_weight": row as f64 / 4.0 - 10.0,
                "o_open": row % 4 == 0,
                "o_orderdate": date(row),
                "o_seen": hours(row),
            });
            (key(row), record)
        })
        .collect()
}

struct Orders {
    home: tempfile::TempDir,
    records: BTreeMap<i64, Value>,
}

impl Orders {
    fn built(size: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let records = orders(&home.path().join("orders.parquet"));
        let orders = Self { home, records };
        orders.run(&["build", "orders.parquet", "--key", "o_orderkey", "--out", "orders.shard", "--size", size]).ok();
        orders
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Ran {
        forebay_in(self.home.path(), &[&["shard"], arguments].concat())
    }

    #[track_caller]
    fn batch(&self, operations: &[Value]) -> Vec<Value> {
        let input: String = operations.iter().map(|operation| format!("{operation}\n")).collect();
        forebay_with(self.home.path(), &["shard", "batch", "orders.shard"], |_| (), input.as_bytes()).ok().json()
    }

    fn keys(&self, meets: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.records.iter().filter(|(_, record)| meets(record)).map(|(key, _)| json!(key)).collect()
    }
}

#[test]
fn records_come_back_with_their_names_and_types() {
    let orders = Orders::built("0.5");
    for key in [-100, -93, 0, 5, 600] {
        let ran = orders.run(&["get", "orders.shard", &key.to_string(), "--json"]);
        match orders.records.get(&key) {
            Some(record) => assert_eq!(ran.ok().json(), std::slice::from_ref(record)),
            None => drop(ran.fails(1, &["orders.shard", "no record", &key.to_string()])),
        }
    }
    let two = orders.run(&["get", "orders.shard", "5", "--columns", "o_open,o_orderkey", "--json"]).ok().json();
    assert_eq!(two, [json!({"o_open": orders.records[&5]["o_open"], "o_orderkey": 5})]);
    let text = orders.run(&["get", "orders.shard", "5"]).ok().text();
    assert!(text.contains("o_clerk") && text.contains("Clerk#000000005"), "{text}");
}

#[test]
fn conditions_find_what_they_say() {
    let orders = Orders::built("0.6");
    let text = |record: &Value, column: &str| record[column].as_str().unwrap_or_default().to_string();
    let special = |record: &Value| text(record, "o_comment").contains("special");
    for (condition, right) in [
        ("o_clerk = Clerk#000000003", orders.keys(|record| text(record, "o_clerk") == "Clerk#000000003")),
        ("o_comment ~ \"special.*requests\"", orders.keys(special)),
        (
            "o_comment ^= special and o_clerk = 'Clerk#000000003'",
            orders.keys(|record| special(record) && text(record, "o_clerk").ends_with('3')),
        ),
        ("o_comment *= ü", orders.keys(|record| !special(record))),
        ("o_bytes = x'00ff01'", orders.keys(|record| record["o_bytes"] == json!({"base64": "AP8B"}))),
        ("o_bytes prefix x'00ff'", orders.keys(|record| record["o_bytes"].is_object())),
        ("o_totalprice >= 500.05", orders.keys(|record| record["o_totalprice"].as_f64().is_some_and(|price| price >= 500.05))),
        ("o_weight < -9.5", orders.keys(|record| record["o_weight"].as_f64().unwrap() < -9.5)),
        (
            "o_orderdate between 1995-03-31 and 1995-04-02",
            orders.keys(|record| ["1995-03-31", "1995-04-01", "1995-04-02"].contains(&text(record, "o_orderdate").as_str())),
        ),
        ("o_open = true", orders.keys(|record| record["o_open"] == json!(true))),
        ("o_seen < 1970-01-02", orders.keys(|record| text(record, "o_seen").starts_with("1970-01-01"))),
        ("o_clerk = nobody", vec![]),
    ] {
        let found = orders.run(&["search", "orders.shard", condition, "--json"]).ok().json();
        let found: Vec<Value> = found.into_iter().map(|record| record["o_orderkey"].clone()).collect();
        assert_eq!(found, right, "{condition}");
        assert_eq!(orders.run(&["count", "orders.shard", condition]).ok().text(), format!("{}\n", right.len()), "{condition}");
    }
    assert_eq!(orders.run(&["count", "orders.shard"]).ok().text(), format!("{ROWS}\n"));
    let everyone: Vec<String> = orders.keys(|_| true).iter().map(Value::to_string).collect();
    assert_eq!(orders.run(&["scan", "orders.shard"]).ok().lines(), everyone);
    assert_eq!(orders.run(&["scan", "orders.shard", "--limit", "2", "--after", &everyone[6]]).ok().lines(), everyone[7..9]);
    assert_eq!(orders.run(&["scan", "orders.shard", "--limit", "0"]).ok().text(), "");
    // Page by page.
    let all = orders.keys(special);
    let first = orders.run(&["search", "orders.shard", "o_comment ^= special", "--limit", "3"]).ok().lines();
    assert_eq!(first, all[..3].iter().map(Value::to_string).collect::<Vec<_>>());
    let next = orders.run(&["search", "orders.shard", "o_comment ^= special", "--limit", "2", "--after", &first[2]]).ok().lines();
    assert_eq!(next, all[3..5].iter().map(Value::to_string).collect::<Vec<_>>());
    let columns = orders.run(&["search", "orders.shard", "o_weight = -10", "--columns", "*", "--json"]).ok().json();
    assert_eq!(columns, [orders.records[&-100].clone()]);
}

#[test]
fn a_batch_answers_line_by_line() {
    let orders = Orders::built("0.8");
    let third = |record: &Value| record["o_clerk"] == "Clerk#000000003";
    let answers = orders.batch(&[
        json!({"get": 5}),
        json!({"get": 6}),
        json!({"get": 5, "columns": ["o_clerk"]}),
        json!({"search": {"attr": "o_clerk", "eq": "Clerk#000000003"}}),
        json!({"search": {"attr": "o_clerk", "eq": "Clerk#000000003"}, "limit": 2}),
        json!({"search": {"and": [{"attr": "o_comment", "contains": "special"}, {"attr": "o_clerk", "prefix": "Clerk#000000003"}]}}),
        json!({"search": {"attr": "o_bytes", "eq": {"base64": "AP8B"}}}),
        json!({"search": {"attr": "o_weight", "from": -10, "to": -9.5}}),
        json!({"count": {"attr": "o_comment", "regex": "special.*requests"}}),
        json!({"search": {"attr": "nothing", "eq": 1}}),
        json!({"get": "five"}),
        json!({"nonsense": 1}),
        json!({"put": {"o_orderkey": 6, "o_clerk": "Clerk#000000003", "o_bytes": {"base64": "AP8="}}}),
        json!({"get": 6}),
        json!({"delete": 5}),
        json!({"get": 5}),
        json!({"count": {"attr": "o_clerk", "eq": "Clerk#000000003"}}),
    ]);
    let special = orders.keys(|record| record["o_comment"].as_str().unwrap().contains("special"));
    let both = orders.keys(|record| third(record) && record["o_comment"].as_str().unwrap().contains("special"));
    assert_eq!(answers[0], orders.records[&5]);
    assert_eq!(answers[1], Value::Null);
    assert_eq!(answers[2], json!({"o_clerk": "Clerk#000000005"}));
    assert_eq!(answers[3], Value::Array(orders.keys(third)));
    assert_eq!(answers[4], Value::Array(orders.keys(third)[..2].to_vec()));
    assert_eq!(answers[5], Value::Array(both));
    assert_eq!(answers[6], Value::Array(orders.keys(|record| record["o_bytes"] == json!({"base64": "AP8B"}))));
    assert_eq!(answers[7], json!([-100, -93, -86]));
    assert_eq!(answers[8], json!(special.len()));
    for wrong in &answers[9..12] {
        assert_eq!(wrong["error"], "invalid", "{wrong}");
        assert!(wrong["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    assert_eq!(answers[12], json!(true));
    assert_eq!(
        (&answers[13]["o_clerk"], &answers[13]["o_bytes"], &answers[13]["o_open"]),
        (&json!("Clerk#000000003"), &json!({"base64": "AP8="}), &Value::Null)
    );
    assert_eq!((&answers[14], &answers[15]), (&json!(true), &Value::Null));
    assert_eq!(answers[16], json!(orders.keys(third).len() + 1));
    // Operations may come from a file as well; what is no JSON is answered too.
    std::fs::write(orders.home.path().join("operations"), "{\"get\": 6}\nnonsense\n\n").unwrap();
    let answers = orders.run(&["batch", "orders.shard", "operations"]).ok().json();
    assert_eq!(answers[0]["o_orderkey"], 6);
    assert_eq!((answers[1]["error"].as_str(), answers.len()), (Some("invalid"), 2));
}

#[test]
fn answers_are_the_same_at_every_size_and_after_a_merge() {
    let orders = Orders::built("0.4");
    let ask = || {
        let operations: Vec<Value> =
            (0..10).map(|clerk| json!({"search": {"attr": "o_clerk", "eq": format!("Clerk#{clerk:09}")}})).collect();
        orders.batch(&operations)
    };
    let before = ask();
    let mut last = 0;
    for size in ["0.9", "1.5", "3.5"] {
        let tuned = orders.run(&["tune", "orders.shard", "--size", size, "--json"]).ok().json().remove(0);
        assert!(tuned["bytes"].as_u64().unwrap() > last, "{tuned}");
        last = tuned["bytes"].as_u64().unwrap();
        assert_eq!(ask(), before);
    }
    let small = orders.run(&["tune", "orders.shard", "--size", "0.5"]).ok().text();
    assert!(small.contains("of the input"), "{small}");
    let put = json!({"o_orderkey": 1_000_000, "o_clerk": "new", "o_open": true}).to_string();
    orders.run(&["put", "orders.shard", &put]).ok();
    orders.run(&["delete", "orders.shard", "-100", "12345678"]).ok();
    let check = || {
        assert_eq!(
            orders.run(&["get", "orders.shard", "1000000", "--columns", "o_clerk", "--json"]).ok().json(),
            [json!({"o_clerk": "new"})]
        );
        orders.run(&["get", "orders.shard", "-100"]).fails(1, &["no record"]);
        assert_eq!(orders.run(&["count", "orders.shard"]).ok().text(), format!("{ROWS}\n"));
        assert_eq!(orders.run(&["search", "orders.shard", "o_clerk = new"]).ok().text(), "1000000\n");
    };
    check();
    let inspected = orders.run(&["inspect", "orders.shard", "--json"]).ok().json().remove(0);
    assert_eq!(inspected["updates"], 3);
    orders.run(&["merge", "orders.shard"]).ok();
    check();
    let inspected = orders.run(&["inspect", "orders.shard", "--json"]).ok().json().remove(0);
    assert_eq!((&inspected["updates"], &inspected["records"]), (&json!(0), &json!(ROWS)));
    let parts = inspected["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part["bytes"].as_u64().unwrap()).sum::<u64>(), inspected["bytes"].as_u64().unwrap());
    assert!(orders.run(&["inspect", "orders.shard"]).ok().text().contains("base"));
}

#[test]
fn records_that_have_the_key_of_later_ones_are_told_of() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| forebay_in(home.path(), &[&["shard"], arguments].concat());
    std::fs::write(home.path().join("planes.csv"), "tail,year\nN1,2001\nN2,2001\nN3,2002\nN4,2001\n").unwrap();
    let built = run(&["build", "planes.csv", "--key", "year", "--out", "years.shard", "--json"]).ok();
    assert!(built.stderr.contains("2 of 4 records that were read are not kept"), "{}", built.stderr);
    assert_eq!((&built.json()[0]["read"], &built.json()[0]["records"]), (&json!(4), &json!(2)));
    assert!(run(&["get", "years.shard", "2001"]).ok().text().contains("N4"), "the last of a key counts");
    let built = run(&["build", "planes.csv", "--key", "tail", "--out", "planes.shard"]).ok();
    assert!(!built.stderr.contains("not kept"), "{}", built.stderr);
    run(&["count", "planes.shard", "year == 2001"]).fails(1, &["year == 2001", "in quotes where it begins with"]);
}

#[test]
fn flat_text_is_searched_for_substrings() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| forebay_in(home.path(), &[&["shard"], arguments].concat());
    // All bytes there are, and words among them.
    let mut text: Vec<u8> = (0..=255).cycle().take(3000).collect();
    text.splice(700..700, *b"penstock");
    text.splice(2100..2100, *b"penstock");
    std::fs::write(home.path().join("notes.bin"), &text).unwrap();
    let built = run(&["build", "--text", "notes.bin", "--out", "notes.shard", "--size", "1", "--json"]).ok().json();
    assert_eq!(built[0]["input_bytes"], json!(text.len()));
    assert_eq!(run(&["search", "notes.shard", "text *= penstock"]).ok().text(), "700\n2100\n");
    assert_eq!(
        run(&["search", "notes.shard", "text *= penstock", "--limit", "1", "--json"]).ok().json(),
        [json!({"offset": 700})]
    );
    assert_eq!(run(&["count", "notes.shard", "text *= x'00010203'"]).ok().text(), "12\n");
    run(&["tune", "notes.shard", "--size", "3"]).ok();
    assert_eq!(run(&["count", "notes.shard", "text *= tock"]).ok().text(), "2\n");
    let batch = forebay_with(
        home.path(),
        &["shard", "batch", "notes.shard"],
        |_| (),
        b"{\"search\": {\"attr\": \"text\", \"contains\": \"pens\"}}\n{\"get\": 1}\n",
    );
    let answers: Vec<Value> = batch.ok().json();
    assert_eq!(answers[0], json!([700, 2100]));
    assert!(answers[1]["message"].as_str().unwrap().contains("flat text"), "{}", answers[1]);
    run(&["put", "notes.shard", "{}"]).fails(1, &["notes.shard", "flat text"]);
    run(&["search", "notes.shard", "text = a"]).fails(1, &["text *="]);
}

#[test]
fn csv_and_json_are_read_too() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| forebay_in(home.path(), &[&["shard"], arguments].concat());
    std::fs::write(home.path().join("a.csv"), "word,count,price,day\nb,1,1.5,1995-03-15\na,2,,1995-03-16\n,3,2,1995-03-17\n")
        .unwrap();
    run(&["build", "a.csv", "--key", "word", "--out", "csv.shard"]).ok();
    let rows = run(&["get", "csv.shard", "a", "b", "", "--json"]).ok().json();
    assert_eq!(rows[0], json!({"word": "a", "count": 2, "price": null, "day": "1995-03-16"}));
    assert_eq!(rows[1], json!({"word": "b", "count": 1, "price": 1.5, "day": "1995-03-15"}));
    assert_eq!(rows[2]["word"], "");
    assert_eq!(run(&["search", "csv.shard", "count > 1"]).ok().text(), "\na\n");
    let lines = "{\"k\": \"x\", \"v\": {\"base64\": \"/w==\"}, \"n\": 1}\n{\"k\": \"y\", \"v\": \"text\", \"n\": 2.5, \"nested\": {\"a\": [1]}}\n{\"k\": \"x\", \"v\": null, \"n\": -1}\n";
    std::fs::write(home.path().join("b.jsonl"), lines).unwrap();
    run(&["build", "b.jsonl", "--key", "k", "--out", "json.shard", "--json"]).ok();
    let rows = run(&["get", "json.shard", "x", "y", "--json"]).ok().json();
    // Of two records with one key the later one counts.
    assert_eq!(rows[0], json!({"k": "x", "v": null, "n": -1.0, "nested": null}));
    assert_eq!(rows[1], json!({"k": "y", "v": "text", "n": 2.5, "nested": "{\"a\":[1]}"}));
    std::fs::write(home.path().join("c.json"), "[{\"k\": 1, \"v\": \"a\"}, {\"k\": 2, \"v\": \"b\"}]").unwrap();
    run(&["build", "c.json", "--key", "k", "--columns", "v", "--out", "array.shard"]).ok();
    assert_eq!(run(&["search", "array.shard", "v = b"]).ok().text(), "2\n");
}

#[test]
fn what_is_wrong_is_said_with_the_path_and_a_remedy() {
    let orders = Orders::built("0.5");
    let build = |rest: &[&str]| orders.run(&[&["build", "orders.parquet", "--out", "new.shard"], rest].concat());
    build(&["--key", "nothing"]).fails(1, &["orders.parquet", "nothing", "o_orderkey"]);
    build(&["--key", "o_weight"]).fails(1, &["o_weight", "number", "integer, text or bytes"]);
    build(&[]).fails(2, &["--key"]);
    build(&["--key", "o_orderkey", "--size", "many"]).fails(2, &["0.35"]);
    assert!(!orders.home.path().join("new.shard").exists());
    orders
        .run(&["build", "orders.parquet", "--key", "o_orderkey", "--out", "orders.shard"])
        .fails(1, &["orders.shard", "--force"]);
    orders.run(&["build", "orders.parquet", "--key", "o_orderkey", "--out", "orders.shard", "--force"]).ok();
    orders.run(&["build", "missing.parquet", "--key", "k", "--out", "x"]).fails(1, &["missing.parquet"]);
    orders.run(&["build", "orders.shard/manifest", "--key", "k", "--out", "x"]).fails(1, &["manifest", ".parquet"]);
    orders.run(&["search", "orders.shard", "o_clerk !! x"]).fails(1, &["one of"]);
    orders.run(&["search", "orders.shard", "nothing = 1"]).fails(1, &["nothing", "o_clerk"]);
    orders.run(&["search", "orders.shard", "o_weight = much"]).fails(1, &["o_weight", "much", "number"]);
    orders.run(&["search", "orders.shard", "o_weight *= 1"]).fails(1, &["o_weight", "use ="]);
    orders.run(&["get", "orders.shard", "five"]).fails(1, &["five", "integer"]);
    orders.run(&["put", "orders.shard", "{\"o_clerk\": \"x\"}"]).fails(1, &["o_orderkey", "key"]);
    orders.run(&["put", "orders.shard", "{\"o_orderkey\": 1, \"colour\": 1}"]).fails(1, &["colour"]);
    orders.run(&["get", "missing.shard", "1"]).fails(1, &["missing.shard"]);
    orders.run(&["get", "orders.parquet", "1"]).fails(1, &["orders.parquet", "not a shard"]);
    let base = std::fs::read_dir(orders.home.path().join("orders.shard")).unwrap().map(|entry| entry.unwrap().path());
    let base = base.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("base-")).unwrap();
    let mut bytes = std::fs::read(&base).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&base, &bytes).unwrap();
    // A search needs what has the byte; a get may find all that it needs in layers.
    orders.run(&["search", "orders.shard", "o_clerk *= 1"]).fails(1, &[base.file_name().unwrap().to_str().unwrap()]);
}
