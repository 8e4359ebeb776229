//! What the rules read of Cargo.toml: the workspace's rows and rings, a crate's name and what it depends on.

/// A member of the workspace's list.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The crate's folder, from the root.
    pub(crate) folder: String,
    /// The ring that the list names above it: `0`, `1`, `2a`, `2b`, `3`, or nothing beside the rings.
    pub(crate) ring: String,
}

/// The members of the list, in their order, as many on a line as stand there. A comment `# ring N: ..` begins a ring, any other one ends it.
pub(crate) fn rows(workspace: &str) -> Vec<Row> {
    let mut ring = String::new();
    let mut rows = Vec::new();
    let list = workspace.lines().skip_while(|line| !line.starts_with("members"));
    for line in list.skip(1).map(str::trim).take_while(|line| !line.starts_with(']')) {
        if let Some(comment) = line.strip_prefix('#') {
            let named = comment.trim().strip_prefix("ring ").and_then(|rest| rest.split(':').next());
            ring = named.unwrap_or_default().to_owned();
        } else {
            let folders = line.split('"').skip(1).step_by(2);
            rows.extend(folders.map(|folder| Row { folder: folder.to_owned(), ring: ring.clone() }));
        }
    }
    rows
}

/// The name of a crate.
pub(crate) fn package_name(manifest: &str) -> Option<&str> {
    let value = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
    value.split('"').nth(1)
}

/// The dependencies that go into what is built, with their lines from 1; what only tests use may come from anywhere.
pub(crate) fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            inside = !section.ends_with("dev-dependencies") && section.ends_with("dependencies");
        } else if inside && line.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let end = line.find([' ', '.', '=']).unwrap_or(line.len());
            found.push((index + 1, &line[..end]));
        }
    }
    found
}
