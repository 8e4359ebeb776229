//! Credentials for what a profile has: by a command, a login or another credential.

use std::ops::RangeInclusive;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use forebay_types::{Error, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use object_store::aws::AwsCredential;
use parking_lot::Mutex;
use reqsign_aws_v4::{
    AssumeRoleGrant, AssumeRoleGranter, Credential, ProcessCredentialProvider, SSOCredentialProvider, StaticCredentialProvider,
};
use reqsign_core::{CommandExecute, CommandOutput, Context, Env, FileRead, Granter, HttpSend, ProvideCredential};
use tokio::io::AsyncReadExt;

use super::machine::{Hand, Machine};
use super::profile::Environment;
use super::source::{Role, Source, Sso};

/// Longest answer that one gives, and most that a command prints.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Characters of the access keys that roles can be taken by.
const KEY_CHARACTERS: RangeInclusive<usize> = 16..=128;
/// What of a refusal is shown.
const SHOWN_MAX: usize = 300;

/// What was handed out.
pub(super) struct Fetched {
    pub(super) credential: AwsCredential,
    /// None for what does not run out.
    pub(super) until: Option<SystemTime>,
}

/// Turns what a profile has into credentials.
#[derive(Clone)]
pub(super) struct Exchange {
    env: Environment,
    region: String,
    http: Http,
}

impl Exchange {
    pub(super) fn new(env: Environment, region: &str) -> Self {
        Self { env, region: region.to_string(), http: Http::default() }
    }

    /// The same with all requests sent to one server, for tests.
    #[cfg(test)]
    pub(super) fn through(self, server: Uri) -> Self {
        Self { http: Http { server: Some(server), ..self.http }, ..self }
    }

    /// `Denied`, with the link that gave nothing, where there are none.
    pub(super) fn fetch<'a>(&'a self, source: &'a Source) -> BoxFuture<'a, Result<Fetched>> {
        async move {
            match source {
                Source::Keys(keys) => Ok(Fetched { credential: copy(keys), until: None }),
                Source::Environment => self.variables(),
                Source::Machine(hand) => self.machine(*hand).await,
                Source::Process(command) => self.process(command).await,
                Source::Sso(sso) => self.login(sso).await,
                Source::Role(role, of) => self.role(role, self.fetch(of).await?).await,
            }
        }
        .boxed()
    }

    fn variables(&self) -> Result<Fetched> {
        let (key_id, secret_key) = (self.env.get("AWS_ACCESS_KEY_ID"), self.env.get("AWS_SECRET_ACCESS_KEY"));
        let (Some(key_id), Some(secret_key)) = (key_id, secret_key) else {
            return Err(Error::denied(
                "credential_source = Environment, and AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set",
            ));
        };
        Ok(Fetched { credential: AwsCredential { key_id, secret_key, token: self.env.get("AWS_SESSION_TOKEN") }, until: None })
    }

    /// It is asked for anew each minute.
    async fn machine(&self, hand: Hand) -> Result<Fetched> {
        let credential = Machine::find(hand, &self.env, &self.region)?.get().await?;
        Ok(Fetched { credential: copy(&credential), until: None })
    }

    async fn process(&self, command: &str) -> Result<Fetched> {
        let provider = ProcessCredentialProvider::new().with_command(command);
        let said = |refused: Option<String>| {
            let why = refused.unwrap_or_else(|| "printed no credentials (see `aws help config-vars`, credential_process)".into());
            Error::denied(format!("credential_process {why}"))
        };
        let refused = Refused::default();
        let provided = provider.provide_credential(&self.context(&refused)).await;
        provided.ok().flatten().map(fetched).ok_or_else(|| said(refused.take()))
    }

    async fn login(&self, sso: &Sso) -> Result<Fetched> {
        let provider = SSOCredentialProvider::new()
            .with_account_id(&sso.account)
            .with_role_name(&sso.role)
            .with_region(&sso.region)
            // By this name the token is found, be it the session's or the URL.
            .with_start_url(&sso.login);
        let refused = Refused::default();
        let provided = provider.provide_credential(&self.context_at("AWS_ENDPOINT_URL_SSO", &refused)?).await;
        provided.ok().flatten().map(fetched).ok_or_else(|| {
            let why = refused.take().map_or_else(|| "nobody is logged in, or no more".into(), |why| format!("the portal {why}"));
            Error::denied(format!("{why}: run `aws sso login` (for {:?})", sso.login))
        })
    }

    async fn role(&self, role: &Role, of: Fetched) -> Result<Fetched> {
        let mut grant = AssumeRoleGrant::new(&role.arn, &role.session_name);
        if let Some(external_id) = &role.external_id {
            grant = grant.with_external_id(external_id);
        }
        let key = &of.credential.key_id;
        if !KEY_CHARACTERS.contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let (arn, has) = (&role.arn, key.chars().count());
            return Err(Error::denied(format!(
                "{arn}: the access key that is to take it has {has} characters: those that STS knows have 16 to 128, letters and digits"
            )));
        }
        let mut source = StaticCredentialProvider::new(key, &of.credential.secret_key);
        if let Some(token) = &of.credential.token {
            source = source.with_session_token(token);
        }
        let refused = Refused::default();
        let granter =
            Granter::new(self.context_at("AWS_ENDPOINT_URL_STS", &refused)?, source, AssumeRoleGranter::new(&self.region, grant));
        granter.grant(None).await.map(fetched).map_err(|error| {
            // Nothing of the answer but a refusal is shown: another one may hold a secret.
            let why = refused.take().map_or_else(|| format!("gave nothing ({:?})", error.kind()), |why| why.to_string());
            Error::denied(format!("{}: STS in {} {why}", role.arn, self.region))
        })
    }

    /// What is asked over HTTP goes where a variable says, if it is set: to an endpoint within a VPC, say.
    fn context_at(&self, endpoint: &str, refused: &Refused) -> Result<Context> {
        let wrong = |_| Error::denied(format!("{endpoint} is no URL"));
        let server = self.env.get(endpoint).map(|url| url.parse::<Uri>().map_err(wrong)).transpose()?;
        let http = Http { server: self.http.server.clone().or(server), ..self.http.clone() };
        Ok(Self { http, ..self.clone() }.context(refused))
    }

    fn context(&self, refused: &Refused) -> Context {
        let commands = Commands(refused.clone());
        let http = Http { refused: refused.clone(), ..self.http.clone() };
        Context::new()
            .with_file_read(Files)
            .with_env(Variables(self.env.clone()))
            .with_command_execute(commands)
            .with_http_send(http)
    }
}

fn copy(of: &AwsCredential) -> AwsCredential {
    AwsCredential { key_id: of.key_id.clone(), secret_key: of.secret_key.clone(), token: of.token.clone() }
}

fn fetched(credential: Credential) -> Fetched {
    let until = credential.expires_in.map(|until| until.as_system_time());
    let Credential { access_key_id, secret_access_key, session_token, .. } = credential;
    let credential = AwsCredential { key_id: access_key_id, secret_key: secret_access_key, token: session_token };
    Fetched { credential, until }
}

/// What whoever was asked last had against it.
#[derive(Clone, Debug, Default)]
struct Refused(Arc<Mutex<Option<String>>>);

impl Refused {
    fn say(&self, what: String) {
        *self.0.lock() = Some(what.chars().filter(|letter| !letter.is_control()).take(SHOWN_MAX).collect());
    }

    fn take(&self) -> Option<String> {
        self.0.lock().take()
    }
}

fn failed(what: impl Into<String>) -> reqsign_core::Error {
    reqsign_core::Error::unexpected(what)
}

/// Files, of a bounded length.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let read = async {
            let file = tokio::fs::File::open(path).await?;
            let mut bytes = Vec::new();
            file.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut bytes).await?;
            Ok::<_, std::io::Error>(bytes)
        };
        read.await.map_err(|error| failed(format!("{path}: {error}")))
    }
}

#[derive(Debug)]
struct Variables(Environment);

impl Env for Variables {
    fn var(&self, key: &str) -> Option<String> {
        self.0.get(key)
    }

    fn vars(&self) -> std::collections::HashMap<String, String> {
        Default::default()
    }

    fn home_dir(&self) -> Option<std::path::PathBuf> {
        self.0.get("HOME").map(Into::into)
    }
}

/// Runs what the user's own file says, by a shell as that is how it is quoted.
#[derive(Debug)]
struct Commands(Refused);

impl CommandExecute for Commands {
    async fn command_execute(&self, program: &str, arguments: &[&str]) -> reqsign_core::Result<CommandOutput> {
        let line = [&[program], arguments].concat().join(" ");
        let run = async {
            let mut child = tokio::process::Command::new("sh")
                .args(["-c", &line])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            let mut stdout = Vec::new();
            if let Some(pipe) = child.stdout.take() {
                pipe.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut stdout).await?;
            }
            let status = child.wait().await?.code().unwrap_or(-1);
            Ok::<_, std::io::Error>(CommandOutput { status, stdout, stderr: Vec::new() })
        };
        let output = run.await.map_err(|error| {
            self.0.say(format!("can't be run: {error}"));
            failed("a command can't be run")
        })?;
        if !output.success() {
            self.0.say(format!("failed with status {}", output.status));
        }
        Ok(output)
    }
}

type Sender = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Requests to those who hand credentials out: a few an hour.
#[derive(Clone, Default)]
struct Http {
    sender: Arc<OnceLock<Sender>>,
    /// Where they go instead of to AWS.
    server: Option<Uri>,
    refused: Refused,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    fn sender(&self) -> reqsign_core::Result<&Sender> {
        if let Some(sender) = self.sender.get() {
            return Ok(sender);
        }
        let tls = crate::http::tls_config(true).map_err(|error| failed(error.to_string()))?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(self.sender.get_or_init(|| Client::builder(TokioExecutor::new()).build(connector)))
    }
}

impl HttpSend for Http {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        let (mut parts, body) = request.into_parts();
        if let Some(server) = &self.server {
            let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            parts.uri = format!("{}{path}", server.to_string().trim_end_matches('/')).parse().map_err(|_| failed("no URI"))?;
        }
        let sent = self.sender()?.request(Request::from_parts(parts, Full::new(body))).await;
        let answer = sent.map_err(|error| {
            self.refused.say(format!("can't be reached: {error}"));
            failed("no answer")
        })?;
        let (parts, body) = answer.into_parts();
        let body =
            Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|_| failed("an answer broke off, or is too long"))?;
        let body = body.to_bytes();
        if !parts.status.is_success() {
            self.refused.say(format!("answered {}: {}", parts.status.as_u16(), String::from_utf8_lossy(&body)));
        }
        Ok(Response::from_parts(parts, body))
    }
}
