//! `forebay ls`: mounts, or objects and folders below a path, page by page as they are listed.

use forebay_client::Client;
use forebay_types::{ForebayPath, Key, ObjectInfo, format_bytes};
use futures::StreamExt;
use serde::Serialize;

use crate::cli::LsArgs;
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::tree::{beside, missing, nothing};

#[derive(Serialize)]
struct Entry<'a> {
    path: &'a str,
    folder: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
}

pub(crate) async fn run(client: &Client, args: LsArgs) -> Outcome {
    let Some(path) = args.path.as_deref().filter(|path| *path != "/") else { return super::mount::list(client, args.json) };
    let path: ForebayPath = path.parse().map_err(|error: forebay_types::Error| Failure::Usage(error.to_string()))?;
    let mut output = Output::new(args.json);
    let mut listed = list(client, &path.as_folder()?, &args, &mut output).await?;
    if listed == 0 && !path.is_folder() {
        let info = client.open(&path).await.map_err(|error| missing(client, &path, error))?;
        object(&mut output, &path, &path.to_string(), &info, args.long)?;
        listed = 1;
    }
    if listed == 0 && !path.key().as_str().is_empty() { Err(nothing(&path).into()) } else { output.finish() }
}

/// Prints page by page as they come, so that a large folder shows at once and takes no memory.
async fn list(client: &Client, folder: &ForebayPath, args: &LsArgs, output: &mut Output) -> Outcome<usize> {
    let mut pages = client.list(folder, !args.recursive).await?;
    let mut listed = 0;
    while let Some(page) = pages.next().await {
        let page = page?;
        listed += page.objects.len() + page.folders.len();
        let mut objects = page.objects.iter().peekable();
        // Both come in byte order: they are merged, as `ls` would show them.
        for prefix in &page.folders {
            while let Some(info) = objects.next_if(|info| info.version.key < *prefix) {
                object(output, &beside(folder, &info.version.key), name(folder, &info.version.key), info, args.long)?;
            }
            subfolder(output, &beside(folder, prefix), name(folder, prefix), args.long)?;
        }
        for info in objects {
            object(output, &beside(folder, &info.version.key), name(folder, &info.version.key), info, args.long)?;
        }
    }
    Ok(listed)
}

/// The key as it is shown: without the folder that is listed.
fn name<'a>(folder: &ForebayPath, key: &'a Key) -> &'a str {
    match key.as_str().strip_prefix(folder.key().as_str()) {
        Some("") | None => key.as_str(),
        Some(name) => name,
    }
}

fn object(output: &mut Output, path: &ForebayPath, name: &str, info: &ObjectInfo, long: bool) -> Outcome {
    let modified = time(info.modified_ms);
    if output.json {
        return output.record(&Entry {
            path: &path.to_string(),
            folder: false,
            bytes: Some(info.version.size),
            modified: Some(&modified),
            version: Some(info.version.tag.as_str()),
        });
    }
    if long { output.name(&format!("{:>10}  {modified}  {name}", format_bytes(info.version.size))) } else { output.name(name) }
}

fn subfolder(output: &mut Output, path: &ForebayPath, name: &str, long: bool) -> Outcome {
    if output.json {
        return output.record(&Entry { path: &path.to_string(), folder: true, bytes: None, modified: None, version: None });
    }
    if long { output.name(&format!("{:>10}  {:20}  {name}", "-", "")) } else { output.name(name) }
}

/// Milliseconds since the epoch as a time in UTC.
pub(crate) fn time(ms: i64) -> String {
    match chrono::DateTime::from_timestamp_millis(ms) {
        Some(time) => time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        None => ms.to_string(),
    }
}
