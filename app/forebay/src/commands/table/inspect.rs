//! `forebay table inspect`: schema, groups, row groups and statistics of a table file, for people and as JSON.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::util::display::array_value_to_string;
use forebay_sql::{EngineSettings, TableFile};
use forebay_table::{BloomInfo, ColumnStatistics, Layout, Table};
use forebay_types::{Result, format_bytes};
use serde_json::{Value, json};

use super::engine::engine;
use crate::cli::TableInspectArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;

/// Row groups that people are shown.
const ROW_GROUPS_MAX: usize = 20;
/// Characters of a bound that people are shown.
const BOUND_CHARS_MAX: usize = 24;

pub(super) async fn run(config: &Config, args: &TableInspectArgs) -> Outcome {
    let engine = engine(config, EngineSettings::default(), &[&args.file]).await?;
    let file = engine.table_file(&args.file).await?;
    let table = &file.table;
    let statistics = (0..table.schema().leaves().len()).map(|leaf| table.statistics(leaf)).collect::<Result<Vec<_>>>()?;
    let mut output = Output::new(args.json);
    match args.json {
        true => output.record(&as_json(&args.file, &file, &statistics)?)?,
        false => print(&mut output, &args.file, &file, &statistics)?,
    }
    output.finish()
}

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::Column => "column",
        Layout::Aligned => "aligned rows",
        Layout::Packed => "packed rows",
    }
}

/// The group that each leaf is in.
fn homes(table: &Table) -> Vec<usize> {
    let mut homes = vec![0; table.schema().leaves().len()];
    for (index, group) in table.groups().iter().enumerate() {
        group.leaves().iter().for_each(|&leaf| homes[leaf] = index);
    }
    homes
}

fn bloom_bytes(table: &Table) -> u64 {
    let of = |row_group: usize| (0..table.schema().leaves().len()).filter_map(move |leaf| table.bloom(row_group, leaf));
    (0..table.row_groups()).flat_map(of).map(|info| info.range().end - info.range().start).sum()
}

fn bound(bounds: &ArrayRef, row_group: usize) -> Value {
    match bounds.is_null(row_group) {
        true => Value::Null,
        false => array_value_to_string(bounds, row_group).map_or(Value::Null, Value::String),
    }
}

fn as_json(name: &str, file: &TableFile, statistics: &[ColumnStatistics]) -> Result<Value> {
    let table = &file.table;
    let homes = homes(table);
    let leaves = table.schema().leaves();
    let columns = leaves
        .iter()
        .enumerate()
        .map(|(index, leaf)| json!({"column": leaf.path(), "type": leaf.data_type().to_string(), "group": homes[index]}));
    let groups = table.groups().iter().map(|group| {
        json!({
            "layout": layout(group.layout()),
            "columns": group.leaves().iter().map(|&leaf| leaves[leaf].path()).collect::<Vec<_>>(),
        })
    });
    let mut row_groups = Vec::with_capacity(table.row_groups());
    for row_group in 0..table.row_groups() {
        let cells = (0..table.groups().len()).map(|group| {
            let cell = table.cell(row_group, group)?;
            let ranges = cell.ranges().map(|range| [range.start, range.end]).collect::<Vec<_>>();
            Ok(json!({"bytes": cell.bytes(), "ranges": ranges}))
        });
        let known = leaves.iter().zip(statistics).enumerate().map(|(index, (leaf, known))| {
            let (min, max) = (bound(&known.min, row_group), bound(&known.max, row_group));
            let mut known = json!({"nulls": known.nulls.value(row_group), "min": min, "max": max});
            if let Some(range) = table.bloom(row_group, index).map(BloomInfo::range) {
                known["bloom_filter"] = json!([range.start, range.end]);
            }
            (leaf.path().to_string(), known)
        });
        row_groups.push(json!({
            "rows": table.row_group_rows(row_group),
            "cells": cells.collect::<Result<Vec<_>>>()?,
            "statistics": known.collect::<serde_json::Map<_, _>>(),
        }));
    }
    Ok(json!({
        "file": name,
        "bytes": file.bytes,
        "rows": table.rows(),
        "schema": table.schema().arrow().fields().iter().map(|field| {
            json!({"name": field.name(), "type": field.data_type().to_string(), "nullable": field.is_nullable()})
        }).collect::<Vec<_>>(),
        "columns": columns.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "row_groups": row_groups,
    }))
}

fn print(output: &mut Output, name: &str, file: &TableFile, statistics: &[ColumnStatistics]) -> Outcome {
    let table = &file.table;
    let (leaves, homes) = (table.schema().leaves(), homes(table));
    output.line(name)?;
    output.line(&format!("  rows        {} in {} row groups", table.rows(), table.row_groups()))?;
    output.line(&format!("  columns     {} in {} groups", leaves.len(), table.groups().len()))?;
    output.line(&format!("  bytes       {} ({})", format_bytes(file.bytes), file.bytes))?;
    let filters = bloom_bytes(table);
    if filters > 0 {
        output.line(&format!("  filters     {} of bloom filters", format_bytes(filters)))?;
    }
    output.line("")?;
    let mut rows = Vec::with_capacity(leaves.len());
    for (index, (leaf, known)) in leaves.iter().zip(statistics).enumerate() {
        let (least, most) = range(known, table.row_groups());
        rows.push(vec![
            leaf.path().to_string(),
            leaf.data_type().to_string(),
            homes[index].to_string(),
            known.nulls.values().iter().sum::<u64>().to_string(),
            least,
            most,
        ]);
    }
    output.table(&["column", "type", "group", "nulls", "least", "greatest"], &[2, 3], &rows)?;
    output.line("")?;
    let mut rows = Vec::with_capacity(table.groups().len());
    for (index, group) in table.groups().iter().enumerate() {
        let cells = (0..table.row_groups()).map(|row_group| Ok(table.cell(row_group, index)?.bytes()));
        let bytes = cells.sum::<Result<u64>>()?;
        rows.push(vec![
            index.to_string(),
            layout(group.layout()).to_string(),
            group.leaves().len().to_string(),
            bytes.to_string(),
        ]);
    }
    output.table(&["group", "layout", "columns", "bytes"], &[0, 2, 3], &rows)?;
    output.line("")?;
    let mut rows = Vec::new();
    for row_group in 0..table.row_groups().min(ROW_GROUPS_MAX) {
        let cells = (0..table.groups().len()).map(|group| Ok(table.cell(row_group, group)?.bytes()));
        let bytes = cells.sum::<Result<u64>>()?;
        rows.push(vec![row_group.to_string(), table.row_group_rows(row_group).to_string(), bytes.to_string()]);
    }
    output.table(&["row group", "rows", "bytes"], &[0, 1, 2], &rows)?;
    if table.row_groups() > ROW_GROUPS_MAX {
        output.line(&format!("and {} more; --json shows all, with their cells", table.row_groups() - ROW_GROUPS_MAX))?;
    }
    Ok(())
}

/// The bounds of the whole column; nothing where a row group with values has none.
fn range(known: &ColumnStatistics, row_groups: usize) -> (String, String) {
    use datafusion::scalar::ScalarValue;
    let (mut least, mut most): (Option<ScalarValue>, Option<ScalarValue>) = (None, None);
    for row_group in 0..row_groups {
        if known.nulls.value(row_group) == known.rows.value(row_group) {
            continue;
        }
        let of = |bounds: &ArrayRef| ScalarValue::try_from_array(bounds, row_group).ok().filter(|value| !value.is_null());
        let (Some(min), Some(max)) = (of(&known.min), of(&known.max)) else { return (String::new(), String::new()) };
        least = Some(least.filter(|least| *least <= min).unwrap_or(min));
        most = Some(most.filter(|most| *most >= max).unwrap_or(max));
    }
    let show = |value: Option<ScalarValue>| {
        let text = value.map(|value| value.to_string()).unwrap_or_default();
        if let Some((end, _)) = text.char_indices().nth(BOUND_CHARS_MAX) { format!("{}..", &text[..end]) } else { text }
    };
    (show(least), show(most))
}
