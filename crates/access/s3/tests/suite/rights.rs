//! Who may do what, by whatever method, sub-resource and header; who may only read changes nothing.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_s3::{AccessRule, Anonymous, NewBuckets};
use forebay_testbed::add_mount;
use forebay_types::{Grant, MountOptions, Role, Scope, Validate};
use futures::StreamExt;

use crate::rig::client::{Answer, Signed, raw, request};
use crate::rig::cluster::{Cluster, ID, SECRET, gateway_settings};

/// What a store could take for something else than the request's method says.
const SUB_RESOURCES: &str = "abac accelerate acl analytics&id=a attributes cors delete encryption intelligent-tiering&id=a \
    inventory&id=a legal-hold lifecycle list-type=2 location logging metadataConfiguration metadataTable metrics&id=a \
    notification object-lock ownershipControls partNumber=1 partNumber=1&uploadId=u policy policyStatus publicAccessBlock \
    renameObject replication requestPayment restore retention select select-type=2 session tagging torrent uploadId=u \
    uploads versionId=null versioning versions website x-id=GetObject cors=&restore unheard-of";
/// With these a request reads, if it is a POST of an object with nothing else.
const DISGUISES: [&str; 3] = ["", "select", "select&select-type=2"];
const LIST: &str = "<Delete><Object><Key>kept</Key></Object></Delete>";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Reader,
    Nobody,
    /// May do everything; the mount is read-only.
    Owner,
    /// May write to a mount of which nobody asks here.
    Other,
    /// Has the name of who may do everything, and not the secret.
    Guesser,
    /// Could do everything until a second ago.
    Expired,
    /// May write everywhere.
    Writer,
    /// May do everything.
    Admin,
    /// May write to `lake`.
    WriterOfLake,
}

impl Who {
    /// Access key and secret; none for who shows nothing.
    fn key(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Nobody => return None,
            Self::Reader => ("READER", "s"),
            Self::Owner => (ID, SECRET),
            Self::Guesser => (ID, "a guess"),
            Self::Other => ("OTHER", "s"),
            Self::Expired => ("EXPIRED", "s"),
            Self::Writer => ("WRITER", "s"),
            Self::Admin => ("ADMIN", "s"),
            Self::WriterOfLake => ("LAKE", "s"),
        })
    }

    /// What is to come of it when this one reads or changes what is in a bucket.
    fn may(self, bucket: &str, reads: bool) -> bool {
        match self {
            Self::Reader | Self::Nobody | Self::Owner => reads,
            Self::Other | Self::Guesser | Self::Expired => false,
            Self::Writer | Self::Admin => true,
            Self::WriterOfLake => bucket == "lake",
        }
    }
}

/// The keys of all of them.
fn rules() -> Vec<AccessRule> {
    let only = |mount: &str, role| {
        let scope = Scope::Only { mounts: vec![mount.parse().unwrap()], temporary: false };
        Grant { scope, ..Grant::everywhere(role) }
    };
    let key = |id: &str, grant| AccessRule { grant, ..AccessRule::new(id, "s") };
    vec![
        AccessRule::new("READER", "s").read_only(),
        key("OTHER", only("elsewhere", Role::Write)),
        key("EXPIRED", Grant { expires: Some(forebay_transport::unix_now() - 1), ..Grant::everywhere(Role::Admin) }),
        key("WRITER", Grant::everywhere(Role::Write)),
        key("ADMIN", Grant::everywhere(Role::Admin)),
        key("LAKE", only("lake", Role::Write)),
    ]
}

#[derive(Debug)]
struct Asked {
    who: Who,
    method: &'static str,
    path: String,
    copies: bool,
}

impl Asked {
    fn request(&self) -> Signed {
        let mut request = request(self.method, &self.path);
        if let Some((id, secret)) = self.who.key() {
            (request.id, request.secret) = (id.into(), secret.into());
        }
        if self.copies {
            let bucket = self.path.split('/').nth(1).unwrap().split('?').next().unwrap();
            return request.header("x-amz-copy-source", &format!("/{bucket}/other"));
        }
        match self.method {
            "POST" => request.body(LIST),
            "PUT" => request.body("changed"),
            _ => request,
        }
    }

    async fn send(&self, cluster: &Cluster) -> Answer {
        let (at, request) = (cluster.address(), self.request());
        if self.who != Who::Nobody {
            return request.send(at).await;
        }
        let mut text = format!("{} {} HTTP/1.1\r\nhost: {at}\r\n", self.method, self.path);
        request.headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        text.push_str(&format!("content-length: {}\r\n\r\n", request.body.len()));
        raw(at, &[text.as_bytes(), &request.body].concat(), self.method == "HEAD").await.expect("an answer")
    }

    fn bucket(&self) -> &str {
        self.path[1..].split(['/', '?']).next().unwrap()
    }

    fn reads(&self) -> bool {
        matches!(self.method, "GET" | "HEAD") || self.asks_an_object()
    }

    /// Whether an answer is that this one may not, and not some other refusal.
    fn is_denied(&self, answer: &Answer) -> bool {
        let says = |text: &str| self.method == "HEAD" || answer.text().contains(text);
        answer.status == 403
            && match self.who {
                Who::Guesser => says("<Code>SignatureDoesNotMatch</Code>"),
                _ => says("<Code>AccessDenied</Code><Message>Access Denied</Message>"),
            }
    }

    /// SelectObjectContent, and nothing else.
    fn asks_an_object(&self) -> bool {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let mut names: Vec<&str> = query.split('&').filter(|name| *name != "x-id=GetObject").collect();
        names.sort_unstable();
        self.method == "POST" && path.matches('/').count() == 2 && names == ["select", "select-type=2"]
    }
}

/// Everything that may be asked of a bucket and of an object in it.
fn all(bucket: &str, who: Who, disguises: &[&str]) -> Vec<Asked> {
    let mut all = Vec::new();
    for method in ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"] {
        for place in [format!("/{bucket}"), format!("/{bucket}/kept"), format!("/{bucket}/new")] {
            let subs = std::iter::once("").chain(SUB_RESOURCES.split(' '));
            for (sub, disguise) in subs.flat_map(|sub| disguises.iter().map(move |disguise| (sub, *disguise))) {
                let query = [sub, disguise].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("&");
                let path = if query.is_empty() { place.clone() } else { format!("{place}?{query}") };
                all.push(Asked { who, method, path: path.clone(), copies: false });
                if method == "PUT" && place.ends_with("new") {
                    all.push(Asked { who, method, path, copies: true });
                }
            }
        }
    }
    all
}

fn in_folder(folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => in_folder(&path, all),
            false => drop(all.insert(path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
}

/// All that could have changed.
async fn state(cluster: &Cluster, folder: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let mut bytes = BTreeMap::new();
    in_folder(folder, &mut bytes);
    for path in ["lake", "tmp"].iter().flat_map(|bucket| ["kept", "other", "new"].map(|key| format!("/{bucket}/{key}"))) {
        let got = request("GET", &path).send(cluster.address()).await;
        if got.status == 200 {
            bytes.insert(path, got.body);
        }
    }
    let mut listed = Vec::new();
    for path in
        ["/", "/lake?list-type=2", "/lake?uploads", "/nas?list-type=2", "/nas?uploads", "/tmp?list-type=2", "/tmp?uploads"]
    {
        listed.push(request("GET", path).send(cluster.address()).await.text());
    }
    (bytes, listed)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_only_read_changes_nothing_by_any_request() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = gateway_settings();
    settings.keys.extend(rules());
    settings.anonymous = Anonymous::Read;
    // All that could be changed through it may be, by others.
    settings.bucket_configuration = true;
    settings.new_buckets = Some(NewBuckets { url: format!("file://{}", folder.path().display()), endpoint: None });
    let (cluster, s3) = Cluster::over_s3(|_| {}, settings).await;
    cluster.mount("lake-ro", "s3://data", &s3.endpoint(), |options| options.read_only = true).await;
    for (name, read_only) in [("nas", false), ("nas-ro", true)] {
        let options = MountOptions { validate: Validate::Always, read_only, ..MountOptions::default() };
        add_mount(&cluster.client, name, &format!("file://{}", folder.path().display()), options).await;
    }
    for path in ["/lake/kept", "/lake/other", "/nas/kept", "/nas/other", "/tmp/kept", "/tmp/other"] {
        let put = request("PUT", path).body(path).send(cluster.address()).await;
        assert_eq!(put.status, 200, "{path}: {}", put.text());
    }
    let before = state(&cluster, folder.path()).await;
    s3.reset_counters();
    let mut asked = Vec::new();
    for bucket in ["lake", "nas", "tmp", "unheard-of"] {
        asked.extend(all(bucket, Who::Reader, &DISGUISES));
        asked.extend(all(bucket, Who::Nobody, &DISGUISES));
        for who in [Who::Other, Who::Guesser, Who::Expired] {
            asked.extend(all(bucket, who, &DISGUISES[..1]));
        }
    }
    asked.extend(all("lake-ro", Who::Owner, &DISGUISES));
    asked.extend(all("nas-ro", Who::Owner, &DISGUISES));
    let mut answers = futures::stream::iter(asked).map(async |asked| (asked.send(&cluster).await, asked)).buffer_unordered(8);
    let (mut changes, mut readings, mut questions) = (0, 0, 0);
    while let Some((answer, asked)) = answers.next().await {
        let told = format!("{asked:?}: {} {}", answer.head, answer.text());
        if asked.reads() {
            readings += 1;
            let may = asked.who.may(asked.bucket(), true);
            questions += u64::from(may && asked.asks_an_object() && ["lake", "lake-ro"].contains(&asked.bucket()));
            assert_eq!(asked.is_denied(&answer), !may, "{told}");
            continue;
        }
        changes += 1;
        assert!(!asked.who.may(asked.bucket(), false));
        let code = if asked.who == Who::Guesser { "SignatureDoesNotMatch" } else { "AccessDenied" };
        assert_eq!((answer.status, answer.code().as_str()), (403, code), "{told}");
    }
    assert!(changes > 10_000 && readings > 5_000, "{changes} changes, {readings} readings");
    let counters = s3.counters();
    assert_eq!((counters.puts, counters.deletes), (questions, 0), "the store counts questions as what they are sent by");
    assert!(state(&cluster, folder.path()).await == before, "what there was is what there is");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_write_is_let_through_where_that_holds_and_nowhere_else() {
    let mut settings = gateway_settings();
    settings.keys.extend(rules());
    settings.bucket_configuration = true;
    let (cluster, _s3) = Cluster::over_s3(|_| {}, settings).await;
    let mut asked = Vec::new();
    for who in [Who::Writer, Who::Admin, Who::WriterOfLake] {
        asked.extend(["lake", "tmp"].into_iter().flat_map(|bucket| all(bucket, who, &DISGUISES[..1])));
    }
    let mut answers = futures::stream::iter(asked).map(async |asked| (asked.send(&cluster).await, asked)).buffer_unordered(8);
    let (mut through, mut denied) = (0, 0);
    while let Some((answer, asked)) = answers.next().await {
        let may = asked.who.may(asked.bucket(), asked.reads());
        assert_eq!(asked.is_denied(&answer), !may, "{asked:?}: {} {}", answer.head, answer.text());
        *if may { &mut through } else { &mut denied } += 1;
    }
    assert!(through > 4_000 && denied > 800, "{through} let through, {denied} denied");
    // Who may see no mount is shown none.
    for (who, sees) in [(Who::Writer, true), (Who::WriterOfLake, true), (Who::Other, false)] {
        let list = Asked { who, method: "GET", path: "/".into(), copies: false }.send(&cluster).await;
        assert_eq!((list.status, list.text().contains("<Name>lake</Name>")), (200, sees), "{who:?}: {}", list.text());
    }
}
