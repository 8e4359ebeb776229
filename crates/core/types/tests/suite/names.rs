//! Keys, mount names, paths and rules: what is refused, and that the rest is read back as it was written.

use std::time::Duration;

use forebay_types::{ErrorKind, ForebayPath, Key, MountName, Validate, Young};
use proptest::prelude::*;

#[test]
fn keys_are_what_they_are() {
    for key in ["", "a", "a//b", "a/", "/a", " a ", "%20", "日本/ü", "a\nb", "..", "a/./b"] {
        assert_eq!(Key::new(key).unwrap().as_str(), key);
    }
    assert!(Key::new("x".repeat(1024)).is_ok());
    assert_eq!(Key::new("ü".repeat(513)).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(Key::new("a\0b").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn keys_from_messages_are_checked_too() {
    let bytes = |key: &str| postcard::to_stdvec(key).unwrap();
    assert_eq!(postcard::from_bytes::<Key>(&bytes("a//b")).unwrap().as_str(), "a//b");
    assert_eq!(postcard::to_stdvec(&Key::new("a//b").unwrap()).unwrap(), bytes("a//b"));
    assert!(postcard::from_bytes::<Key>(&bytes("a\0b")).is_err());
    assert!(postcard::from_bytes::<Key>(&bytes(&"x".repeat(1025))).is_err());
    assert!(postcard::from_bytes::<MountName>(&bytes("No")).is_err());
}

#[test]
fn dot_segments_are_whole_parts() {
    for (key, has) in [
        ("..", true),
        (".", true),
        ("a/../b", true),
        ("a/.", true),
        ("./a", true),
        ("...", false),
        ("a..b/.c", false),
        ("", false),
    ] {
        assert_eq!(Key::new(key).unwrap().has_dot_segment(), has, "{key}");
    }
}

#[test]
fn mount_names_are_bucket_names() {
    for name in ["lake", "a-b.c", "123", "x1y", &"a".repeat(63)] {
        assert_eq!(name.parse::<MountName>().unwrap().as_str(), name);
    }
    for name in ["", "ab", "Lake", "-ab", "ab-", ".ab", "a..b", "a_b", "a/b", "tmp", "192.168.0.1", "läke", &"a".repeat(64)] {
        assert_eq!(name.parse::<MountName>().unwrap_err().kind(), ErrorKind::Invalid, "{name}");
    }
}

#[test]
fn paths_begin_with_their_mount() {
    let path: ForebayPath = "/lake".parse().unwrap();
    assert_eq!((path.mount().as_str(), path.key().as_str()), ("lake", ""));
    for text in ["", "lake/x", "/", "//x", "/Lake/x", "/tmp/x"] {
        assert_eq!(text.parse::<ForebayPath>().unwrap_err().kind(), ErrorKind::Invalid, "{text}");
    }
}

#[test]
fn a_folder_is_a_mount_or_ends_with_a_slash() {
    for (text, is_folder, folder) in [("/lake", true, "/lake/"), ("/lake/a", false, "/lake/a/"), ("/lake/a/", true, "/lake/a/")] {
        let path: ForebayPath = text.parse().unwrap();
        assert_eq!((path.is_folder(), path.as_folder().unwrap().to_string().as_str()), (is_folder, folder), "{text}");
    }
    let longest: ForebayPath = format!("/lake/{}", "a".repeat(Key::BYTES_MAX)).parse().unwrap();
    assert_eq!(longest.as_folder().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn rules_are_read_back_as_written() {
    for text in ["always", "immutable", "ttl:60s", "ttl:250ms", "ttl:2h"] {
        assert_eq!(text.parse::<Validate>().unwrap().to_string(), text);
    }
    assert_eq!("sometimes".parse::<Validate>().unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!("ttl:60".parse::<Validate>().unwrap_err().kind(), ErrorKind::Invalid);
    let ttl = Validate::Ttl(Duration::from_secs(60));
    assert_eq!(Validate::default(), ttl);
    assert!(ttl.accepts(Duration::from_millis(59_999)) && !ttl.accepts(Duration::from_secs(60)));
    assert!(!Validate::Always.accepts(Duration::ZERO) && Validate::Immutable.accepts(Duration::MAX));
    let young: Young = "2 for 7d".parse().unwrap();
    assert_eq!(young, Young { replicas: 2, lasts: Duration::from_secs(7 * 86_400) });
    assert_eq!(young.to_string().parse::<Young>().unwrap(), young);
    for wrong in ["", "2", "0 for 7d", "101 for 7d", "2 for 7", "2 for ever", "two for 7d", "2for7d"] {
        assert_eq!(wrong.parse::<Young>().unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
    }
}

proptest! {
    #[test]
    fn paths_are_read_back_as_written(mount in "[a-z][a-z0-9-]{1,20}[a-z]", key in "[^\\x00]{0,60}") {
        prop_assume!(mount != "tmp");
        let text = format!("/{mount}/{key}");
        let path: ForebayPath = text.parse().unwrap();
        prop_assert_eq!(path.mount().as_str(), mount);
        prop_assert_eq!(path.key().as_str(), key);
        prop_assert_eq!(path.to_string(), text);
    }
}
