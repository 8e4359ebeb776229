//! From a path in `FROM` or a declared table to something that can be scanned: place, files, format and schema.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::CreateExternalTable;
use forebay_types::{Error, ForebayPath};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::albis::{TableFormat, numbered, with_number};
use crate::error::{external, from_engine, remedy_of_mixed_json};
use crate::location::{Location, Namespace, shown};
use crate::paths::format::{Compression, Format, Kind};
use crate::paths::guard::{guarded, schema, with_required};
use crate::paths::headers::{NamedBy, by_name};
use crate::paths::json_array::in_one_piece;
use crate::paths::json_kinds;
use crate::paths::listing::{Listing, list};
use crate::paths::table::{FileRule, PathTable};
use crate::paths::widths;
use crate::shards::{ShardTable, has_manifest, is_dataset};

/// Whether a table's name is meant as a path.
pub(crate) fn looks_like_path(name: &str) -> bool {
    name.contains('/') || Format::of_name(numbered(name).unwrap_or(name)).is_some()
}

/// What `CREATE EXTERNAL TABLE` declares.
pub(crate) type Declared = CreateExternalTable;

/// Makes tables of paths.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    namespace: Arc<dyn Namespace>,
}

impl Resolver {
    pub(crate) fn new(namespace: Arc<dyn Namespace>) -> Self {
        Self { namespace }
    }

    /// The place of a path.
    pub(crate) fn location(&self, text: &str) -> Result<Location> {
        Location::parse(text, self.namespace.as_ref()).map_err(external)
    }

    /// The table that a path in `FROM` is.
    pub(crate) async fn table(&self, state: &SessionState, text: &str) -> Result<Arc<dyn TableProvider>> {
        if is_dataset(text) {
            return self.shards(text, None).await;
        }
        // A name with another ending is none of a table file.
        let numbered = numbered(text).filter(|path| Format::of_name(path).is_some_and(Format::is_table));
        let text = numbered.unwrap_or(text);
        let location = self.location(text)?;
        let store = state.runtime_env().object_store(url_of(&location)?)?;
        let listing = list(&store, &location).await?;
        if is_json_without_rows(text, &listing) {
            let column = Field::new("json", DataType::Utf8, true);
            return Ok(Arc::new(EmptyTable::new(Arc::new(Schema::new(vec![column])))));
        }
        let files = listing.with_content().map_err(external)?;
        let as_dataset = location.pattern.is_none() && has_manifest(&listing.location.path().map_err(external)?, &files);
        let format = match Format::of_files(text, files.iter().map(|meta| meta.location.as_ref())) {
            Ok(format) => format,
            // Whatever the folder is called.
            Err(_) if as_dataset => return self.shards(text, None).await,
            Err(error) => return Err(external(error)),
        };
        let array = is_array(&store, format, &files).await?;
        let partitions = listing.partition_columns().map_err(external)?;
        let is_numbered = numbered.is_some() && format.is_table();
        let reader: Arc<dyn FileFormat> = match is_numbered {
            true => Arc::new(TableFormat::numbered()),
            false => by_name(guarded(format.reader(state, array)), NamedBy::Files),
        };
        let options = ListingOptions::new(reader).with_file_extension("").with_table_partition_cols(partitions);
        let mut schema = infer(state, &store, &options, text, &files).await?;
        if is_numbered {
            let with_number = with_number(&schema, &options.table_partition_cols);
            schema = Arc::new(with_number.map_err(|error| external(error.context(format!("'{text}'"))))?);
        }
        build(state, listing, FileRule::All, options, schema, None)
    }

    /// An external table.
    pub(crate) async fn external(&self, state: &SessionState, declared: &Declared) -> Result<Arc<dyn TableProvider>> {
        let [text] = declared.locations.as_slice() else {
            return Err(external(Error::invalid("CREATE EXTERNAL TABLE takes one LOCATION: use a folder or a pattern")));
        };
        if declared.file_type.eq_ignore_ascii_case("shard") {
            if !declared.schema.fields().is_empty() {
                return Err(external(Error::invalid("a dataset of shards says its columns itself: leave them out")));
            }
            return self.shards(text, declared.definition.clone()).await;
        }
        let factory = state.get_file_format_factory(&declared.file_type).ok_or_else(|| {
            external(Error::invalid(format!(
                "STORED AS {}: write PARQUET, CSV, JSON, AVRO, ARROW, ALBIS or SHARD",
                declared.file_type
            )))
        })?;
        check_heeded(declared)?;
        let reader = guarded(factory.create(state, &declared.options)?);
        let location = self.location(text)?;
        let store = state.runtime_env().object_store(url_of(&location)?)?;
        let has_schema = !declared.schema.fields().is_empty();
        let mut listing = list(&store, &location).await?;
        if listing.files.is_empty() && has_schema && listing.location.pattern.is_none() {
            listing.location = listing.location.as_folder();
        }
        let rule = FileRule::Preferred(ending(reader.as_ref()));
        listing.files = rule.keep(listing.files);
        let named_by = match has_schema {
            true => NamedBy::Declaration(listing.files.iter().find(|meta| meta.size > 0).cloned()),
            false => NamedBy::Files,
        };
        let reader = by_name(reader, named_by);

        let partitions = partitions_of(declared, &listing)?;
        let options = ListingOptions::new(reader)
            .with_file_extension("")
            .with_table_partition_cols(partitions.clone())
            .with_file_sort_order(declared.order_exprs.clone());
        let schema = if has_schema {
            schema(state, options.format.as_ref(), &store, &listing.files).await?;
            let schema = without(declared.schema.inner(), &partitions)?;
            with_required(state, options.format.as_ref(), &store, &listing.files, schema).await
        } else {
            let files = listing.with_content().map_err(external)?;
            infer(state, &store, &options, text, &files).await?
        };
        build(state, listing, rule, options, schema, Some(declared))
    }

    /// A dataset of shards below a mount.
    async fn shards(&self, text: &str, definition: Option<String>) -> Result<Arc<dyn TableProvider>> {
        let covered = self.namespace.covers(text);
        let path = ForebayPath::parse_any(covered.as_deref().unwrap_or(text).trim_end_matches('/')).map_err(external)?;
        let is_below_a_mount = !path.mount().is_temporary() && self.namespace.has(path.mount().as_str());
        let Some(client) = self.namespace.client().filter(|_| is_below_a_mount) else {
            let mounts = self.namespace.names().join(", ");
            return Err(external(Error::not_found(format!(
                "'{text}': datasets of shards are served below mounts, and this is below none of them ({mounts})"
            ))));
        };
        let table = ShardTable::open(self.namespace.datasets(), client, &path, definition).await.map_err(external)?;
        Ok(Arc::new(table))
    }
}

/// Refuses options that the engine takes and its reader passes over: fields that mean no value would be text.
fn check_heeded(declared: &Declared) -> Result<()> {
    let is_passed_over = |name: &&String| {
        let name = name.to_ascii_lowercase();
        ["null_regex", "null_value"].contains(&name.strip_prefix("format.").unwrap_or(&name))
    };
    match declared.options.keys().find(is_passed_over) {
        Some(name) => Err(external(Error::invalid(format!(
            "'{name}' is not supported of a table: an empty field is read as NULL, of others make NULL by nullif(column, '..') in a view"
        )))),
        None => Ok(()),
    }
}

fn url_of(location: &Location) -> Result<ListingTableUrl> {
    ListingTableUrl::try_new(location.url.clone(), None)
}

fn ending(reader: &dyn FileFormat) -> String {
    match reader.compression_type().map(|compression| reader.get_ext_with_compression(&compression)) {
        Some(Ok(ending)) => format!(".{}", ending.trim_start_matches('.')),
        _ => format!(".{}", reader.get_ext().trim_start_matches('.')),
    }
}

fn partitions_of(declared: &Declared, listing: &Listing) -> Result<Vec<(String, DataType)>> {
    let found = listing.partition_columns().map_err(external)?;
    if declared.table_partition_cols.is_empty() {
        let is_declared = |name: &str| declared.schema.fields().iter().any(|field| field.name() == name);
        let inferred = declared.schema.fields().is_empty();
        return Ok(found.into_iter().filter(|(name, _)| inferred || is_declared(name)).collect());
    }
    let of = |name: &String| {
        let typed = declared.schema.fields().iter().find(|field| field.name() == name);
        let inferred = found.iter().find(|(known, _)| known == name);
        let kind = typed.map(|field| field.data_type().clone()).or_else(|| inferred.map(|(_, kind)| kind.clone()));
        (name.clone(), kind.unwrap_or(DataType::Utf8))
    };
    Ok(declared.table_partition_cols.iter().map(of).collect())
}

/// Whether a `.json` file is one array; everything else of JSON has an object a line.
async fn is_array(store: &Arc<dyn ObjectStore>, format: Format, files: &[ObjectMeta]) -> Result<bool> {
    if format.kind != Kind::Json || format.compression != Compression::None {
        return Ok(false);
    }
    let Some(first) = files.first() else { return Ok(false) };
    let start = store.get_range(&first.location, 0..first.size.min(64)).await?;
    Ok(start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'['))
}

/// Whether all files are JSON of 0 bytes, which is how no rows at all are written: nothing says what columns they would have had.
fn is_json_without_rows(text: &str, listing: &Listing) -> bool {
    let names = listing.files.iter().map(|meta| meta.location.as_ref());
    let is_json = |format: Format| matches!(format.kind, Kind::Json | Kind::NdJson) && format.compression == Compression::None;
    listing.files.iter().all(|meta| meta.size == 0) && Format::of_files(text, names).is_ok_and(is_json)
}

/// The files' common schema without the partition columns. A file that can't be read is named.
async fn infer(
    state: &SessionState,
    store: &Arc<dyn ObjectStore>,
    options: &ListingOptions,
    text: &str,
    files: &[ObjectMeta],
) -> Result<SchemaRef> {
    let known = |schema: &SchemaRef| match widths::fault(schema) {
        Some(why) => Err(external(Error::invalid(format!("'{text}' can't be read: {why}; write it in another form")))),
        None => without(schema, &options.table_partition_cols),
    };
    if let Some(schema) = schema(state, options.format.as_ref(), store, files).await? {
        return known(&schema);
    }
    match options.format.infer_schema(state, store, files).await {
        Ok(schema) => known(&schema),
        Err(error) => {
            let all = from_engine(error);
            if all.kind() == forebay_types::ErrorKind::Conflict {
                return Err(external(all.context(format!("'{text}'"))));
            }
            for meta in files {
                if let Err(error) = options.format.infer_schema(state, store, std::slice::from_ref(meta)).await {
                    let error = from_engine(error);
                    let error = match remedy_of_mixed_json(&error) {
                        Some(_) => json_kinds::named(store, options.format.as_ref(), meta, error).await,
                        None => error,
                    };
                    return Err(external(unreadable(text, meta, error)));
                }
            }
            Err(external(apart(text, &all)))
        }
    }
}

/// Why files that can be read one by one can't be read as one table, and what to do about types that differ.
fn apart(text: &str, why: &Error) -> Error {
    let declare = match why.message().contains("Fail to merge schema field") {
        true => {
            "; say which types the columns are to have with CREATE EXTERNAL TABLE name (column type, ..): values are cast to them"
        }
        false => "",
    };
    Error::new(why.kind(), format!("the files of '{text}' don't go together: {}{declare}", why.message()))
}

fn unreadable(text: &str, meta: &ObjectMeta, error: Error) -> Error {
    use forebay_types::ErrorKind as Kind;
    let name = match text.contains(meta.location.filename().unwrap_or_default()) {
        true => format!("'{text}'"),
        false => format!("{} of '{text}'", shown(meta.location.as_ref())),
    };
    match error.kind() {
        _ if error.message().contains("encrypted footer") => Error::invalid(format!(
            "{name} ({} bytes) is encrypted, and there are no keys for Parquet here: write it without, and let the store encrypt it",
            meta.size
        )),
        Kind::Corrupt | Kind::Internal => {
            Error::corrupt(format!("{name} ({} bytes) is damaged or cut short: {}; write it again", meta.size, error.message()))
        }
        // Lines that are not as the others are, say.
        Kind::Invalid => {
            let again = "write it again, or say how it is written with CREATE EXTERNAL TABLE .. OPTIONS";
            let remedy = remedy_of_mixed_json(&error).unwrap_or(again);
            Error::invalid(format!("{name} ({} bytes) can't be read: {}; {remedy}", meta.size, error.message()))
        }
        _ => error.context(name),
    }
}

fn without(schema: &SchemaRef, partitions: &[(String, DataType)]) -> Result<SchemaRef> {
    let is_partition = |name: &str| partitions.iter().any(|(known, _)| known == name);
    let kept: Vec<_> = schema.fields().iter().filter(|field| !is_partition(field.name())).cloned().collect();
    Ok(Arc::new(Schema::new_with_metadata(kept, schema.metadata().clone())))
}

fn build(
    state: &SessionState,
    listing: Listing,
    rule: FileRule,
    mut options: ListingOptions,
    schema: SchemaRef,
    declared: Option<&Declared>,
) -> Result<Arc<dyn TableProvider>> {
    options.format = in_one_piece(options.format);
    let location = listing.location;
    let text = if location.is_folder() { location.text.clone() } else { location.url.to_string() };
    let url = url_of(&location)?.with_table_ref(TableReference::bare(text));
    let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
    let mut table = ListingTable::try_new(config)?.with_cache(state.runtime_env().cache_manager.get_file_statistic_cache());
    if let Some(declared) = declared {
        table = table
            .with_definition(declared.definition.clone())
            .with_constraints(declared.constraints.clone())
            .with_column_defaults(declared.column_defaults.clone());
    }
    let table = PathTable::new(location, rule, table);
    table.keep(state.runtime_env(), listing.files)?;
    Ok(Arc::new(table))
}
