//! `forebay table suggest`: column groups by what recent or given statements read together, as a command to run.

use forebay_sql::EngineSettings;
use forebay_table::suggest;
use forebay_types::{Error, ResultExt};
use serde_json::json;

use super::engine::engine;
use crate::cli::TableSuggestArgs;
use crate::config::Config;
use crate::exit::Outcome;
use crate::output::Output;
use crate::sql::history;

pub(super) async fn run(config: &Config, args: &TableSuggestArgs) -> Outcome {
    let engine = engine(config, EngineSettings::default(), &[&args.path]).await?;
    let columns = engine.columns(&args.path).await?;
    let mut statements = Vec::new();
    for file in &args.queries {
        let script = std::fs::read_to_string(file).context(|| file.display())?;
        statements.extend(engine.statements(&script).await?);
    }
    if args.queries.is_empty() {
        statements = history::read()?;
    }
    let (mut reads, mut unplanned) = (Vec::new(), 0);
    for statement in &statements {
        match engine.columns_read(statement, &args.path).await {
            Ok(read) => reads.extend(read),
            // Statements of the past name tables and files that are gone; one that the user hands over should be right.
            Err(_) if args.queries.is_empty() => unplanned += 1,
            Err(error) => return Err(error.context(statement.clone()).into()),
        }
    }
    if reads.is_empty() {
        return Err(Error::not_found(nothing_reads(config, args, statements.len(), unplanned)).into());
    }
    let groups = suggest(&columns, &reads);
    let mut output = Output::new(args.json);
    if args.json {
        for group in &groups {
            output.record(&json!({
                "columns": group.columns, "queries": group.queries, "together": group.together, "of": reads.len(),
            }))?;
        }
        return output.finish();
    }
    output.line(&format!("{} statements, {} reads of {}", statements.len(), reads.len(), args.path))?;
    if unplanned > 0 {
        output.line(&format!(
            "{unplanned} statements were left out: what they name is not there, or is a relative path from another folder"
        ))?;
    }
    output.line("")?;
    let row =
        |group: &forebay_table::Suggested| vec![group.columns.join(","), group.queries.to_string(), group.together.to_string()];
    output.table(&["columns", "read by", "together"], &[1, 2], &groups.iter().map(row).collect::<Vec<_>>())?;
    output.line("")?;
    // A group of one needs no flag, and the columns that nobody reads are what is left.
    let read = groups.iter().filter(|group| group.queries > 0 && group.columns.len() > 1);
    let mut flags = read.map(|group| format!("--group '{}'", group.columns.join(","))).collect::<Vec<_>>();
    let alone = groups.iter().filter(|group| group.queries > 0 && group.columns.len() == 1);
    let unread = groups.last().is_some_and(|group| group.queries == 0 && group.columns.len() > 1);
    if unread {
        flags.extend(alone.map(|group| format!("--group '{}'", group.columns[0])));
        flags.push("--group '*'".to_string());
    }
    let flags = flags.iter().map(|flag| format!(" {flag}")).collect::<String>();
    output.line(&format!("forebay table convert {} OUT.albis{flags}", args.path))?;
    output.finish()
}

/// Why there is nothing to propose, and what helps.
fn nothing_reads(config: &Config, args: &TableSuggestArgs, statements: usize, unplanned: usize) -> String {
    let path = &args.path;
    if !args.queries.is_empty() {
        return format!("none of the {statements} statements reads '{path}': give a file of those that do with --queries");
    }
    let remedy = match config.settings.query_history {
        true => "run queries with `forebay sql`, or give a file of them with --queries",
        false => "none are remembered while query-history is false, so give a file of them with --queries",
    };
    let from_elsewhere = match unplanned {
        0 => String::new(),
        left_out => format!(
            " ({left_out} of them name tables or files that are not there; if theirs are relative paths, run this in the folder \
             where the statements ran)"
        ),
    };
    format!("none of {statements} recent statements reads '{path}'{from_elsewhere}: {remedy}")
}
