//! `forebay token`: makes secrets here, of which the coordinator gets only what proves them, and lists and ends tokens.

use chrono::DateTime;
use forebay_client::{Client, Credential};
use forebay_protocol::{AdminRequest, ControlReply};
use forebay_transport::{random_secret, unix_now};
use forebay_types::{Grant, MountName, Role, Scope, TokenInfo};
use serde::Serialize;

use crate::cli::{TokenAddArgs, TokenCommand};
use crate::config::scope_of;
use crate::exit::Outcome;
use crate::output::Output;

/// A token as `--json` shows it.
#[derive(Serialize)]
struct Shown {
    id: String,
    /// Only of one that was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    role: Role,
    /// All without it.
    mounts: Option<Vec<String>>,
    created: String,
    expires: Option<String>,
}

/// Makes, lists and ends tokens.
pub(crate) async fn run(client: &Client, command: TokenCommand) -> Outcome {
    match command {
        TokenCommand::Add(args) => add(client, args).await,
        TokenCommand::Ls { json } => {
            let mut output = Output::new(json);
            let tokens = ask(client, AdminRequest::Tokens).await?;
            list(&mut output, &tokens)?;
            output.finish()
        }
        TokenCommand::Rm { name, json } => {
            let mut output = Output::new(json);
            for token in ask(client, AdminRequest::TokenRemove { name }).await? {
                match output.json() {
                    true => output.record(&shown(&token, None))?,
                    false => output.line(&format!("{} ended", token.id))?,
                }
            }
            output.finish()
        }
    }
}

async fn add(client: &Client, args: TokenAddArgs) -> Outcome {
    let role = match (args.write, args.admin) {
        (_, true) => Role::Admin,
        (true, _) => Role::Write,
        _ => Role::Read,
    };
    let expires = args.expires.map(|after| unix_now().saturating_add(after.as_secs()));
    let scope = if args.mounts.is_empty() { Scope::All } else { scope_of(&args.mounts)? };
    let grant = Grant { role, scope, expires };
    // The secret is made here: the coordinator gets what proofs of it are checked against, and never the secret.
    let secret = random_secret()?;
    let keys = Credential::owner(&secret)?.keys();
    for token in ask(client, AdminRequest::TokenAdd { name: args.name, grant, keys }).await? {
        let text = Credential::of_token(&token.id, &secret)?.text();
        let mut output = Output::new(args.json);
        match output.json() {
            true => output.record(&shown(&token, Some(text)))?,
            false => output.line(&text)?,
        }
        output.finish()?;
    }
    Ok(())
}

async fn ask(client: &Client, request: AdminRequest) -> Outcome<Vec<TokenInfo>> {
    match client.control(request).await? {
        ControlReply::Tokens(tokens) => Ok(tokens),
        other => Err(other.unexpected().into()),
    }
}

fn list(output: &mut Output, tokens: &[TokenInfo]) -> Outcome {
    let tokens: Vec<Shown> = tokens.iter().map(|token| shown(token, None)).collect();
    if output.json() {
        return tokens.iter().try_for_each(|token| output.record(token));
    }
    let row = |token: &Shown| {
        let mounts = token.mounts.as_ref().map_or("all".to_string(), |mounts| mounts.join(" "));
        let expires = token.expires.clone().unwrap_or("never".to_string());
        vec![token.id.clone(), token.role.to_string(), mounts, token.created.clone(), expires]
    };
    output.table(&["TOKEN", "MAY", "MOUNTS", "CREATED", "EXPIRES"], &[], &tokens.iter().map(row).collect::<Vec<_>>())
}

fn shown(token: &TokenInfo, text: Option<String>) -> Shown {
    let mounts = match &token.grant.scope {
        Scope::All => None,
        Scope::Only { mounts, temporary } => {
            let names = mounts.iter().map(MountName::to_string);
            Some(names.chain(temporary.then(|| MountName::temporary().to_string())).collect())
        }
    };
    Shown {
        id: token.id.clone(),
        token: text,
        role: token.grant.role,
        mounts,
        created: time(token.created),
        expires: token.grant.expires.map(time),
    }
}

fn time(secs: u64) -> String {
    let time = i64::try_from(secs).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    time.map_or_else(|| secs.to_string(), |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}
