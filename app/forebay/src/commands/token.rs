//! `forebay token`: makes secrets here, of which the coordinator gets only what proves them, and lists and ends tokens.

use forebay_api::Token;
use forebay_client::{Client, Credential};
use forebay_protocol::{AdminRequest, ControlReply};
use forebay_transport::{random_secret, unix_now};
use forebay_types::{Grant, Mount, MountName, Role, Scope, TokenInfo};
use serde::Serialize;

use crate::cli::{TokenAddArgs, TokenCommand};
use crate::config::scope_of;
use crate::exit::Outcome;
use crate::output::{Output, list, show, time};

/// A token that was just made.
#[derive(Serialize)]
struct Made<'a> {
    /// What its holder shows.
    token: &'a str,
    #[serde(flatten)]
    of: Token,
}

pub(crate) async fn run(client: &Client, command: TokenCommand) -> Outcome {
    match command {
        TokenCommand::Add(args) => add(client, args).await,
        TokenCommand::Ls { json } => {
            let tokens = ask(client, AdminRequest::Tokens).await?;
            let tokens: Vec<Token> = tokens.iter().map(|token| Token::of(token, time)).collect();
            list(json, &tokens, &["TOKEN", "MAY", "MOUNTS", "CREATED", "EXPIRES"], &[], Token::row)
        }
        TokenCommand::Rm { name, json } => {
            let mut output = Output::new(json);
            for token in ask(client, AdminRequest::TokenRemove { name }).await? {
                match output.json {
                    true => output.record(&Token::of(&token, time))?,
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
    for name in unknown(&args.mounts, &client.view().mounts) {
        eprintln!(
            "there is no mount {name} yet: the token is for it as soon as there is one, `forebay mount ls` lists those there are"
        );
    }
    let grant = Grant { role, scope, expires };
    // The secret is made here: the coordinator gets what proofs of it are checked against, and never the secret.
    let secret = random_secret()?;
    let keys = Credential::owner(&secret)?.keys();
    for token in ask(client, AdminRequest::TokenAdd { name: args.name, grant, keys }).await? {
        let text = Credential::of_token(&token.id, &secret)?.text();
        show(args.json, &Made { token: &text, of: Token::of(&token, time) }, |output| output.line(&text))?;
    }
    Ok(())
}

/// The names that no mount has; `tmp` is that of temporary data.
fn unknown<'a>(names: &'a [String], mounts: &[Mount]) -> Vec<&'a str> {
    let is_there = |name: &str| name == MountName::temporary().as_str() || mounts.iter().any(|mount| mount.name.as_str() == name);
    names.iter().map(String::as_str).filter(|name| !is_there(name)).collect()
}

async fn ask(client: &Client, request: AdminRequest) -> Outcome<Vec<TokenInfo>> {
    match client.control(request).await? {
        ControlReply::Tokens(tokens) => Ok(tokens),
        other => Err(other.unexpected().into()),
    }
}
