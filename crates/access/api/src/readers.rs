//! Who may read what a cluster says of itself, and what is in its mounts.

use std::sync::Arc;

use forebay_rights::{Caller, Need, Who, needs};
use forebay_transport::{Admission, Credential, Deed, tell, unix_now};

use crate::asking::Asked;
use crate::refusal::Refusal;
use crate::visitor::Sender;

/// Those who may, as the ports of the process know them.
#[derive(Clone)]
pub struct Readers(Vec<Arc<Admission>>);

impl Readers {
    /// Whom one of these lets in, each to what it may read.
    pub fn new(admissions: Vec<Arc<Admission>>) -> Self {
        Self(admissions)
    }

    /// Whether a request to `path` has a bearer token of one who may, or needs none. A refusal is written down.
    pub(crate) fn let_in(&self, sender: &Sender, what: &'static str, path: &str) -> Result<(), Refusal> {
        needs::http(path).map_or(Ok(()), |need| self.check(sender, &need, what, path).map(drop))
    }

    /// Who sends a request, if it is one who has what the request needs. A refusal is written down.
    pub(crate) fn check(&self, sender: &Sender, need: &Need, what: &'static str, on: &str) -> Result<Who, Refusal> {
        self.caller(sender, need, what, on).map(|(who, _)| who)
    }

    /// The same with what that one has shown, to ask others in its name.
    pub(crate) fn caller(
        &self,
        sender: &Sender,
        need: &Need,
        what: &'static str,
        on: &str,
    ) -> Result<(Who, Credential), Refusal> {
        let mut refusal = ("unknown".to_string(), Refusal::unknown());
        for (caller, credential) in self.callers(sender) {
            match caller.may(need, unix_now(), |_| None) {
                Ok(()) => return Ok((caller.who().clone(), credential)),
                Err(error) => refusal = (caller.who().to_string(), error.into()),
            }
        }
        let (who, refusal) = refusal;
        tell(who, &sender.address, &Deed { port: "http", what, on: on.to_string() }, Some(refusal.error()));
        Err(refusal)
    }

    /// The parameters of a request. Who is nobody's hears of that, and not of what is wrong with them.
    pub(crate) fn asked<T>(
        &self,
        sender: &Sender,
        what: &'static str,
        path: &str,
        asked: Result<Asked<T>, Refusal>,
    ) -> Result<T, Refusal> {
        match asked {
            Ok(Asked(asked)) => Ok(asked),
            Err(wrong) => {
                self.check(sender, &needs::statement(), what, path)?;
                Err(wrong)
            }
        }
    }

    /// Whether who sends a request has a right beside the one that it was let in by. A no refuses nothing, and is not written down.
    pub(crate) fn may(&self, sender: &Sender, need: &Need) -> bool {
        self.callers(sender).iter().any(|(caller, _)| caller.may(need, unix_now(), |_| None).is_ok())
    }

    /// Who shows the bearer token of a request: a token's text is the administrator's of the configuration too, or the owner's.
    fn callers(&self, sender: &Sender) -> Vec<(Caller, Credential)> {
        let Some(text) = sender.bearer() else { return Vec::new() };
        let candidates = [Credential::token(text), Credential::owner(text)];
        let callers = candidates.iter().flatten().flat_map(|credential| {
            let caller = |readers: &Arc<Admission>| Some((readers.caller(credential).ok()?, credential.clone()));
            self.0.iter().filter_map(caller)
        });
        callers.collect()
    }
}
