//! From the arguments of `cp` to the files to copy, each with its target, before anything is written.

use std::fs;
use std::path::Path;

use forebay_client::{Client, NodeItem};
use forebay_types::{Error, ForebayPath, Key, ResultExt};

use super::place::Place;
use crate::exit::{Failure, Outcome};
use crate::tree::{Tree, beside, unopened};

/// One file to copy.
pub(crate) struct Job {
    pub(crate) from: Place,
    pub(crate) to: Place,
    /// Size, where it is known before.
    pub(crate) bytes: Option<u64>,
}

/// The files to copy, each with its target. Nothing is written yet.
pub(crate) async fn plan(client: &Client, sources: &[Place], target: &Place, recursive: bool) -> Outcome<Vec<Job>> {
    let into_folder = target.is_folder_by_name();
    if sources.len() > 1 && !into_folder && *target != Place::Standard {
        return Err(Failure::Usage(format!("{target} must be a folder to take several copies: end it with /")));
    }
    let mut jobs = Vec::new();
    for source in sources {
        match source {
            Place::Standard => {
                jobs.push(Job { from: source.clone(), to: target.clone(), bytes: None });
            }
            Place::Mounted(path) if !recursive => {
                let info = match client.open(path).await {
                    Ok(info) => info,
                    Err(error) => {
                        return Err(unopened(client, path, error, |folder, _| {
                            Failure::Usage(format!("{folder} is a folder: copy it with -r"))
                        })
                        .await);
                    }
                };
                let to = one(source, target, into_folder)?;
                jobs.push(Job { from: source.clone(), to, bytes: Some(info.version.size) });
            }
            Place::Mounted(path) => {
                let tree = Tree::of(client, path).await?;
                let prefix = tree.path(path);
                for info in tree.objects() {
                    let key = info.version.key.as_str();
                    let below = key.strip_prefix(prefix.key().as_str()).filter(|below| !below.is_empty());
                    let to = match below {
                        Some(below) => target.join(below)?,
                        None => one(source, target, into_folder)?,
                    };
                    jobs.push(Job { from: Place::Mounted(beside(path, &info.version.key)), to, bytes: Some(info.version.size) });
                }
            }
            Place::Temporary(path) => {
                let below = temporary(client, path, recursive).await?;
                for (key, bytes) in below {
                    let to = match key.as_str().strip_prefix(path.key().as_str()).filter(|below| !below.is_empty()) {
                        Some(below) => target.join(below.trim_start_matches('/'))?,
                        None => one(source, target, into_folder)?,
                    };
                    jobs.push(Job { from: Place::Temporary(beside(path, &key)), to, bytes: Some(bytes) });
                }
            }
            Place::Local(path) => local(source, path, target, recursive, into_folder, &mut jobs)?,
        }
    }
    if jobs.len() > 1 && *target == Place::Standard {
        return Err(Failure::Usage("several files can't be copied to the standard output: use `forebay cat`".to_string()));
    }
    Ok(jobs)
}

/// Where one file goes.
fn one(source: &Place, target: &Place, into_folder: bool) -> Outcome<Place> {
    if into_folder { target.join(&source.file_name()?) } else { Ok(target.clone()) }
}

/// What of temporary data is at or below a path, with its bytes.
async fn temporary(client: &Client, path: &ForebayPath, recursive: bool) -> Outcome<Vec<(Key, u64)>> {
    let (nodes, node) = (client.nodes(), path.to_string());
    let stat = nodes.stat(node.trim_end_matches('/')).await.map_err(Error::from)?;
    let stat = stat.ok_or_else(|| Error::not_found(format!("{node}: there is no such temporary data: see `forebay node ls`")))?;
    if !stat.kind.is_container() {
        return Ok(vec![(Key::new(path.key().as_str().trim_end_matches('/'))?, stat.bytes)]);
    }
    if !recursive {
        return Err(Failure::Usage(format!("{node} is a {}: copy it with -r", stat.kind)));
    }
    let mut walk = nodes.walk(true, path.as_folder()?.key().as_str(), None).await.map_err(Error::from)?;
    let mut below = Vec::new();
    while let Some(item) = walk.next().await.map_err(Error::from)? {
        if let NodeItem::Object(key, bytes) = item {
            below.push((Key::new(key)?, bytes));
        }
    }
    Ok(below)
}

fn local(source: &Place, path: &Path, target: &Place, recursive: bool, into_folder: bool, jobs: &mut Vec<Job>) -> Outcome {
    let metadata = fs::metadata(path).context(|| match path.starts_with("/tmp") {
        true => format!("{} of this machine (temporary data is forebay:/{} here)", path.display(), path.display()),
        false => path.display().to_string(),
    })?;
    if !metadata.is_dir() {
        let to = one(source, target, into_folder)?;
        jobs.push(Job { from: source.clone(), to, bytes: Some(metadata.len()) });
        return Ok(());
    }
    if !recursive {
        return Err(Failure::Usage(format!("{} is a folder: copy it with -r", path.display())));
    }
    let mut folders = vec![(path.to_path_buf(), String::new())];
    while let Some((folder, below)) = folders.pop() {
        let mut entries =
            fs::read_dir(&folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>()).context(|| folder.display())?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| {
                Error::invalid(format!("{}: the name is not UTF-8, which keys are: rename it first", path.display()))
            })?;
            let below = if below.is_empty() { name } else { format!("{below}/{name}") };
            let metadata = fs::metadata(&path).context(|| path.display())?;
            if metadata.is_dir() {
                folders.push((path, below));
            } else {
                jobs.push(Job { to: target.join(&below)?, from: Place::Local(path), bytes: Some(metadata.len()) });
            }
        }
    }
    Ok(())
}
