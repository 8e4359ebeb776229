//! Which tokens there are: two of a name at most, so that the next one is handed out while the old one is still in use.

use std::sync::Arc;

use forebay_protocol::ControlReply;
use forebay_types::{Error, Grant, Result, TokenInfo, TokenKeys, Verifier, check_token_name};

use super::catalogue::limit;
use super::whole::failpoint;
use super::{Change, Command, State};

/// Every worker gets all of them.
const TOKENS_MAX: usize = 1000;
/// Of one name: one that is used, and the next one while it is handed out.
const VALID_MAX: usize = 2;

/// Tokens: kept by their ids, which are a name and a number.
impl State {
    pub(super) fn ask_token_add(&self, name: &str, grant: Grant, keys: TokenKeys) -> Result<Vec<Command>> {
        check_token_name(name)?;
        grant.check()?;
        limit("tokens", self.catalogue.tokens.len(), TOKENS_MAX)?;
        let ids = self.ids_of(name);
        if ids.len() >= VALID_MAX {
            return Err(Error::conflict(format!(
                "there are two tokens {name} already: remove the one that nobody uses any more, as in `forebay token rm {}`",
                ids[0]
            )));
        }
        let number = ids.iter().filter_map(|id| id.rsplit_once('.')?.1.parse::<u32>().ok()).max().unwrap_or(0);
        let id = format!("{name}.{}", number.saturating_add(1));
        Ok(vec![Command::Write(Change::AddToken { id, grant, keys })])
    }

    pub(super) fn ask_token_remove(&self, name: &str) -> Result<Vec<Command>> {
        let ids = if self.catalogue.tokens.contains_key(name) { vec![name.to_string()] } else { self.ids_of(name) };
        if ids.is_empty() {
            return Err(Error::not_found(format!("there is no token {name}: `forebay token ls` shows those that there are")));
        }
        Ok(vec![Command::Write(Change::RemoveTokens { ids })])
    }

    pub(super) fn token_added(&mut self, token: Verifier) -> ControlReply {
        let info = token.info();
        Arc::make_mut(&mut self.catalogue).tokens.insert(token.id.clone(), token);
        failpoint(format_args!("token {}", info.id));
        self.versions.credentials += 1;
        ControlReply::Tokens(vec![info])
    }

    pub(super) fn tokens_removed(&mut self, ids: &[String]) -> ControlReply {
        let tokens = &mut Arc::make_mut(&mut self.catalogue).tokens;
        let removed: Vec<TokenInfo> = ids.iter().filter_map(|id| tokens.remove(id)).map(|token| token.info()).collect();
        self.versions.credentials += 1;
        ControlReply::Tokens(removed)
    }

    fn ids_of(&self, name: &str) -> Vec<String> {
        let of_name = |id: &&String| id.rsplit_once('.').is_some_and(|(of, _)| of == name);
        self.catalogue.tokens.keys().filter(of_name).cloned().collect()
    }
}
