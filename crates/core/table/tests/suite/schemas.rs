//! Which schemas a table takes, how its columns are named, and what a projection leaves of them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};
use forebay_table::{Grouping, Options, TableSchema, Writer};
use forebay_types::ErrorKind;

use crate::round_trip::write;
use crate::samples;

fn of(fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(fields))
}

#[test]
fn what_a_table_cannot_hold_is_refused_with_the_columns_name() {
    let words = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let inner = Fields::from(vec![Field::new("x", words.clone(), true)]);
    let entries = |key_may_be_null| {
        let key = Field::new("key", DataType::Utf8, key_may_be_null);
        DataType::Struct(Fields::from(vec![key, Field::new("value", DataType::Int32, true)]))
    };
    let map = |entries, may_be_null| DataType::Map(Arc::new(Field::new("entries", entries, may_be_null)), false);
    let no_map = DataType::Struct(Fields::from(vec![Field::new("key", DataType::Utf8, false)]));
    let deep = (0..40).fold(DataType::Utf8, |item, _| DataType::new_list(item, true));
    let wide = (0..3000).map(|at| Field::new(format!("f{at}"), DataType::Int32, true)).collect::<Fields>();
    let refused = [
        DataType::new_list(DataType::Struct(inner), true),
        DataType::new_list(words.clone(), true),
        DataType::new_fixed_size_list(DataType::Float32, 4, true),
        DataType::new_list(DataType::Null, true),
        DataType::new_list(DataType::Struct(Fields::empty()), true),
        DataType::new_list(DataType::Struct(wide), true),
        map(entries(true), false),
        map(entries(false), true),
        map(no_map, false),
        map(DataType::Utf8, false),
        deep,
        words,
        DataType::FixedSizeBinary(0),
    ];
    for data_type in refused {
        let below = Fields::from(vec![Field::new("odd", data_type, true)]);
        let error = TableSchema::new(of(vec![Field::new("top", DataType::Struct(below), false)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("`top.odd`"), "{error}");
    }
    let twice = TableSchema::new(of(vec![Field::new("a", DataType::Int8, true), Field::new("a", DataType::Int8, true)]));
    assert_eq!(twice.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn structs_are_named_by_their_leaves() {
    let schema = TableSchema::new(samples::schema()).unwrap();
    let nested = schema.leaves().iter().map(|leaf| leaf.path()).filter(|path| path.starts_with("nested"));
    assert_eq!(
        nested.collect::<Vec<_>>(),
        ["nested", "nested.inner", "nested.inner.x", "nested.inner.name", "nested.y", "nested.nothing"]
    );
}

#[test]
fn a_projection_by_path_prunes_structs() {
    let batch = samples::batch(3, 50);
    let file = write(std::slice::from_ref(&batch), Grouping::columns(), 100);
    let table = forebay_table::Table::open(&file).unwrap();
    let projection = table.schema().project_paths(&["nested.inner.x", "i32", "nested.y"]).unwrap();
    let names = projection.leaves().iter().map(|&leaf| table.schema().leaves()[leaf].path()).collect::<Vec<_>>();
    assert_eq!(names, ["nested", "nested.inner", "nested.inner.x", "nested.y", "i32"]);
    let read = table.plan(0, &projection).unwrap().read(&file).unwrap().batch().unwrap();
    assert_eq!(read.schema().field(0).name(), "nested");
    assert_eq!(read.column(1), batch.column_by_name("i32").unwrap());
    for missing in ["nested.z", "nested.y.z", "other"] {
        assert_eq!(table.schema().project_paths(&["i32", missing]).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn groups_name_each_column_once() {
    let begin = |grouping: Grouping| {
        let options = Options { grouping, ..Options::default() };
        Writer::new(Vec::new(), samples::schema(), options).map(|_| ()).map_err(|error| error.kind())
    };
    assert_eq!(begin(Grouping::columns().group(["i8"]).group(["*"])), Ok(()));
    assert_eq!(begin(Grouping::columns().group(["i8", "i16"]).group(["i8"])), Err(ErrorKind::Invalid));
    assert_eq!(begin(Grouping::rows().group(["*"])), Err(ErrorKind::Invalid));
    assert_eq!(begin(Grouping::columns().group(["i7"])), Err(ErrorKind::NotFound));
}
