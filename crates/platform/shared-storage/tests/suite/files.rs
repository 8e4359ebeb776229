//! Directories.

use std::os::unix::fs::symlink;

use forebay_shared_storage::{Class, Get, GetRange, PutCondition};
use forebay_types::{ErrorKind, MountOptions};

use crate::conformance::conformance;
use crate::lab::{Lab, get, key, open, patient, pattern, put};

conformance!(Lab::files());

#[tokio::test]
async fn a_file_that_is_rewritten_in_place_with_its_time_put_back_is_another_version() {
    let lab = Lab::files();
    let path = lab.folder().join("a");
    std::fs::write(&path, "old bytes").unwrap();
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let before = lab.storage.head(&key("a")).await.unwrap();
    // Past the granularity of the file system's clock.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    std::fs::write(&path, "new bytes").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    let after = lab.storage.head(&key("a")).await.unwrap();
    assert_eq!((before.modified_ms, before.version.size), (after.modified_ms, after.version.size));
    assert_ne!(before.version.tag, after.version.tag);
    let get = Get { key: &key("a"), range: GetRange::All, if_match: Some(&before.version.tag), class: Class::Demand };
    assert_eq!(lab.storage.get(get).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn links_that_leave_the_mount_are_refused() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "hush").unwrap();
    let lab = Lab::files();
    put(&lab.storage, "in/side", "fine").await;
    symlink(outside.path().join("secret"), lab.folder().join("file")).unwrap();
    symlink(outside.path(), lab.folder().join("folder")).unwrap();
    symlink("../../../../../../../../etc", lab.folder().join("in/etc")).unwrap();
    symlink("in/side", lab.folder().join("good")).unwrap();
    symlink("loop", lab.folder().join("loop")).unwrap();
    for escape in ["file", "folder/secret", "in/etc/passwd", "loop"] {
        let error = get(&lab.storage, escape, GetRange::All).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{escape}: {error}");
        assert_eq!(lab.storage.head(&key(escape)).await.unwrap_err().kind(), ErrorKind::Denied, "{escape}");
    }
    let write = lab.storage.put(&key("folder/new"), vec!["x".into()], PutCondition::Any).await.unwrap_err();
    assert_eq!(write.kind(), ErrorKind::Denied, "{write}");
    assert_eq!(lab.storage.delete(&key("folder/secret")).await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(lab.storage.list(&key("folder/"), false, None, 10).await.unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"hush");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(get(&lab.storage, "good", GetRange::All).await.unwrap(), "fine");
    let listed = lab.storage.list(&key(""), false, None, 10).await.unwrap();
    assert_eq!(listed.objects.iter().map(|object| object.version.key.as_str()).collect::<Vec<_>>(), ["good", "in/side"]);
    // Writing over a link replaces the link, not what it points to.
    put(&lab.storage, "file", "mine").await;
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"hush");
}

#[tokio::test]
async fn keys_that_no_file_can_have_are_refused() {
    let lab = Lab::files();
    put(&lab.storage, "a/b", "x").await;
    for odd in ["a//b", "a/b/", "/a/b", "a/"] {
        assert_eq!(get(&lab.storage, odd, GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound, "{odd}");
        let error = lab.storage.put(&key(odd), vec![], PutCondition::Any).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{odd}: {error}");
    }
    let below_file = lab.storage.put(&key("a/b/c"), vec![], PutCondition::Any).await.unwrap_err();
    assert!(below_file.kind() == ErrorKind::Invalid && below_file.message().contains("a file already"), "{below_file}");
    assert_eq!(get(&lab.storage, "a/b/c", GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(get(&lab.storage, "a", GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    let long = "n".repeat(300);
    let error = lab.storage.put(&key(&long), vec![], PutCondition::Any).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains("too long"), "{error}");
}

#[tokio::test]
async fn unfinished_writes_are_not_seen() {
    let lab = Lab::files();
    let upload = lab.storage.begin_upload(&key("x")).await.unwrap();
    upload.put_part(0, vec!["half".into()]).await.unwrap();
    let hidden = || std::fs::read_dir(lab.folder().join(".forebay-tmp")).unwrap();
    assert_eq!(hidden().count(), 1);
    let name = format!(".forebay-tmp/{}", hidden().next().unwrap().unwrap().file_name().display());
    assert!(lab.storage.list(&key(""), false, None, 10).await.unwrap().objects.is_empty());
    assert!(lab.storage.list(&key(".forebay-tmp/"), false, None, 10).await.unwrap().objects.is_empty());
    assert_eq!(get(&lab.storage, &name, GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
    upload.abort().await.unwrap();
    assert_eq!(hidden().count(), 0);
    drop(lab.storage.begin_upload(&key("x")).await.unwrap());
    assert_eq!(hidden().count(), 0);
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_conflicts() {
    let lab = Lab::files();
    put(&lab.storage, "x", pattern(8 << 20)).await;
    let object = key("x");
    let mut body =
        lab.storage.get(Get { key: &object, range: GetRange::All, if_match: None, class: Class::Demand }).await.unwrap();
    body.next().await.unwrap().unwrap();
    let file = std::fs::File::options().write(true).open(lab.folder().join("x")).unwrap();
    file.set_len(1 << 20).unwrap();
    let error = body.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_file_that_is_replaced_while_it_is_read_stays_what_it_was() {
    let lab = Lab::files();
    let data = pattern(4 << 20);
    put(&lab.storage, "x", data.clone()).await;
    let object = key("x");
    let body = lab.storage.get(Get { key: &object, range: GetRange::All, if_match: None, class: Class::Demand }).await.unwrap();
    put(&lab.storage, "x", "new").await;
    assert!(body.collect().await.unwrap() == data);
    assert_eq!(get(&lab.storage, "x", GetRange::All).await.unwrap(), "new");
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let storage = open("file:///no/such/folder", MountOptions::default(), patient());
    let error = storage.check().await.unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.message().contains("/no/such/folder"), "{error}");
    assert_eq!(get(&storage, "x", GetRange::All).await.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn pipes_are_no_objects() {
    let lab = Lab::files();
    let made = std::process::Command::new("mkfifo").arg(lab.folder().join("pipe")).status().unwrap();
    assert!(made.success());
    assert_eq!(get(&lab.storage, "pipe", GetRange::All).await.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(lab.storage.list(&key(""), false, None, 10).await.unwrap().objects.is_empty());
}

#[tokio::test]
async fn empty_folders_are_no_keys() {
    let lab = Lab::files();
    std::fs::create_dir_all(lab.folder().join("a/b/c")).unwrap();
    put(&lab.storage, "d/e", "x").await;
    let listed = lab.storage.list(&key(""), true, None, 10).await.unwrap();
    assert_eq!((listed.objects.len(), &listed.folders[..]), (0, &[key("d/")][..]));
}

#[tokio::test]
async fn a_folder_is_removed_with_the_folders_in_it_and_no_file() {
    let lab = Lab::files();
    let place = |path: &str| lab.folder().join(path);
    for folder in ["a/b/c", "a/d", "e/f"] {
        std::fs::create_dir_all(place(folder)).unwrap();
    }
    symlink(place("a"), place("e/link")).unwrap();
    put(&lab.storage, "e/g/h", "x").await;
    for folder in ["a/", "e/", "none/", "e/g/h/", ".forebay-tmp/", "/", "e//"] {
        lab.storage.delete(&key(folder)).await.unwrap();
    }
    assert!(!place("a").exists() && !place("e/f").exists(), "nothing was in them");
    assert_eq!(get(&lab.storage, "e/g/h", GetRange::All).await.unwrap(), "x");
    assert!(place("e/link").is_symlink() && place(".forebay-tmp").exists());
}

#[tokio::test]
async fn a_write_whose_folders_are_removed_while_they_are_empty_makes_them_again() {
    let lab = Lab::files();
    for number in 0..20 {
        let path = format!("{number}/b/c/d");
        let (object, top) = (key(&path), key(&format!("{number}/")));
        let removed = async {
            for _ in 0..10 {
                lab.storage.delete(&top).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(lab.storage.put(&object, vec!["x".into()], PutCondition::Any), removed);
        match written {
            Ok(_) => assert_eq!(get(&lab.storage, &path, GetRange::All).await.unwrap(), "x"),
            // Each time that it tried.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Retry, "{error}"),
        }
    }
}

#[tokio::test]
async fn a_file_that_is_larger_than_any_object_is_refused_by_name() {
    // Only a file system in memory takes such a length.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = std::fs::File::create(folder.path().join("huge")).unwrap();
    std::fs::write(folder.path().join("small"), b"small").unwrap();
    let storage = open(&format!("file://{}", folder.path().display()), MountOptions::default(), patient());
    for size in [200_000_000_000_000_000, 300_000_000_000_000_000] {
        file.set_len(size).unwrap();
        let stat = storage.head(&key("huge")).await.unwrap_err();
        assert_eq!(stat.kind(), ErrorKind::Invalid);
        assert!(stat.message().contains("/huge") && stat.message().contains("too large"), "{stat}");
        let read = get(&storage, "huge", GetRange::Bounded(0..10)).await.err().unwrap();
        assert_eq!(read.kind(), ErrorKind::Invalid, "{read}");
        let listed = storage.list(&key(""), false, None, 10).await.unwrap();
        assert_eq!(listed.objects.len(), 2, "others are listed as before");
    }
}

#[tokio::test]
async fn drafts_of_writers_that_were_killed_are_taken_away() {
    let lab = Lab::files();
    put(&lab.storage, "first", "x").await;
    let hidden = std::fs::read_dir(lab.folder()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let draft = |name: &str, days: u64| {
        let path = hidden.join(name);
        std::fs::write(&path, "half").unwrap();
        let written = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        path
    };
    let (old, young, other) = (draft("1f-0-00ff", 2), draft("1f-1-00ff", 0), draft("lock", 2));
    let again = open(&format!("file://{}", lab.folder().display()), MountOptions::default(), patient());
    put(&again, "second", "x").await;
    assert_eq!((old.exists(), young.exists(), other.exists()), (false, true, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_somebody_holds_does_not_hold_writers_for_ever() {
    let lab = Lab::files();
    let there = put(&lab.storage, "a", "old").await;
    let hidden = std::fs::read_dir(lab.folder()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let lock = std::fs::File::create(hidden.join("lock")).unwrap();
    lock.lock().unwrap();
    let began = std::time::Instant::now();
    let write = lab.storage.put(&key("a"), vec!["new".into()], PutCondition::Version(there.version.tag)).await;
    assert_eq!(write.unwrap_err().kind(), ErrorKind::Retry);
    assert!(began.elapsed() < std::time::Duration::from_secs(15));
    assert_eq!(get(&lab.storage, "a", GetRange::All).await.unwrap(), "old");
}

#[tokio::test]
async fn a_folder_of_forebay_s_own_data_is_not_read() {
    let place = tempfile::tempdir().unwrap();
    let (data, lake) = (place.path().join("data"), place.path().join("lake"));
    for folder in [data.join("sub"), lake.clone()] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for file in [data.join("owner.secret"), data.join("sub/a"), lake.join("a")] {
        std::fs::write(file, "hush").unwrap();
    }
    symlink(data.join("sub"), place.path().join("link")).unwrap();
    let mount = |path: &str| open(&format!("file://{}/{path}", place.path().display()), MountOptions::default(), patient());
    for path in ["data", "data/sub", "link"] {
        let storage = mount(path);
        for error in [storage.check().await.unwrap_err(), storage.head(&key("a")).await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{path}: {error}");
            assert!(error.message().contains("are not apart"), "{path}: {error}");
        }
    }
    let storage = mount("lake");
    assert_eq!(get(&storage, "a", GetRange::All).await.unwrap(), "hush");
    // Another folder has its name meanwhile.
    std::fs::rename(&lake, place.path().join("before")).unwrap();
    symlink(data.join("sub"), &lake).unwrap();
    assert_eq!(get(&storage, "a", GetRange::All).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_data_folder_below_a_mount_is_not_reached() {
    let lab = Lab::files();
    let place = |path: &str| lab.folder().join(path);
    let marked = [
        ("one", &["owner.secret"][..]),
        ("lake/two", &["format", "worker.lock"][..]),
        ("lake/disk", &["disk.tier", "disk.sums"][..]),
    ];
    for (folder, marks) in marked {
        std::fs::create_dir_all(place(&format!("{folder}/tiers/empty"))).unwrap();
        for file in marks.iter().chain(&["tiers/a"]) {
            std::fs::write(place(&format!("{folder}/{file}")), "hush").unwrap();
        }
    }
    for (target, link) in [("one/owner.secret", "file"), ("lake/two/tiers", "folder")] {
        symlink(target, place(link)).unwrap();
    }
    for there in ["lake/a", "lake/format"] {
        put(&lab.storage, there, "fine").await;
        assert_eq!(get(&lab.storage, there, GetRange::All).await.unwrap(), "fine");
    }
    for within in
        ["one/owner.secret", "one/tiers/a", "lake/two/format", "lake/two/tiers/a", "lake/disk/disk.tier", "file", "folder/a"]
    {
        let read = [get(&lab.storage, within, GetRange::All).await.err(), lab.storage.head(&key(within)).await.err()];
        for error in read.map(Option::unwrap) {
            assert!(error.kind() == ErrorKind::Denied && error.message().contains("the data folder "), "{within}: {error}");
        }
    }
    for new in ["one/new", "one/new/deep/er", "lake/two/tiers/a", "folder/new"] {
        let error = lab.storage.put(&key(new), vec!["x".into()], PutCondition::Any).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{new}: {error}");
    }
    for within in ["one/owner.secret", "lake/two/tiers/a", "folder/a", "one/tiers/empty/"] {
        assert_eq!(lab.storage.delete(&key(within)).await.unwrap_err().kind(), ErrorKind::Denied, "{within}");
    }
    for around in ["one/", "lake/"] {
        lab.storage.delete(&key(around)).await.unwrap();
    }
    assert!(place("one/tiers/empty").exists() && place("lake/two/tiers/empty").exists() && !place("one/new").exists());
    for within in ["one/", "lake/two/tiers/", "folder/"] {
        assert_eq!(lab.storage.list(&key(within), false, None, 10).await.unwrap_err().kind(), ErrorKind::Denied, "{within}");
    }
    let listed = lab.storage.list(&key(""), false, None, 10).await.unwrap();
    let keys: Vec<_> = listed.objects.iter().map(|object| object.version.key.as_str()).collect();
    assert_eq!(keys, ["lake/a", "lake/format"]);
    let listed = lab.storage.list(&key(""), true, None, 10).await.unwrap();
    assert_eq!((listed.objects.len(), &listed.folders[..]), (0, &[key("lake/")][..]));
}

#[tokio::test]
async fn no_write_makes_a_folder_pass_for_a_data_folder() {
    let lab = Lab::files();
    for there in ["a", "lake/format", "lake/disk.sums", "lake/sub.lock"] {
        put(&lab.storage, there, "fine").await;
    }
    for new in ["owner.secret", "lake/owner.secret", "lake/worker.lock", "lake/disk.tier"] {
        let error = lab.storage.put(&key(new), vec!["x".into()], PutCondition::Any).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.message().contains("choose another name"), "{new}: {error}");
    }
    put(&lab.storage, "lake/format", "again").await;
    assert_eq!(get(&lab.storage, "lake/format", GetRange::All).await.unwrap(), "again");
    assert_eq!(lab.storage.list(&key(""), false, None, 10).await.unwrap().objects.len(), 4);
}
