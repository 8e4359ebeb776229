//! Changes of the catalogue: refused early and with the reason, seen by nobody before they are written.

use forebay_protocol::{Pin, TableDefinition};
use forebay_types::{ByteSize, ErrorKind, Key, MountName};

use forebay_protocol::AdminRequest;

use super::*;
use crate::decide::{Change, Stored};

fn name(name: &str) -> MountName {
    name.parse().unwrap()
}

fn add(name: &str, url: &str, options: MountOptions) -> AdminRequest {
    AdminRequest::MountAdd { name: name.parse().unwrap(), url: url.into(), options }
}

fn refused(request: impl Into<ControlCall>) -> Error {
    error_of(ask(&mut state(), 0.0, request).1)
}

#[test]
fn a_mount_is_checked_then_written_then_seen() {
    let mut state = state();
    let before = view(&mut state, 0.0);
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let (commands, reply) = ask(&mut state, 0.0, add("nas", "file:///mnt/nas", options.clone()));
    assert_eq!(reply, None, "not answered before it is written");
    let change = Change::AddMount { name: name("nas"), url: "file:///mnt/nas".into(), options: options.clone() };
    let mount = Mount { id: MountId(0), name: name("nas"), url: "file:///mnt/nas".into(), options };
    assert_eq!(commands, [Command::Check(Box::new(mount.clone()), change)]);
    assert_eq!(view(&mut state, 0.1).version, before.version);

    let mount = Mount { id: MountId(2), ..mount };
    let commands = state.decide(at(0.2), Event::Stored(Stored::Mount(mount.clone())));
    assert_eq!(commands, [Command::Answer(ControlReply::Mount(mount.clone())), Command::TellAll]);
    let after = view(&mut state, 0.2);
    assert!(after.version > before.version);
    assert_eq!(after.mounts, [lake(), mount]);
}

#[test]
fn two_mounts_of_one_place_have_options_of_their_own() {
    let mut state = state();
    let options = MountOptions { read_only: true, ..MountOptions::default() };
    let (commands, _) = ask(&mut state, 0.0, add("kept", "s3://lake", options.clone()));
    assert!(matches!(&commands[..], [Command::Check(mount, Change::AddMount { .. })] if mount.options.read_only), "{commands:?}");
    let kept = Mount { id: MountId(2), name: name("kept"), url: "s3://lake".into(), options };
    state.decide(at(0.1), Event::Stored(Stored::Mount(kept.clone())));
    let may_be_written = Mount { options: MountOptions::default(), ..lake() };
    state.decide(at(0.2), Event::Stored(Stored::Mount(may_be_written.clone())));
    assert_eq!(view(&mut state, 0.3).mounts, [may_be_written, kept.clone()], "the other one stays read-only");
    state.decide(at(0.4), Event::Stored(Stored::MountRemoved(LAKE)));
    assert_eq!(view(&mut state, 0.5).mounts, [kept]);
}

#[test]
fn a_taken_name_is_a_conflict_that_says_by_what() {
    let error = refused(add("lake", "s3://other", MountOptions::default()));
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("s3://lake"), "{error}");
}

#[test]
fn what_can_not_be_a_mount_is_refused_before_anything_is_asked() {
    let with = |change: fn(&mut MountOptions)| {
        let mut options = MountOptions::default();
        change(&mut options);
        options
    };
    let cases = [
        ("bucket/prefix", MountOptions::default(), "s3://bucket/prefix"),
        ("ftp://host/x", MountOptions::default(), "no known kind"),
        ("s3://", MountOptions::default(), "names no bucket"),
        ("s3:///prefix", MountOptions::default(), "names no bucket"),
        ("file://relative/x", MountOptions::default(), "absolute path"),
        ("file:///x", with(|o| o.endpoint = Some("http://h".into())), "for buckets"),
        ("file:///x", with(|o| o.anonymous = true), "for buckets"),
        ("s3://b", with(|o| o.endpoint = Some("h:9000".into())), "endpoint"),
        ("s3://b", with(|o| o.region = Some(" ".into())), "empty"),
        ("s3://b", with(|o| (o.anonymous, o.profile) = (true, Some("p".into()))), "profile"),
        ("s3://b", with(|o| o.bandwidth = Some(BitRate::from_bytes_per_sec(9_999))), "bandwidth"),
        ("s3://b", with(|o| o.burst = Some(ByteSize(1))), "burst"),
        ("s3://b", with(|o| o.discover = Some(Duration::from_millis(10))), "once a second"),
        ("s3://b\n", MountOptions::default(), "control"),
    ];
    for (url, options, says) in cases {
        let error = refused(add("other", url, options));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
        assert!(error.message().starts_with("mount other: ") && error.message().contains(says), "{url}: {error}");
    }
}

#[test]
fn credentials_in_a_url_are_refused_and_not_repeated() {
    let endpoint = MountOptions { endpoint: Some("http://key:s3cret@host".into()), ..MountOptions::default() };
    for request in [add("other", "s3://key:s3cret@bucket", MountOptions::default()), add("other", "s3://bucket", endpoint)] {
        let error = refused(request);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("AWS_ACCESS_KEY_ID") && !error.message().contains("s3cret"), "{error}");
    }
    // An @ in a prefix is none.
    let (commands, _) = ask(&mut state(), 0.0, add("other", "s3://bucket/a@b", MountOptions::default()));
    assert!(matches!(commands[..], [Command::Check(..)]));
}

#[test]
fn options_are_set_without_asking_storage_unless_the_way_to_it_changes() {
    let mut state = state();
    let set = |options| AdminRequest::MountSet { name: name("lake"), options };
    let bandwidth = MountOptions { bandwidth: Some(BitRate::from_bytes_per_sec(1_000_000)), ..MountOptions::default() };
    let (commands, _) = ask(&mut state, 0.0, set(bandwidth));
    assert!(matches!(&commands[..], [Command::Write(Change::SetMount { .. })]), "{commands:?}");
    let (commands, _) = ask(&mut state, 0.0, set(MountOptions { profile: Some("other".into()), ..MountOptions::default() }));
    assert!(matches!(&commands[..], [Command::Check(mount, Change::SetMount { .. })] if mount.id == LAKE), "{commands:?}");
}

#[test]
fn unknown_names_are_told_with_those_that_exist() {
    let path = "/leak/x".parse().unwrap();
    let requests = [
        AdminRequest::MountSet { name: name("leak"), options: MountOptions::default() },
        AdminRequest::MountRemove { name: name("leak") },
        AdminRequest::PinAdd { path },
        AdminRequest::PinRemove { path: "/leak/".parse().unwrap() },
    ];
    for request in requests {
        let error = refused(request);
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("no mount leak") && error.message().contains("the mounts are lake"), "{error}");
    }
    let mut state = state();
    state.decide(at(0.0), Event::Stored(Stored::Table(TableDefinition { name: "flights".into(), statement: "..".into() })));
    let error = error_of(ask(&mut state, 0.0, ControlRequest::TableRemove { name: "flight".into() }).1);
    assert!(error.message().contains("the tables are flights"), "{error}");
}

#[test]
fn pins_come_and_go_with_their_mount() {
    let mut state = state();
    let path: forebay_types::ForebayPath = "/lake/dim/".parse().unwrap();
    let (commands, _) = ask(&mut state, 0.0, AdminRequest::PinAdd { path: path.clone() });
    let prefix = Key::new("dim/").unwrap();
    assert_eq!(commands, [Command::Write(Change::AddPin { mount: LAKE, prefix: prefix.clone() })]);
    let before = view(&mut state, 0.0).version;
    state.decide(at(0.1), Event::Stored(Stored::Pin(LAKE, prefix.clone())));
    let with_pin = view(&mut state, 0.1);
    assert_eq!(with_pin.pins, [Pin { mount: LAKE, prefix: prefix.clone() }]);
    assert!(with_pin.version > before);
    assert_eq!(state.status(at(0.1)).pins, std::slice::from_ref(&path));
    let (commands, reply) = ask(&mut state, 0.2, AdminRequest::PinAdd { path });
    assert_eq!((commands, reply), (vec![], Some(ControlReply::Done)), "it is there already");

    let error = error_of(ask(&mut state, 0.3, AdminRequest::PinRemove { path: "/lake/dim".parse().unwrap() }).1);
    assert!(error.message().contains("/lake/dim/"), "{error}");
    state.decide(at(0.4), Event::Stored(Stored::MountRemoved(LAKE)));
    let after = view(&mut state, 0.4);
    assert_eq!((after.mounts.len(), after.pins.len()), (0, 0));
}

#[test]
fn tables_are_kept_in_order_and_change_no_view() {
    let mut state = state();
    let table = |name: &str| TableDefinition { name: name.into(), statement: format!("CREATE {name}") };
    let before = view(&mut state, 0.0).version;
    for name in ["b", "a"] {
        let (commands, _) = ask(&mut state, 0.0, ControlRequest::TableAdd { table: table(name), replace: false });
        assert_eq!(commands, [Command::Write(Change::PutTable { table: table(name), replace: false })]);
        state.decide(at(0.0), Event::Stored(Stored::Table(table(name))));
    }
    assert_eq!(ask(&mut state, 0.1, ControlRequest::Tables).1, Some(ControlReply::Tables(vec![table("a"), table("b")])));
    let again = ControlRequest::TableAdd { table: table("a"), replace: false };
    assert_eq!(error_of(ask(&mut state, 0.1, again).1).kind(), ErrorKind::Conflict);
    let unnamed = ControlRequest::TableAdd { table: table(""), replace: true };
    assert_eq!(error_of(ask(&mut state, 0.1, unnamed).1).kind(), ErrorKind::Invalid);
    assert_eq!(view(&mut state, 0.1).version, before);
}

#[test]
fn a_catalogue_that_was_read_anew_is_taken_over() {
    let mut state = state();
    let before = view(&mut state, 0.0).version;
    state.decide(at(0.1), Event::Loaded(Catalogue { mounts: [(LAKE, lake())].into(), ..Catalogue::default() }));
    assert_eq!(view(&mut state, 0.1).version, before, "nothing was different");
    state.decide(at(0.2), Event::Loaded(Catalogue::default()));
    let after = view(&mut state, 0.2);
    assert!(after.version > before && after.mounts.is_empty());
}

#[test]
fn a_mount_of_where_machines_find_their_own_credentials_is_refused() {
    let hosts = ["169.254.169.254", "169.254.169.254:80", "2852039166", "0xa9fea9fe", "[fe80::1]", "[::ffff:169.254.169.254]:80"];
    for host in hosts {
        for url in
            [format!("http://{host}"), format!("https://{host}/latest"), format!("http://{host}\\x"), format!("http://{host}?a")]
        {
            let options = MountOptions { endpoint: Some(url.clone()), anonymous: true, ..MountOptions::default() };
            let error = refused(add("other", "s3://latest", options));
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains("link-local"), "{url}: {error}");
        }
    }
    for host in ["%31%36%39.254.169.254", "\u{ff11}69.254.169.254", "169\u{3002}254.169.254"] {
        let options = MountOptions { endpoint: Some(format!("http://{host}")), ..MountOptions::default() };
        assert!(refused(add("other", "s3://latest", options)).message().contains("ASCII"), "{host}");
    }
    let near = MountOptions { endpoint: Some("http://169.253.1.1:9000".into()), ..MountOptions::default() };
    let (commands, _) = ask(&mut state(), 0.0, add("other", "s3://bucket", near));
    assert!(matches!(commands[..], [Command::Check(..)]));
}
