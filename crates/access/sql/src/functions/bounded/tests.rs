//! What functions make, beside what was computed of it.

use datafusion::arrow::array::{
    Date32Array, DictionaryArray, FixedSizeListArray, Int32Array, Int64Array, ListArray, ListViewArray, StringArray,
    StringViewArray, TimestampNanosecondArray,
};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{Field, Int32Type, Int64Type, IntervalMonthDayNano};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::scalar::ScalarValue;

use super::*;

const MIB: u64 = 1 << 20;

fn registry() -> SessionState {
    SessionStateBuilder::new().with_default_features().build()
}

fn texts(texts: &[&str]) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(StringArray::from(texts.to_vec())))
}

fn views(texts: &[&str]) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(StringViewArray::from(texts.to_vec())))
}

fn numbers(numbers: &[i64]) -> ColumnarValue {
    ColumnarValue::Array(Arc::new(Int64Array::from(numbers.to_vec())))
}

fn lists(lists: &[&[i64]]) -> ColumnarValue {
    let lists = lists.iter().map(|list| Some(list.iter().map(|number| Some(*number)).collect::<Vec<_>>()));
    ColumnarValue::Array(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)))
}

fn text(text: &str) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.to_string())))
}

fn number(number: i64) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Int64(Some(number)))
}

fn interval(months: i32, days: i32, nanoseconds: i64) -> ColumnarValue {
    let interval = IntervalMonthDayNano { months, days, nanoseconds };
    ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(Some(interval)))
}

/// The function of a name with this bound, and what it is called with.
fn call(
    registry: &SessionState,
    name: &str,
    args: Vec<ColumnarValue>,
    rows: usize,
    memory: CallMemory,
) -> (Bounded, ScalarFunctionArgs) {
    let own = registry.udf(name).unwrap();
    let grows = Grows::of(name).unwrap();
    let arg_fields: Vec<FieldRef> = args.iter().map(|arg| Arc::new(Field::new("a", arg.data_type(), true)) as FieldRef).collect();
    let constants = args.iter().map(|arg| match arg {
        ColumnarValue::Scalar(value) => Some(value),
        ColumnarValue::Array(_) => None,
    });
    let constants: Vec<Option<&ScalarValue>> = constants.collect();
    let told = ReturnFieldArgs { arg_fields: &arg_fields, scalar_arguments: &constants };
    let return_field = own.return_field_from_args(told).unwrap();
    let config_options = Arc::new(ConfigOptions::new());
    (
        Bounded { own, grows, memory, folded: FOLDED_BYTES_MAX, late: None },
        ScalarFunctionArgs { args, arg_fields, number_rows: rows, return_field, config_options },
    )
}

#[test]
fn no_function_makes_more_than_was_computed() {
    let registry = registry();
    let words = ["", "a", "bcd", "äöü aaa bbb"];
    let counts = [3, 0, 20, 7];
    let dates = || ColumnarValue::Array(Arc::new(Date32Array::from(vec![0, 10, 400, -5])));
    let times = || ColumnarValue::Array(Arc::new(TimestampNanosecondArray::from(vec![0, 1 << 40, 1 << 45, -5])));
    let some = || lists(&[&[1, 2, 3], &[], &[4], &[5, 6, 7, 8, 9]]);
    let cases: Vec<(&str, Vec<ColumnarValue>)> = vec![
        ("concat", vec![texts(&words), texts(&words), text("beside")]),
        ("concat_ws", vec![text(" and "), texts(&words), texts(&words), texts(&words)]),
        ("overlay", vec![texts(&words), texts(&words), number(2)]),
        ("repeat", vec![texts(&words), numbers(&counts)]),
        ("repeat", vec![views(&words), numbers(&counts)]),
        ("repeat", vec![texts(&words), number(9)]),
        ("lpad", vec![texts(&words), numbers(&counts)]),
        ("rpad", vec![texts(&words), numbers(&counts), text("ö")]),
        ("replace", vec![texts(&words), text("a"), text("eleven")]),
        ("replace", vec![texts(&words), texts(&words), texts(&words)]),
        ("regexp_replace", vec![texts(&words), text("(a)|(b)"), text("<\\1\\1\\2>"), text("g")]),
        ("regexp_replace", vec![texts(&words), text("(.*)"), text("<\\1\\1\\1>")]),
        ("regexp_match", vec![texts(&words), text("(((.*)))")]),
        ("string_to_array", vec![texts(&words), text("a")]),
        ("array_to_string", vec![some(), text(" and ")]),
        ("array_repeat", vec![texts(&words), numbers(&counts)]),
        ("array_repeat", vec![some(), number(4)]),
        ("array_resize", vec![some(), numbers(&counts), number(1)]),
        ("array_resize", vec![some(), numbers(&counts)]),
        ("array_append", vec![some(), numbers(&counts)]),
        ("array_prepend", vec![numbers(&counts), some()]),
        ("array_concat", vec![some(), some()]),
        ("array_replace_all", vec![some(), number(4), number(44)]),
        ("arrays_zip", vec![some(), lists(&[&[], &[1; 9], &[2], &[3]])]),
        ("make_array", vec![texts(&words), texts(&words)]),
        ("range", vec![numbers(&counts)]),
        ("range", vec![numbers(&[5, -3, 0, 9]), numbers(&[9, 80, -9, 9])]),
        ("generate_series", vec![numbers(&[5, -3, 0, 9]), numbers(&[9, 80, -9, 9]), number(-2)]),
        ("generate_series", vec![dates(), dates(), interval(1, 0, 0)]),
        ("generate_series", vec![numbers(&[1]), number(100), number(7)]),
        ("to_char", vec![times(), text("%Y-%m-%d %H:%M:%S and %c")]),
    ];
    for (name, args) in cases {
        let rows = match args.iter().find(|arg| matches!(arg, ColumnarValue::Array(_))) {
            Some(ColumnarValue::Array(values)) => values.len(),
            _ => 1,
        };
        let (bounded, args) = call(&registry, name, args, rows, CallMemory::unbounded());
        let asked = bounded.asked(&args).unwrap();
        let made = bounded.own.invoke_with_args(args).unwrap().into_array(rows).unwrap();
        let bytes = bytes_of(made.as_ref());
        assert!(asked >= bytes, "{name}: {asked} were computed, {bytes} made: {made:?}");
    }
}

#[test]
fn the_widest_value_is_told_from_all_of_them() {
    let long = "x".repeat(1000);
    let words = |at: usize| if at / 3 == 7 { long.as_str() } else { "y" };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..300).map(words)));
    let field = || Arc::new(Field::new_list_field(DataType::Utf8, true));
    let starts: ScalarBuffer<i32> = (0..100).map(|list| list * 3).collect();
    let keys = Int32Array::from_iter_values(0..300);
    let kinds: [(ArrayRef, u64); 6] = [
        (Arc::clone(&texts), 1000),
        (Arc::new(StringViewArray::from_iter_values((0..300).map(words))), 1000),
        (Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(&texts))), 1000),
        (Arc::new(ListArray::new(field(), OffsetBuffer::from_lengths([3; 100]), Arc::clone(&texts), None)), 3000),
        (Arc::new(ListViewArray::new(field(), starts, vec![3; 100].into(), Arc::clone(&texts), None)), 3000),
        (Arc::new(FixedSizeListArray::new(field(), 3, texts, None)), 3000),
    ];
    for (values, bytes) in kinds {
        let alone = |values: &ArrayRef| (0..values.len()).map(|row| bytes_of(values.slice(row, 1).as_ref())).max().unwrap();
        for part in [values.slice(0, values.len()), values.slice(5, 30)] {
            let found = widest(part.as_ref(), 0);
            assert!((alone(&part)..=alone(&part) + 8).contains(&found), "{found} of {:?}", part.data_type());
            assert!((bytes..bytes + 100).contains(&found), "{found} of {:?}", part.data_type());
        }
        let part = values.slice(50, 40);
        assert!(widest(part.as_ref(), 0) < 100, "{:?}", part.data_type());
        assert_eq!(widest(part.as_ref(), u64::MAX), bytes_of(part.as_ref()), "all of it is little");
    }
}

#[test]
fn steps_in_time_are_counted_by_the_shortest() {
    let registry = registry();
    let days = |count: i32| ColumnarValue::Scalar(ScalarValue::Date32(Some(count)));
    let time = |seconds: i64| ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(Some(seconds * 1_000_000_000), None));
    let asked = |args: Vec<ColumnarValue>| {
        let (bounded, args) = call(&registry, "generate_series", args, 1, CallMemory::unbounded());
        bounded.asked(&args).unwrap()
    };
    assert!(asked(vec![days(0), days(36_500), interval(0, 1, 0)]) < MIB);
    assert!(asked(vec![time(0), time(86_400 * 365), interval(0, 0, 1_000_000_000)]) > 200 * MIB);
    assert!(asked(vec![time(86_400 * 365), time(0), interval(0, 0, 1)]) < MIB, "there is none in this direction");
    assert!(asked(vec![days(1), days(0), interval(1, -31, 0)]) > 1 << 40, "it may never get there");
}

#[test]
fn what_one_row_would_make_is_refused_before_it_is_made() {
    let registry = registry();
    let cases: Vec<(&str, Vec<ColumnarValue>)> = vec![
        ("repeat", vec![text("a"), number(2_000_000_000)]),
        ("lpad", vec![text("a"), number(2_000_000_000)]),
        ("rpad", vec![text("a"), number(2_000_000_000), text("b")]),
        ("range", vec![number(10_000_000_000)]),
        ("generate_series", vec![number(0), number(10_000_000_000)]),
        ("array_repeat", vec![number(1), number(2_000_000_000)]),
        ("array_resize", vec![lists(&[&[1]]), number(2_000_000_000)]),
        ("concat", vec![texts(&["a"; 1000]), text(&"b".repeat(1_000_000))]),
        ("concat_ws", vec![text(&"b".repeat(1_000_000)), texts(&["a"; 1000]), texts(&["a"; 1000])]),
    ];
    for (name, args) in cases {
        let rows = if name.starts_with("concat") { 1000 } else { 1 };
        let (bounded, args) = call(&registry, name, args, rows, CallMemory::beside(0));
        let error = bounded.invoke_with_args(args).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("64.0 MiB at most") && error.contains("sql-memory"), "{error}");
    }
}

#[test]
fn rows_that_might_make_much_are_made_until_they_do() {
    let registry = registry();
    let words = ["aaaaaaaaaa"; 1000];
    let args = |pattern: &str| vec![texts(&words), text(pattern), text(&"b".repeat(100)), text("g")];
    let (bounded, given) = call(&registry, "regexp_replace", args("x"), 1000, CallMemory::of(MIB / 8));
    assert!(bounded.asked(&given).unwrap() > MIB);
    let made = bounded.invoke_with_args(given.clone()).unwrap().into_array(1000).unwrap();
    assert_eq!(&made, &bounded.own.invoke_with_args(given).unwrap().into_array(1000).unwrap());
    let (bounded, given) = call(&registry, "regexp_replace", args("a"), 1000, CallMemory::of(MIB / 8));
    assert!(bounded.invoke_with_args(given).unwrap_err().to_string().contains("rows it may make"));
}

#[test]
fn what_others_have_made_leaves_room_for_what_is_made_and_not_for_what_might_be() {
    let registry = registry();
    let words = ["aaaaaaaaaa"; 1000];
    let args = vec![texts(&words), text("x"), text(&"b".repeat(100)), text("g")];
    let memory = CallMemory::of(2 * MIB);
    let (bounded, given) = call(&registry, "regexp_replace", args, 1000, memory.clone());
    assert!((MIB..2 * MIB).contains(&bounded.asked(&given).unwrap()));
    let others: Vec<_> = [2_u64, 2, 2, 1].iter().map(|mib| memory.take(mib * MIB).unwrap()).collect();
    let made = bounded.invoke_with_args(given.clone()).unwrap().into_array(1000).unwrap();
    assert_eq!(&made, &bounded.own.invoke_with_args(given.clone()).unwrap().into_array(1000).unwrap());
    drop(made);
    let more: Vec<_> = (0..4).filter_map(|_| memory.take(MIB).ok()).collect();
    assert_eq!(more.len(), 1, "what was made is gone");
    assert!(bounded.invoke_with_args(given).unwrap_err().to_string().contains("what functions have made"));
    drop((others, more));
}

#[test]
fn a_constant_is_made_of_what_comes_to_little() {
    let registry = registry();
    let ids = (0..1000).map(|id| id.to_string()).collect::<Vec<_>>().join(",");
    let (bounded, args) = call(&registry, "string_to_array", vec![text(&ids), text(",")], 1, CallMemory::beside(0));
    assert!(bounded.asked(&args).unwrap() > FOLDED_BYTES_MAX);
    let folded = |bounded: &Bounded, args: &ScalarFunctionArgs| folding(|| bounded.invoke_with_args(args.clone())).is_ok();
    assert!(folded(&bounded, &args));
    let (mut series, args) = call(&registry, "range", vec![number(0), number(100_000)], 1, CallMemory::beside(0));
    assert!(!folded(&series, &args));
    series.folded = LIST_BYTES_MAX;
    assert!(folded(&series, &args), "a value is looked for in it");
}

#[test]
fn large_constants_are_not_made_while_a_statement_is_planned() {
    let registry = registry();
    let of = |count: i64| {
        let (bounded, args) = call(&registry, "repeat", vec![text("a"), number(count)], 1, CallMemory::beside(0));
        (folding(|| bounded.invoke_with_args(args.clone())).is_ok(), bounded.invoke_with_args(args).is_ok())
    };
    assert_eq!([of(1000), of(1_000_000), of(1_000_000_000)], [(true, true), (false, true), (false, false)]);
}
