//! Which folders are data folders: none of them is shared storage, as whoever may read a mount would read the secrets in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::{has_role, is_of_role};
use crate::owner::has_secret;
use crate::taken::all_taken;

/// Files of a tier, which has bytes of all mounts.
const TIER: [&str; 2] = ["disk.tier", "disk.sums"];

/// A data folder that a folder is, or lies in, whoever has it; or one of this process that lies in the folder. Links and `..` are followed.
pub fn data_folder_at(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    let around = folder.ancestors().find(|around| is_data_folder(around));
    around.map(Path::to_path_buf).or_else(|| all_taken().iter().find(|taken| taken.starts_with(&folder)).cloned())
}

/// Whether a folder is one, whoever has it. So is a folder of a tier on a disk of its own.
pub fn is_data_folder(folder: &Path) -> bool {
    has_data(|name| is_file(&folder.join(name)))
}

/// Whether a folder would be one with a file of this name: whoever writes that would have everything in it out of reach.
pub fn makes_data_folder(folder: &Path, name: &str) -> bool {
    is_mark(name) && has_data(|mark| mark == name || is_file(&folder.join(mark)))
}

/// Whether files of this name tell of a data folder, alone or beside others.
pub fn is_mark(name: &str) -> bool {
    has_secret(|file| file == name) || is_of_role(name) || TIER.contains(&name)
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| !found.is_dir())
}

/// The same of a folder that `has` files of these names.
pub fn has_data(has: impl Fn(&str) -> bool) -> bool {
    has_secret(&has) || has_role(&has) || TIER.iter().all(|name| has(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{DataFolder, owner_secret};

    #[test]
    fn a_folder_is_told_from_one_that_is_lies_in_or_holds_a_data_folder() {
        let place = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(place.path()).unwrap();
        let (data, lake) = (real.join("up/data"), real.join("lake"));
        for folder in [data.join("sub/deeper"), lake.clone()] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(data.join("sub"), real.join("link")).unwrap();
        let inside = [data.clone(), data.join("sub/deeper"), real.join("link"), real.join("lake/../up/data/sub")];
        for folder in &inside {
            assert_eq!(data_folder_at(folder), None, "{}", folder.display());
        }
        let taken = DataFolder::take(&real.join("up/../up/data"), &["worker"]).unwrap();
        for folder in inside.iter().chain([&real, &real.join("up")]) {
            assert_eq!(data_folder_at(folder).as_ref(), Some(&data), "{}", folder.display());
        }
        assert_eq!(data_folder_at(&lake), None);
        drop(taken);
        assert_eq!(data_folder_at(&real), None, "it is another process's now, if it is one's");
        assert_eq!(data_folder_at(&data.join("sub")), Some(data), "by the files in it");
    }

    #[test]
    fn a_folder_with_an_owner_s_secret_is_a_data_folder() {
        let place = tempfile::tempdir().unwrap();
        let data = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(data.join("lake")).unwrap();
        // A name that any folder may have.
        fs::write(data.join("format"), "1\n").unwrap();
        assert_eq!(data_folder_at(&data.join("lake")), None);
        owner_secret(&data, || Ok("a secret of nobody else".into())).unwrap();
        assert_eq!(data_folder_at(&data.join("lake")), Some(data));
    }

    #[test]
    fn a_folder_of_a_tier_on_another_disk_is_one() {
        let place = tempfile::tempdir().unwrap();
        let tier = fs::canonicalize(place.path()).unwrap();
        fs::create_dir(tier.join("lake")).unwrap();
        fs::write(tier.join("disk.tier"), "").unwrap();
        assert_eq!(data_folder_at(&tier.join("lake")), None);
        fs::write(tier.join("disk.sums"), "").unwrap();
        assert_eq!(data_folder_at(&tier.join("lake")), Some(tier));
    }

    #[test]
    fn a_file_that_makes_a_folder_one_is_known_by_its_name_and_those_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let makes = |name: &str| makes_data_folder(place.path(), name);
        assert!(makes("owner.secret"));
        for (one, other) in [("format", "executor.lock"), ("coordinator.lock", "format"), ("disk.sums", "disk.tier")] {
            assert!(!makes(one) && !makes(other), "{one} alone");
            fs::write(place.path().join(one), "").unwrap();
            assert!(!makes(one) && makes(other), "{other} beside {one}");
            assert!(!makes("a.parquet") && !is_data_folder(place.path()));
            fs::remove_file(place.path().join(one)).unwrap();
        }
        // A folder of that name is no secret.
        fs::create_dir(place.path().join("owner.secret")).unwrap();
        assert!(!is_data_folder(place.path()));
    }
}
