//! Credentials of every kind against a server that hands them out.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use forebay_types::ErrorKind;
use http::Uri;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::exchange::Exchange;
use super::machine::{Hand, Machine};
use super::profile::Environment;
use super::renewed::Renewed;

/// STS, the portal of IAM Identity Center, an instance's metadata and a container's agent: each answer is of a number of its own, and good for so long.
struct Server {
    uri: Uri,
    asked: Arc<Mutex<Vec<String>>>,
    /// From this answer on it refuses.
    refuses_from: Arc<AtomicUsize>,
}

impl Server {
    async fn start(life: Duration) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let (asked, refuses_from) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(AtomicUsize::new(usize::MAX)));
        let (seen, refuses) = (Arc::clone(&asked), Arc::clone(&refuses_from));
        forebay_runtime::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, refuses) = (Arc::clone(&seen), Arc::clone(&refuses));
                let answer = move |request: Request<Incoming>| {
                    let (seen, refuses) = (Arc::clone(&seen), Arc::clone(&refuses));
                    async move { Ok::<_, std::convert::Infallible>(answer(request, &seen, &refuses, life).await) }
                };
                forebay_runtime::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)),
                );
            }
        });
        Self { uri, asked, refuses_from }
    }

    fn asked(&self) -> usize {
        self.asked.lock().len()
    }

    /// The variable of its metadata.
    fn metadata(&self) -> (&'static str, String) {
        ("AWS_METADATA_ENDPOINT", self.uri.to_string().trim_end_matches('/').to_string())
    }
}

async fn answer(
    request: Request<Incoming>,
    asked: &Mutex<Vec<String>>,
    refuses_from: &AtomicUsize,
    life: Duration,
) -> Response<Full<Bytes>> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_string();
    let (signed_by, bearer, uri) = (header("authorization"), header("x-amz-sso_bearer_token"), request.uri().to_string());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let number = {
        let mut asked = asked.lock();
        asked.push(format!("{uri} {} {signed_by} {bearer}", String::from_utf8_lossy(&body)));
        asked.len()
    };
    if number >= refuses_from.load(SeqCst) {
        let mut refused = Response::new(Full::from("<Error><Code>AccessDenied</Code></Error>"));
        *refused.status_mut() = http::StatusCode::FORBIDDEN;
        return refused;
    }
    let until = chrono::Utc::now() + life;
    let time = until.format("%Y-%m-%dT%H:%M:%SZ");
    let text = match (uri.as_str(), bearer.is_empty()) {
        ("/latest/api/token", _) => "a session".to_string(),
        ("/latest/meta-data/iam/security-credentials/", _) => "reader".to_string(),
        ("/latest/meta-data/iam/security-credentials/reader" | "/container", _) => format!(
            r#"{{"AccessKeyId": "ASIAHAND0000000{number:03}", "SecretAccessKey": "s", "Token": "token{number}", "Expiration": "{time}"}}"#
        ),
        (_, true) => format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE0000000{number:03}</AccessKeyId>\
             <SecretAccessKey>role secret</SecretAccessKey><SessionToken>token{number}</SessionToken>\
             <Expiration>{time}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
        ),
        (_, false) => format!(
            r#"{{"roleCredentials": {{"accessKeyId": "ASIASSO0000000{number:03}", "secretAccessKey": "sso secret",
                "sessionToken": "token{number}", "expiration": {}}}}}"#,
            until.timestamp_millis()
        ),
    };
    Response::new(Full::from(text))
}

/// `~/.aws` with these files.
struct Home(tempfile::TempDir);

impl Home {
    fn new(config: &str, credentials: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".aws/sso/cache")).unwrap();
        fs::write(home.path().join(".aws/config"), config).unwrap();
        fs::write(home.path().join(".aws/credentials"), credentials).unwrap();
        Self(home)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(".aws").join(name), text).unwrap();
    }

    fn env(&self, more: &[(&'static str, &str)]) -> Environment {
        let mut all: HashMap<&'static str, String> = more.iter().map(|(name, value)| (*name, value.to_string())).collect();
        all.insert("HOME", self.0.path().display().to_string());
        Environment::of(all)
    }

    fn of(&self, profile: &str, server: &Server) -> Renewed {
        self.with(self.env(&[]), profile, server)
    }

    fn with(&self, env: Environment, profile: &str, server: &Server) -> Renewed {
        let exchange = Exchange::new(env.clone(), "eu-west-1").through(server.uri.clone());
        Renewed::new(env, Some(profile.to_string()), exchange)
    }
}

const KEYS: &str = "[base]\naws_access_key_id = AKIABASE000000000\naws_secret_access_key = base/secret\n";
const HOUR: Duration = Duration::from_secs(3600);

async fn key(renewed: &Renewed) -> String {
    renewed.get().await.unwrap().key_id.clone()
}

#[tokio::test]
async fn a_role_is_taken_by_another_profile_and_by_roles_before_it() {
    let config = "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\nexternal_id = e1\n\
                  [profile chained]\nrole_arn = arn:aws:iam::210987654321:role/writer\nsource_profile = work\nrole_session_name = me\n\
                  [profile variables]\nrole_arn = arn:aws:iam::123456789012:role/reader\ncredential_source = Environment\n";
    let (home, server) = (Home::new(config, KEYS), Server::start(HOUR).await);
    let work = home.of("work", &server);
    let taken = work.get().await.unwrap();
    assert_eq!((taken.key_id.as_str(), taken.token.as_deref()), ("ASIAROLE0000000001", Some("token1")));
    let asked = server.asked.lock()[0].clone();
    for part in [
        "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Freader",
        "ExternalId=e1",
        "RoleSessionName=forebay",
        "AKIABASE000000000",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(key(&work).await == "ASIAROLE0000000001" && server.asked() == 1, "it is kept");

    assert_eq!(key(&home.of("chained", &server)).await, "ASIAROLE0000000003");
    let last = server.asked.lock()[2].clone();
    assert!(last.contains("ASIAROLE0000000002") && last.contains("RoleSessionName=me"), "{last}");

    let env = home.env(&[("AWS_ACCESS_KEY_ID", "AKIAENV0000000000"), ("AWS_SECRET_ACCESS_KEY", "s")]);
    assert_eq!(key(&home.with(env, "variables", &server)).await, "ASIAROLE0000000004");
    assert!(server.asked.lock()[3].contains("AKIAENV0000000000"));
}

#[tokio::test]
async fn a_login_is_found_by_its_session_or_its_url() {
    let config = "[profile new]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Analyst\n\
                  [sso-session corp]\nsso_region = eu-north-1\nsso_start_url = https://corp.example/start\n\
                  [profile old]\nsso_start_url = https://corp.example/start\nsso_region = eu-north-1\nsso_account_id = 1\nsso_role_name = R\n";
    let (home, server) = (Home::new(config, ""), Server::start(HOUR).await);
    let new = home.of("new", &server);
    let error = new.get().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Denied && error.message().contains("aws sso login"), "{error}");

    // SHA-1 of the session's name, and of the URL.
    let token = r#"{"accessToken": "the login", "expiresAt": "2999-01-01T00:00:00Z"}"#;
    for login in ["corp", "https://corp.example/start"] {
        let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, login.as_bytes());
        let name = forebay_types::hex(digest.as_ref());
        home.write(&format!("sso/cache/{name}.json"), token);
    }
    assert_eq!(key(&new).await, "ASIASSO0000000001");
    let asked = server.asked.lock()[0].clone();
    assert!(
        asked.contains("role_name=Analyst") && asked.contains("account_id=123456789012") && asked.ends_with("the login"),
        "{asked}"
    );
    assert_eq!(key(&home.of("old", &server)).await, "ASIASSO0000000002");

    server.refuses_from.store(0, SeqCst);
    let error = home.of("old", &server).get().await.unwrap_err();
    assert!(error.message().contains("403") && !error.message().contains("the login"), "{error}");
}

#[tokio::test]
async fn a_command_prints_credentials() {
    let config = "[profile printed]\ncredential_process = cat \"$HOME_OF_TEST/the file\"\n[profile broken]\ncredential_process = exit 7\n\
                  [profile silent]\ncredential_process = echo nothing secret\n";
    let (home, server) = (Home::new(config, ""), Server::start(HOUR).await);
    let printed = r#"{"Version": 1, "AccessKeyId": "AKIAPRINTED", "SecretAccessKey": "p"}"#;
    home.write("the file", printed);
    let config = config.replace("$HOME_OF_TEST", &home.0.path().join(".aws").display().to_string());
    home.write("config", &config);
    assert_eq!(key(&home.of("printed", &server)).await, "AKIAPRINTED");
    let error = home.of("broken", &server).get().await.unwrap_err();
    assert!(error.message().contains("\"broken\"") && error.message().contains("status 7"), "{error}");
    let error = home.of("silent", &server).get().await.unwrap_err();
    assert!(error.message().contains("printed no credentials") && !error.message().contains("nothing secret"), "{error}");
}

#[tokio::test]
async fn credentials_are_renewed_before_they_run_out_and_old_ones_serve_while_they_are_good() {
    let config = "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n";
    let (home, server) = (Home::new(config, KEYS), Server::start(Duration::from_secs(4)).await);
    let work = home.of("work", &server);
    assert_eq!(key(&work).await, "ASIAROLE0000000001");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    // Half of their life is over. All who come now get new ones, by one question.
    let all = futures::future::join_all((0..20).map(|_| key(&work))).await;
    assert!(all.contains(&"ASIAROLE0000000002".to_string()), "{all:?}");
    assert_eq!((key(&work).await.as_str(), server.asked()), ("ASIAROLE0000000002", 2));

    server.refuses_from.store(0, SeqCst);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(key(&work).await, "ASIAROLE0000000002", "they are good for a while");
    let asked = server.asked();
    key(&work).await;
    assert_eq!(server.asked(), asked, "and nobody is asked at once again");
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let error = work.get().await.unwrap_err();
    assert!(error.message().contains("role/reader") && error.message().contains("AccessDenied"), "{error}");
}

#[tokio::test]
async fn credentials_that_have_run_out_by_another_clock_are_renewed_and_new_ones_are_not() {
    let config = "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n";
    let (home, server) = (Home::new(config, KEYS), Server::start(HOUR).await);
    let work = home.of("work", &server);
    let first = work.get().await.unwrap();
    assert!(!work.ran_out(&first), "they are new: it is not the time");
    assert_eq!((key(&work).await, server.asked()), (first.key_id.clone(), 1));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31)).await;
    tokio::time::resume();
    assert!(work.ran_out(&first), "there may be others");
    assert_eq!((key(&work).await.as_str(), server.asked()), ("ASIAROLE0000000002", 2));
    assert!(work.ran_out(&first), "there are others");
    assert_eq!((key(&work).await.as_str(), server.asked()), ("ASIAROLE0000000002", 2));
}

#[tokio::test]
async fn what_a_profile_lacks_is_named() {
    let config = "[profile a]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = b\n\
                  [profile b]\nrole_arn = arn:aws:iam::123456789012:role/y\nsource_profile = a\n\
                  [profile c]\nrole_arn = arn:aws:iam::123456789012:role/x\n\
                  [profile d]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = base\nmfa_serial = arn:aws:iam::1:mfa/me\n\
                  [profile e]\nsso_session = none\n[profile f]\nregion = eu-west-1\n\
                  [profile h]\nrole_arn = arn:aws:iam::123456789012:role/x\nsource_profile = short\n";
    let keys = format!("{KEYS}[short]\naws_access_key_id = minioadmin\naws_secret_access_key = s\n");
    let (home, server) = (Home::new(config, &keys), Server::start(HOUR).await);
    for (profile, what) in [
        ("a", "circle"),
        ("c", "source_profile or credential_source"),
        ("d", "mfa_serial"),
        ("e", "[sso-session none]"),
        ("f", "no credentials"),
        ("g", "there is no profile"),
        ("h", "has 10 characters"),
    ] {
        let error = home.of(profile, &server).get().await.unwrap_err();
        assert!(error.kind() == ErrorKind::Denied && error.message().contains(what), "{profile}: {error}");
    }
    assert_eq!(server.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_changed_in_the_file_are_taken_within_a_minute() {
    let home = Home::new("", KEYS);
    let env = home.env(&[]);
    let base = Renewed::new(env.clone(), Some("base".into()), Exchange::new(env, "eu-west-1"));
    assert_eq!(key(&base).await, "AKIABASE000000000");
    home.write("credentials", &KEYS.replace("AKIABASE000000000", "AKIAOTHER00000000"));
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(key(&base).await, "AKIAOTHER00000000");
}

#[tokio::test]
async fn a_role_is_taken_by_what_the_machine_hands_out_whatever_keys_the_environment_has() {
    let role = |name: &str, by: &str| {
        format!("[profile {name}]\nrole_arn = arn:aws:iam::123456789012:role/reader\ncredential_source = {by}\n")
    };
    let config = role("instance", "Ec2InstanceMetadata") + &role("container", "EcsContainer");
    let (home, server) = (Home::new(&config, ""), Server::start(HOUR).await);
    home.write("authorization", "of the agent");
    let (metadata, container) = (server.metadata().1, format!("{}container", server.uri));
    let file = home.0.path().join(".aws/authorization").display().to_string();
    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIAENV0000000000"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_METADATA_ENDPOINT", metadata.as_str()),
    ];
    let instance = home.with(home.env(&keys), "instance", &server);
    // A session, the role's name, its credentials, and STS.
    assert_eq!(key(&instance).await, "ASIAROLE0000000004");
    assert!(server.asked.lock()[3].contains("ASIAHAND0000000003"), "{:?}", server.asked.lock());

    let error = home.with(home.env(&keys), "container", &server).get().await.unwrap_err();
    assert!(error.message().contains("AWS_CONTAINER_CREDENTIALS_FULL_URI"), "{error}");
    let agent =
        [("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file.as_str())];
    let contained = home.with(home.env(&[&keys[..], &agent[..]].concat()), "container", &server);
    assert_eq!(key(&contained).await, "ASIAROLE0000000006");
    let asked = server.asked.lock().clone();
    assert!(asked[4].contains("/container") && asked[4].contains("of the agent"), "{asked:?}");
    assert!(asked[5].contains("ASIAHAND0000000005"), "{asked:?}");
}

#[tokio::test]
async fn what_a_machine_hands_out_is_renewed_and_who_gives_none_is_named() {
    let server = Server::start(Duration::from_secs(2)).await;
    let (name, metadata) = server.metadata();
    let env = |more: &[(&'static str, &str)]| {
        let more = more.iter().map(|(name, value)| (*name, value.to_string()));
        Environment::of(more.chain([(name, metadata.clone())]))
    };
    let instance = Machine::find(Hand::Any, &env(&[]), "eu-west-1").unwrap();
    assert_eq!(instance.get().await.unwrap().key_id, "ASIAHAND0000000003");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(instance.get().await.unwrap().key_id, "ASIAHAND0000000006");

    server.refuses_from.store(0, SeqCst);
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let refused = instance.get().await.unwrap_err();
    assert!(refused.message().contains("the instance's metadata gave none"), "{refused}");
    assert!(!refused.message().contains("AccessDenied"), "what was answered may be a secret: {refused}");
    let half = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/none")];
    let refused = Machine::find(Hand::Any, &env(&half), "eu-west-1").unwrap().get().await.unwrap_err();
    assert!(refused.message().contains("AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not"), "{refused}");
    let whole = [("AWS_WEB_IDENTITY_TOKEN_FILE", "/none"), ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/reader")];
    let refused = Machine::find(Hand::Any, &env(&whole), "eu-west-1").unwrap().get().await.unwrap_err();
    assert!(refused.message().contains("web identity") && refused.message().contains("role/reader"), "{refused}");
}

#[tokio::test]
async fn sts_and_the_portal_are_asked_where_variables_say() {
    let config = "[profile work]\nrole_arn = arn:aws:iam::123456789012:role/reader\nsource_profile = base\n";
    let (home, server) = (Home::new(config, KEYS), Server::start(HOUR).await);
    let of = |url: &str| {
        let env = home.env(&[("AWS_ENDPOINT_URL_STS", url)]);
        Renewed::new(env.clone(), Some("work".to_string()), Exchange::new(env, "eu-west-1"))
    };
    assert_eq!(key(&of(&server.uri.to_string())).await, "ASIAROLE0000000001");
    let error = of("not a url").get().await.unwrap_err();
    assert!(error.message().contains("AWS_ENDPOINT_URL_STS"), "{error}");
}
