//! Who somebody is, and what they show for it: secrets, tokens, who is let in, and what of it is written down.

pub(crate) mod admission;
pub(crate) mod audit;
pub(crate) mod peer;
pub(crate) mod token;

use std::fmt;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_types::{Error, Grant, Result, Role, TokenKeys, Verifier, check_token_name};

/// Fewest bytes of a secret: fewer can be guessed.
pub const SECRET_BYTES_MIN: usize = 16;
const SECRET_BYTES_MAX: usize = 1024;
/// What tokens that were made here begin with.
const TOKEN_PREFIX: &str = "fb.";
/// Random bytes of a secret that is made here.
const SECRET_RANDOM_BYTES: usize = 32;

/// The user whose processes these are.
pub(crate) const OWNER: &str = "owner";
/// The processes of the cluster.
pub(crate) const MEMBER: &str = "member";
/// The administrator whom the coordinator's own configuration names.
const ADMIN: &str = "admin";

/// What this process shows where it connects: a name, and the secret that it proves to know.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    id: Arc<str>,
    secret: Arc<str>,
}

impl Credential {
    /// The credential of the user whose processes these are. `Invalid` when the secret has fewer than 16 bytes.
    pub fn owner(secret: &str) -> Result<Self> {
        Self::new(OWNER, secret)
    }

    /// The credential of the cluster's processes.
    pub fn member(secret: &str) -> Result<Self> {
        Self::new(MEMBER, secret)
    }

    /// The credential in a token's text: one that `forebay token add` made, or any text that the coordinator's configuration
    /// has as its administrator's.
    pub fn token(text: &str) -> Result<Self> {
        let text = text.trim();
        match text.strip_prefix(TOKEN_PREFIX).and_then(|rest| rest.rsplit_once('.')) {
            Some((id, secret)) => {
                check_id(id)?;
                Self::new(id, secret)
            }
            None => Self::new(ADMIN, text),
        }
    }

    /// The token of an id, as it was given to one whose secret was made elsewhere.
    pub fn of_token(id: &str, secret: &str) -> Result<Self> {
        check_id(id)?;
        Self::new(id, secret)
    }

    /// A new token: the number says which of its name it is.
    pub fn generate(name: &str, number: u32) -> Result<Self> {
        check_token_name(name)?;
        Self::new(&format!("{name}.{number}"), &random_secret()?)
    }

    fn new(id: &str, secret: &str) -> Result<Self> {
        let secret = secret.trim();
        match secret.len() {
            ..SECRET_BYTES_MIN => Err(Error::invalid(format!(
                "the secret of {id} has {} bytes, which can be guessed: use {SECRET_BYTES_MIN} or more, as `forebay token add` makes them",
                secret.len()
            ))),
            SECRET_BYTES_MIN..=SECRET_BYTES_MAX => Ok(Self { id: id.into(), secret: secret.into() }),
            _ => Err(Error::invalid(format!("the secret of {id} has more than {SECRET_BYTES_MAX} bytes"))),
        }
    }

    /// What its holder names it by.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its holder, as the audit log names them.
    pub fn who(&self) -> String {
        if [OWNER, MEMBER].contains(&self.id()) { self.id.to_string() } else { format!("token {}", self.id) }
    }

    /// The text that people keep and show.
    pub fn text(&self) -> String {
        if self.id.contains('.') { format!("{TOKEN_PREFIX}{}.{}", self.id, self.secret) } else { self.secret.to_string() }
    }

    /// What proofs of it are checked against.
    pub fn keys(&self) -> TokenKeys {
        token::keys_of(self.secret())
    }

    /// What lets its holder in with these rights, made now.
    pub fn verifier(&self, grant: Grant, created: u64) -> Verifier {
        Verifier { id: self.id.to_string(), grant, created, keys: self.keys() }
    }

    /// The same for what is in the configuration, and has no rights to be looked up.
    pub(crate) fn standing(&self) -> Verifier {
        self.verifier(Grant::everywhere(Role::Admin), 0)
    }

    pub(crate) fn secret(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    /// What only this process knows: who has not been given anything else can talk to itself.
    pub(crate) fn of_this_process() -> Self {
        static OWN: LazyLock<Arc<str>> = LazyLock::new(|| random_secret().expect("the system gives random numbers").into());
        Self { id: OWNER.into(), secret: Arc::clone(&OWN) }
    }
}

/// A secret that nobody can guess.
pub fn random_secret() -> Result<String> {
    let mut random = [0; SECRET_RANDOM_BYTES];
    token::fill(&mut random)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

/// `Invalid` when it is none of a token: a name, a point and a number.
fn check_id(id: &str) -> Result<()> {
    let legal = id
        .split_once('.')
        .is_some_and(|(name, number)| check_token_name(name).is_ok() && number.len() <= 9 && number.parse::<u32>().is_ok());
    if legal { Ok(()) } else { Err(Error::invalid("this is no token: take all of what `forebay token add` printed")) }
}

/// Leaves the secret out, so that it can't reach a log.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credential").field(&self.id).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_printed() {
        let token = Credential::generate("etl-nightly", 2).unwrap();
        assert_eq!(token.id(), "etl-nightly.2");
        let text = token.text();
        assert!(text.starts_with("fb.etl-nightly.2."), "{text}");
        assert_eq!(Credential::token(&format!(" {text}\n")).unwrap(), token);
        // Any other text is the administrator's of the configuration.
        let admin = Credential::token("a text of the administrator").unwrap();
        assert_eq!((admin.id(), admin.text().as_str()), ("admin", "a text of the administrator"));
        let owner = Credential::owner("a secret of the owner").unwrap();
        assert_eq!([token.who(), admin.who(), owner.who()], ["token etl-nightly.2", "token admin", "owner"]);
        for wrong in ["fb.etl.1.short", "fb.etl.x.0123456789abcdef", "fb.Etl.1.0123456789abcdef", "fifteen bytes: "] {
            assert!(Credential::token(wrong).is_err(), "{wrong}");
        }
        assert!(!format!("{token:?}").contains(&text[16..]));
    }
}
