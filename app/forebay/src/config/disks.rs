//! The setting of folders on other disks, each with what may be taken there.

use std::path::{Path, PathBuf};

use forebay_types::ByteSize;

use super::value::{Value, Written};

/// Folders with a size each, or none, separated by commas; in a file a list too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskFolders(pub(crate) Vec<(PathBuf, Option<ByteSize>)>);

impl Value for DiskFolders {
    const FORM: &'static str = "PATH[=SIZE],..";

    fn read(written: &Written, _: &Path) -> Result<Self, String> {
        written.list()?.map(folder).collect::<Result<Vec<_>, String>>().map(Self)
    }

    fn shown(&self) -> Option<String> {
        let one = |(folder, size): &(PathBuf, Option<ByteSize>)| match size {
            Some(size) => format!("{}={size}", folder.display()),
            None => folder.display().to_string(),
        };
        Some(self.0.iter().map(one).collect::<Vec<_>>().join(","))
    }
}

fn folder(text: &str) -> Result<(PathBuf, Option<ByteSize>), String> {
    let (path, size) = match text.rsplit_once('=') {
        Some((path, size)) => {
            let size = size.trim().parse::<ByteSize>();
            (path.trim(), Some(size.map_err(|error| format!("{text:?}: {}", error.message()))?))
        }
        None => (text, None),
    };
    if !Path::new(path).is_absolute() {
        return Err(format!("{path:?} is no whole path: write it as in /disk1/forebay=500GiB"));
    }
    Ok((PathBuf::from(path), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<DiskFolders, String> {
        DiskFolders::read(&Written::Text(text.to_string()), Path::new(""))
    }

    #[test]
    fn folders_have_a_size_or_none() {
        let wanted = DiskFolders(vec![("/a".into(), Some(ByteSize(500 << 30))), ("/b c".into(), None)]);
        assert_eq!(read("/a=500GiB, /b c,"), Ok(wanted.clone()));
        let list = Written::List(vec!["/a=500GiB".to_string(), "/b c".to_string()]);
        assert_eq!(DiskFolders::read(&list, Path::new("")), Ok(wanted.clone()));
        assert_eq!(read(&wanted.shown().unwrap()), Ok(wanted));
    }

    #[test]
    fn what_is_no_folder_or_no_size_is_told() {
        assert!(read("disk1=1GiB").unwrap_err().contains("\"disk1\" is no whole path"));
        assert!(read("/a=much").unwrap_err().contains("/a=much"));
        assert!(DiskFolders::read(&Written::Switch(true), Path::new("")).is_err());
    }
}
