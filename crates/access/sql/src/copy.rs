//! Makes a `COPY ... TO` that names a path into one that DataFusion can plan: target as URL, format by the target's name.

use datafusion::sql::parser::{CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::Value;
use forebay_types::{Error, Result};

use crate::location::{Location, Namespace};
use crate::paths::Format;

/// Prepares a `COPY ... TO`, also below `EXPLAIN`: the target becomes a URL that the engine understands, and the format
/// comes from the target's name when it is not stated (Parquet for a folder). Gives the target as it was written.
pub(crate) fn prepare(statement: &mut Statement, namespace: &dyn Namespace) -> Result<Option<String>> {
    match statement {
        Statement::CopyTo(copy) => {
            let target = copy.target.clone();
            resolve(copy, namespace)?;
            Ok(Some(target))
        }
        Statement::Explain(explain) => prepare(&mut explain.statement, namespace),
        _ => Ok(None),
    }
}

fn resolve(copy: &mut CopyToStatement, namespace: &dyn Namespace) -> Result<()> {
    let location = Location::parse_target(&copy.target, namespace)?;
    namespace.check(&location.url)?;
    if copy.stored_as.is_none() {
        match Format::of_name(&copy.target) {
            Some(format) => {
                copy.stored_as = Some(format.name().to_string());
                for (key, value) in format.options() {
                    if !copy.options.iter().any(|(known, _)| known.eq_ignore_ascii_case(&key)) {
                        copy.options.push((key, Value::SingleQuotedString(value)));
                    }
                }
            }
            None if copy.target.ends_with('/') || !copy.partitioned_by.is_empty() => {
                copy.stored_as = Some("PARQUET".to_string());
            }
            None => {
                return Err(Error::invalid(format!(
                    "the name of '{}' says no format: end it with .parquet, .csv, .json, .arrow, .albis and the like, or with '/' for a \
                     folder of Parquet files, or write STORED AS",
                    copy.target
                )));
            }
        }
    }
    let folder = !copy.partitioned_by.is_empty();
    copy.target = if folder { location.as_folder().url } else { location.url }.to_string();
    Ok(())
}
