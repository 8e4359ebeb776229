//! Files with two columns of one name, of which the engine would show one.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::error::Result;
use forebay_types::Error;
use object_store::ObjectMeta;

use super::fault::{self, Fault};
use crate::error::{external, twice};
use crate::scans::Footer;

/// The columns of an Arrow or Avro file, if each has a name of its own.
pub(super) fn distinct(schema: SchemaRef) -> fault::Result<SchemaRef> {
    match odd(schema.fields().iter().map(|field| field.name().as_str())) {
        None => Ok(schema),
        Some(why) => Err(Fault::Unsupported(why)),
    }
}

/// The same of Parquet files, by their footers, which are there once their columns are known. Who asks names the file.
pub(super) fn check(state: &dyn Session, files: &[ObjectMeta]) -> Result<()> {
    for file in files {
        let Some(footer) = Footer::cached(state.runtime_env(), file) else { continue };
        let columns = footer.0.file_metadata().schema_descr().root_schema().get_fields();
        if let Some(why) = odd(columns.iter().map(|column| column.name())) {
            return Err(external(Error::invalid(why)));
        }
    }
    Ok(())
}

/// What is wrong with names of which two are the same.
fn odd<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    twice(names).map(|name| format!("it has two columns '{name}'"))
}
