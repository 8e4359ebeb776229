//! A walk through containers: files and values in the order of their keys, as listings of objects have them.

use std::collections::{BTreeSet, VecDeque};

use forebay_nodes::{NodeErrorKind, NodeResult};

use crate::nodes::{NodeEntry, Nodes};

/// Nodes asked for at once.
const NODES_MAX: u32 = 1000;

/// What a walk comes by.
pub enum NodeItem {
    /// A key, and its bytes.
    Object(String, u64),
    /// A container's key, with the slash at its end.
    Folder(String),
}

/// A walk through containers and what is in them, in byte order of keys: what stands behind `/tmp/` in a path. It shows what listings show.
pub struct NodeWalk {
    nodes: Nodes,
    /// Goes into containers rather than to name them.
    flat: bool,
    prefix: String,
    /// Only keys behind this one. A level goes on behind a name, and what stands behind `a` there may come before `a/`.
    after: String,
    /// A container that is not gone into.
    passed_over: Option<String>,
    levels: Vec<Level>,
}

/// One container, and how far its listing has come.
struct Level {
    /// What its keys begin with: empty, or its path with a slash.
    key: String,
    after: Option<String>,
    page: VecDeque<NodeEntry>,
    last: bool,
    /// Containers, with their slash, whose turn comes later: names are listed in the order of names, and `a.b` stands behind
    /// `a` there but before `a/` among keys.
    held: BTreeSet<String>,
}

impl Nodes {
    /// A walk through all files and values whose keys begin with a prefix, behind a key; one that is not `flat` shows containers as folders
    /// rather than going into them.
    pub async fn walk(&self, flat: bool, prefix: &str, after: Option<&str>) -> NodeResult<NodeWalk> {
        NodeWalk::begin(self.clone(), flat, prefix, after).await
    }
}

impl Level {
    fn new(key: String) -> Self {
        Self { key, after: None, page: VecDeque::new(), last: false, held: BTreeSet::new() }
    }

    fn path(&self) -> String {
        format!("/tmp/{}", self.key).trim_end_matches('/').to_string()
    }
}

impl NodeWalk {
    async fn begin(nodes: Nodes, flat: bool, prefix: &str, after: Option<&str>) -> NodeResult<Self> {
        let (whole, levels) = (prefix.to_string(), Vec::new());
        let mut walk = Self { nodes, flat, prefix: whole, after: String::new(), passed_over: None, levels };
        let base = prefix.rfind('/').map_or("", |at| &prefix[..=at]);
        // Names like `a//b` are no node's.
        if base.starts_with('/') || base.contains("//") {
            return Ok(walk);
        }
        let from = match after {
            Some(after) if after > prefix => match after.starts_with(prefix) {
                true => after,
                false => return Ok(walk),
            },
            _ => "",
        };
        // What begins with the prefix stands behind it, but for the entry of that very name.
        walk.after = after.filter(|after| *after == prefix).unwrap_or(from).to_string();
        let mut level = Level::new(base.to_string());
        if from.is_empty() {
            // From the prefix on, with the node of that very name.
            let start = &prefix[base.len()..];
            if !start.is_empty() {
                walk.hold(&mut level, start).await?;
                if let Some(entry) = walk.look(&level, start).await? {
                    level.page.push_back(entry);
                }
                level.after = Some(start.to_string());
            }
            walk.levels.push(level);
            return Ok(walk);
        }
        let mut rest = &from[base.len()..];
        loop {
            let (name, below) = if let Some((name, below)) = rest.split_once('/') { (name, Some(below)) } else { (rest, None) };
            for at in name.char_indices().map(|(at, _)| at).skip(1) {
                // A container whose name this one begins with may stand behind it.
                if name.as_bytes()[at] < b'/' {
                    walk.hold(&mut level, &name[..at]).await?;
                }
            }
            level.after = Some(name.to_string());
            let inner = format!("{}{name}/", level.key);
            match below {
                None => {
                    walk.hold(&mut level, name).await?;
                    walk.levels.push(level);
                    return Ok(walk);
                }
                Some(below) if walk.flat => {
                    walk.levels.push(level);
                    level = Level::new(inner);
                    if below.is_empty() {
                        walk.levels.push(level);
                        return Ok(walk);
                    }
                    rest = below;
                }
                // A key within a folder that is shown as one is behind all of it.
                Some(_) => {
                    walk.levels.push(level);
                    return Ok(walk);
                }
            }
        }
    }

    /// The same without a container of this key and what is in it.
    #[must_use]
    pub fn passing_over(mut self, key: &str) -> Self {
        let folder = format!("{key}/");
        // It may have begun behind a key in there.
        self.levels.retain(|level| !level.key.starts_with(&folder));
        for level in &mut self.levels {
            level.held.retain(|name| format!("{}{name}", level.key) != folder);
        }
        self.passed_over = Some(key.to_string());
        self
    }

    /// The next one; none at the end.
    pub async fn next(&mut self) -> NodeResult<Option<NodeItem>> {
        let (prefix, after) = (&self.prefix, &self.after);
        let shows = |key: &str| key.starts_with(prefix) && key > after.as_str();
        while let Some(level) = self.levels.last_mut() {
            if level.page.is_empty() && !level.last {
                match self.nodes.list(&level.path(), level.after.as_deref(), NODES_MAX).await {
                    Ok((page, last)) => {
                        level.after = page.last().map(|entry| entry.name.clone()).or(level.after.take());
                        (level.page, level.last) = (page.into(), last);
                    }
                    // Not there, or no more.
                    Err(error) if matches!(error.kind, NodeErrorKind::NotFound | NodeErrorKind::NotContainer) => {
                        level.last = true;
                    }
                    Err(error) => return Err(error),
                }
            }
            let turn = |held: &String| level.page.front().is_none_or(|entry| *held < entry.name);
            if let Some(name) = level.held.first().filter(|held| turn(held)).cloned() {
                level.held.remove(&name);
                let key = format!("{}{name}", level.key);
                if !shows(&key) {
                    continue;
                }
                if !self.flat {
                    return Ok(Some(NodeItem::Folder(key)));
                }
                self.levels.push(Level::new(key));
                continue;
            }
            let Some(entry) = level.page.pop_front() else {
                if level.last {
                    self.levels.pop();
                }
                continue;
            };
            let key = format!("{}{}", level.key, entry.name);
            if entry.kind.is_container() && self.passed_over.as_ref() == Some(&key) {
                continue;
            }
            if entry.kind.is_container() {
                level.held.insert(format!("{}/", entry.name));
            } else if shows(&key) {
                return Ok(Some(NodeItem::Object(key, entry.bytes)));
            }
            if key.as_str() > prefix.as_str() && !key.starts_with(prefix) {
                // All others come behind the prefix too.
                level.page.clear();
                level.last = true;
            }
        }
        Ok(None)
    }

    /// Remembers a container of this name, if there is one that listings show.
    async fn hold(&self, level: &mut Level, name: &str) -> NodeResult<()> {
        if self.look(level, name).await?.is_some_and(|entry| entry.kind.is_container()) {
            level.held.insert(format!("{name}/"));
        }
        Ok(())
    }

    async fn look(&self, level: &Level, name: &str) -> NodeResult<Option<NodeEntry>> {
        let stat = self.nodes.stat(&format!("{}/{name}", level.path())).await?.filter(|stat| stat.enumerable);
        Ok(stat.map(|stat| NodeEntry { name: name.to_string(), kind: stat.kind, bytes: stat.bytes }))
    }
}
