//! `forebay shard create`.

use std::path::{Path, PathBuf};

use forebay_client::Client;
use forebay_shard::{Key, KeyMap, KeySample};
use forebay_shard_store::{Columns, Dataset, DatasetShard, Store};
use forebay_shards::{Shards, check_followed, create, is_visible, objects_followed, objects_like};
use forebay_types::{Error, ForebayPath, ObjectInfo, Result, ResultExt, format_bytes};
use serde_json::json;
use tempfile::TempDir;

use super::tell_of_repeated;
use crate::cli::{By, ShardCreateArgs};
use crate::config::Config;
use crate::connect::connect;
use crate::exit::Outcome;
use crate::output::show;
use crate::progress;
use crate::records::{self, Input, Wanted, bytes_of, of_paths};
use crate::tree::{Tree, beside};

/// Bytes of files for each shard, when nobody says how many.
const SHARD_FILE_BYTES: u64 = 128 << 20;
/// The least that a shard is stored at: each worker makes its own layers.
const BASE_SIZE: f64 = 0.01;

/// A file of records, with the name that errors give it: objects are brought here under others.
struct Source {
    file: PathBuf,
    name: String,
    /// Its folders may give columns.
    is_object: bool,
}

impl Source {
    fn open(&self, wanted: &Wanted<'_>) -> Result<Input> {
        records::open_as(&self.file, &self.name, wanted)
    }
}

/// Makes a dataset: one shard after the other, each from a reading of all files, so that memory is that of one.
pub(super) async fn run(config: &Config, args: &ShardCreateArgs) -> Outcome {
    let client = connect(config).await?;
    let scratch = TempDir::with_prefix("forebay-shard-").context(|| "no temporary folder")?;
    let (files, objects) = match args.refresh {
        Some(_) => followed(&client, args, scratch.path()).await?,
        None => (files(&client, &args.from, scratch.path()).await?, Vec::new()),
    };
    let in_paths = of_paths(files.iter().filter(|file| file.is_object).map(|file| file.name.as_str()));
    let wanted = Wanted { key: &args.key, columns: args.columns.as_deref(), in_paths: &in_paths, like: None };
    let (columns, file_bytes) = look(&files, &wanted)?;
    let count = args.shards.unwrap_or_else(|| file_bytes.div_ceil(SHARD_FILE_BYTES).max(1) as usize);
    Dataset::check_shape(count, &args.replicas)?;
    let map = match args.by {
        By::Hash => KeyMap::Hash(count),
        By::Range => KeyMap::Ranges(sample(&files, &wanted, &columns, count)?.splits(count)),
    };
    let count = map.shards();
    let mut creating = create(&client, &args.dataset, columns.clone(), args.replicas.clone(), args.replace).await?;
    creating.by(&map);
    if let Some(every) = args.refresh {
        creating.follow(args.from.clone(), every)?;
    }
    if let Some(ack) = args.ack {
        creating.acknowledge(ack);
    }
    let mut read = 0;
    for shard in 0..count {
        let folder = scratch.path().join("shard");
        read += build(&files, &wanted, &columns, (shard, &map), &folder, args.refresh.is_some())?;
        let bar = progress::spinner(&format!("storing shard {} of {count}", shard + 1));
        creating.push(&folder, |_| {}).await?;
        bar.finish_and_clear();
        std::fs::remove_dir_all(&folder).context(|| folder.display())?;
    }
    if args.refresh.is_some() {
        for (file, object) in files.iter().zip(&objects) {
            creating.came_from(object, keys(file, &wanted)?).await?;
        }
    }
    let manifest = creating.finish().await?;
    let shards = Shards::open(&client, &args.dataset).await?;
    if args.refresh.is_some() {
        // The worker that is to follow the objects hears of the dataset.
        shards.status().await?;
    }
    print(args, &shards, manifest, read)
}

/// The keys of a file's records.
fn keys(file: &Source, wanted: &Wanted<'_>) -> Result<Vec<Key>> {
    let mut keys = Vec::new();
    for piece in file.open(wanted)?.records {
        keys.extend(piece.context(|| &file.name)?.records.into_iter().map(|(key, _)| key));
    }
    Ok(keys)
}

/// Keys of all files, with the bytes of their records, for so many ranges.
fn sample(files: &[Source], wanted: &Wanted<'_>, columns: &Columns, ranges: usize) -> Result<KeySample> {
    let mut sample = KeySample::new(ranges);
    // One range has all.
    if ranges == 1 {
        return Ok(sample);
    }
    let wanted = &Wanted { like: Some(columns), ..*wanted };
    let inputs = files.iter().map(|file| file.open(wanted)).collect::<Result<Vec<_>>>()?;
    let bar = progress::bytes("looking where ranges end", inputs.iter().map(|input| input.bytes).sum());
    for (file, input) in files.iter().zip(inputs) {
        for piece in input.records {
            let piece = piece.context(|| &file.name)?;
            piece.records.iter().for_each(|record| sample.push(&record.0, bytes_of(record) as u64));
            bar.inc(piece.bytes);
        }
    }
    bar.finish_and_clear();
    Ok(sample)
}

/// The records of one shard of those of a map, from all files; of those that are followed each has to be one that workers take. How many
/// were read for it.
fn build(
    files: &[Source],
    wanted: &Wanted<'_>,
    columns: &Columns,
    (shard, map): (usize, &KeyMap),
    folder: &Path,
    is_followed: bool,
) -> Result<u64> {
    let (wanted, count) = (&Wanted { like: Some(columns), ..*wanted }, map.shards());
    let mut building = Store::build(folder, columns.clone(), BASE_SIZE)?.with_cold();
    let inputs = files.iter().map(|file| file.open(wanted)).collect::<Result<Vec<_>>>()?;
    let bytes = inputs.iter().map(|input| input.bytes).sum();
    let bar = progress::bytes(&format!("reading for shard {} of {}", shard + 1, count), bytes);
    let mut read = 0;
    for (file, input) in files.iter().zip(inputs) {
        for piece in input.records {
            let piece = piece.context(|| &file.name)?;
            for (key, values) in piece.records {
                if map.shard_of(&key) == shard {
                    if is_followed {
                        check_followed(columns, &key, &values).context(|| &file.name)?;
                    }
                    building.push(key, values)?;
                    read += 1;
                }
            }
            bar.inc(piece.bytes);
        }
    }
    bar.finish_and_clear();
    let bar = progress::spinner(&format!("building shard {} of {}", shard + 1, count));
    building.finish()?;
    bar.finish_and_clear();
    Ok(read)
}

/// The columns, which have to be the same in all files but for the unit of times, which is the first one's, and the bytes of these.
fn look(files: &[Source], wanted: &Wanted<'_>) -> Result<(Columns, u64)> {
    let mut columns: Option<Columns> = None;
    let mut bytes = 0;
    for file in files {
        let input = file.open(&Wanted { like: columns.as_ref(), ..*wanted })?;
        bytes += input.bytes;
        match &columns {
            Some(first) if *first != input.columns => {
                return Err(Error::invalid(format!("{}: it has other columns than {}", file.name, files[0].name)));
            }
            _ => columns = Some(input.columns),
        }
    }
    let columns = columns.ok_or_else(|| Error::not_found("there is nothing to make a dataset of"))?;
    Ok((columns, bytes))
}

/// The files: those of this machine where they are, and objects of mounts brought here.
async fn files(client: &Client, from: &[String], scratch: &Path) -> Outcome<Vec<Source>> {
    let mut files = Vec::new();
    for text in from {
        let here = PathBuf::from(text);
        if here.is_file() {
            files.push(Source { file: here, name: text.clone(), is_object: false });
            continue;
        }
        let path: ForebayPath = text.parse().map_err(|_| {
            Error::not_found(format!("{text}: there is no such file, and it is no path of a mount as /lake/orders"))
        })?;
        let mut found = objects_like(client, &path).await?;
        if found.is_empty() {
            found = match Tree::of(client, &path).await? {
                Tree::Object(named) => vec![named],
                Tree::Folder(_, all) => all.into_iter().filter(|object| is_visible(&object.version.key)).collect(),
            };
        } else {
            found.retain(|object| is_visible(&object.version.key));
        }
        bring_all(client, &path, &found, scratch, &mut files).await?;
    }
    Ok(files)
}

/// The objects that are followed, brought here: the same that a refresh finds, so that none of their records go with it.
async fn followed(client: &Client, args: &ShardCreateArgs, scratch: &Path) -> Outcome<(Vec<Source>, Vec<ObjectInfo>)> {
    if args.from.iter().any(|text| Path::new(text).is_file()) {
        return Err(Error::invalid("--refresh follows objects of mounts: files of this machine are not seen by workers").into());
    }
    let objects = objects_followed(client, &args.dataset, &args.from).await?;
    let mut files = Vec::new();
    bring_all(client, &args.dataset, &objects, scratch, &mut files).await?;
    Ok((files, objects))
}

async fn bring_all(
    client: &Client,
    of: &ForebayPath,
    objects: &[ObjectInfo],
    scratch: &Path,
    files: &mut Vec<Source>,
) -> Outcome {
    let bar = progress::bytes(&format!("bringing {of}"), objects.iter().map(|info| info.version.size).sum());
    for info in objects {
        let name = info.version.key.as_str().rsplit('/').next().unwrap_or_default();
        // Numbered, as names of several folders may be the same.
        let file = scratch.join(format!("{:06}-{name}", files.len()));
        bring(client, info, &file, &bar).await?;
        files.push(Source { file, name: beside(of, &info.version.key).to_string(), is_object: true });
    }
    bar.finish_and_clear();
    Ok(())
}

async fn bring(client: &Client, info: &ObjectInfo, file: &Path, bar: &indicatif::ProgressBar) -> Outcome {
    const PIECE: u64 = 16 << 20;
    let mut to = std::fs::File::create(file).context(|| file.display())?;
    let (operation, mut at) = (client.operation(), 0);
    while at < info.version.size {
        let end = (at + PIECE).min(info.version.size);
        let bytes = client.read(operation, &info.version, at..end).await?;
        std::io::Write::write_all(&mut to, &bytes).context(|| file.display())?;
        bar.inc(end - at);
        at = end;
    }
    Ok(())
}

fn print(args: &ShardCreateArgs, shards: &Shards, manifest: u64, read: u64) -> Outcome {
    let all = &shards.dataset().shards;
    let records: u64 = all.iter().map(|shard| shard.records).sum();
    let input_bytes: u64 = all.iter().map(|shard| shard.input_bytes).sum();
    let bytes: u64 = all.iter().map(DatasetShard::bytes).sum();
    tell_of_repeated(read, records);
    let record = json!({
        "dataset": args.dataset.to_string(),
        "manifest": manifest,
        "shards": all.len(),
        "read": read,
        "records": records,
        "input_bytes": input_bytes,
        "bytes": bytes,
    });
    show(args.json, &record, |output| {
        let (dataset, shards, bytes, input) = (&args.dataset, all.len(), format_bytes(bytes), format_bytes(input_bytes));
        output.line(&format!("{dataset}: {records} records in {shards} shards, {bytes} in shared storage for {input} of input"))
    })
}
