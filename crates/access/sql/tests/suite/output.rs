//! What results look like in each form, with and without rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use forebay_sql::output::{Form, Writer};

fn written(form: Form, batches: &[RecordBatch]) -> String {
    let schema = batch().schema();
    let mut writer = Writer::new(form, schema, Vec::new());
    for batch in batches {
        writer.write(batch).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn batch() -> RecordBatch {
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![Some(1), None])) as _),
        ("name", Arc::new(StringArray::from(vec!["a,\"b\"", "ü"])) as _),
        ("x", Arc::new(Float64Array::from(vec![0.5, 2.0])) as _),
    ])
    .unwrap()
}

#[test]
fn json_has_no_two_values_of_one_name() {
    let fields = ["x", "y", "x"].map(|name| Field::new(name, DataType::Int64, false));
    let columns = (0..3).map(|at| Arc::new(Int64Array::from(vec![at])) as ArrayRef).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), columns).unwrap();
    for (form, is_written) in [(Form::Json, false), (Form::NdJson, false), (Form::Csv, true), (Form::Table, true)] {
        let written = Writer::new(form, batch.schema(), Vec::new()).write(&batch);
        assert_eq!(written.is_ok(), is_written, "{form:?}");
        if let Err(error) = written {
            assert!(error.message().contains("`x` is there twice"), "{error}");
        }
    }
}

#[test]
fn csv_has_a_header_and_quotes() {
    assert_eq!(written(Form::Csv, &[batch()]), "id,name,x\n1,\"a,\"\"b\"\"\",0.5\n,ü,2.0\n");
    assert_eq!(written(Form::Csv, &[]), "id,name,x\n");
}

#[test]
fn csv_has_json_in_place_of_what_is_nested() {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "a\n\"b\"", "null"]));
    let structs = StructArray::from(vec![(Arc::new(Field::new("t", DataType::Utf8, true)), texts)]);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let columns: [(&str, ArrayRef); 3] = [("id", ids), ("list", Arc::new(lists)), ("struct", Arc::new(structs))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = Writer::new(Form::Csv, batch.schema(), Vec::new());
    writer.write(&batch).unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let rows = [r#"1,"[1,null]","{""t"":""x""}""#, r#"2,,"{""t"":""a\n\""b\""""}""#, r#"3,[],"{""t"":""null""}""#];
    assert_eq!(text, format!("id,list,struct\n{}\n", rows.join("\n")));
    let none = Writer::new(Form::Csv, batch.schema(), Vec::new()).finish().unwrap();
    assert_eq!(none, b"id,list,struct\n");
}

#[test]
fn json_is_an_array_or_lines() {
    let (one, two) = (r#"{"id":1,"name":"a,\"b\"","x":0.5}"#, r#"{"id":null,"name":"ü","x":2.0}"#);
    assert_eq!(written(Form::Json, &[batch()]), format!("[{one},{two}]\n"));
    assert_eq!(written(Form::Json, &[]), "[]\n");
    assert_eq!(written(Form::NdJson, &[batch()]), format!("{one}\n{two}\n"));
    assert_eq!(written(Form::NdJson, &[]), "");
}

#[test]
fn tables_have_borders_and_stay_bounded() {
    let table = written(Form::Table, &[batch()]);
    assert!(table.contains("| 1  | a,\"b\" | 0.5 |") && table.contains("|    | ü     | 2.0 |"), "{table}");
    assert!(written(Form::Table, &[]).contains("| id | name | x |"));
    let many = vec![batch(); 20_000];
    let tables = written(Form::Table, &many);
    assert_eq!(tables.matches("| id |").count(), 4);
    assert_eq!(tables.matches("ü").count(), 20_000);
}
