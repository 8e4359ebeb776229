//! Whom a listener lets in.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::time::UNIX_EPOCH;

use forebay_rights::{Caller, Who};
use forebay_types::{Error, Result, Verifier};
use parking_lot::RwLock;

use crate::Credential;
use crate::credentials::{MEMBER, OWNER};

/// Whom a listener lets in: credentials that the configuration names, and those that the coordinator keeps.
#[derive(Default)]
pub struct Admission {
    standing: HashMap<String, Entry>,
    listed: RwLock<HashMap<String, Entry>>,
}

/// A credential that is let in.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) verifier: Arc<Verifier>,
    who: Who,
    ended: Arc<AtomicBool>,
}

impl Entry {
    fn new(verifier: Verifier) -> Self {
        let verifier = Arc::new(verifier);
        let who = match verifier.id.as_str() {
            OWNER => Who::Owner,
            MEMBER => Who::Member,
            _ => Who::Holder(Arc::clone(&verifier)),
        };
        Self { verifier, who, ended: Arc::default() }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::until(self.who.clone(), Arc::clone(&self.ended))
    }
}

impl Admission {
    /// Lets the holders of these in, always.
    pub fn of<'a>(standing: impl IntoIterator<Item = &'a Credential>) -> Self {
        let standing = standing.into_iter().map(|credential| {
            let verifier = credential.standing();
            (verifier.id.clone(), Entry::new(verifier))
        });
        Self { standing: standing.collect(), listed: RwLock::default() }
    }

    /// Lets the holders of these in as well from now on, and those of all that were given before and are not among these no
    /// more: not on connections that stand either.
    pub fn set(&self, verifiers: Vec<Verifier>) {
        let mut listed = self.listed.write();
        let mut before = std::mem::take(&mut *listed);
        for verifier in verifiers {
            let id = verifier.id.clone();
            let entry = match before.remove(&id) {
                Some(entry) if *entry.verifier == verifier => entry,
                Some(changed) => {
                    changed.ended.store(true, Release);
                    Entry::new(verifier)
                }
                None => Entry::new(verifier),
            };
            listed.insert(id, entry);
        }
        before.into_values().for_each(|gone| gone.ended.store(true, Release));
    }

    /// What the configuration names, for those who are to let the same in.
    pub fn standing(&self) -> Vec<Verifier> {
        self.standing.values().map(|entry| (*entry.verifier).clone()).collect()
    }

    /// Who shows this credential. `Denied` when nobody does who is let in.
    pub fn caller(&self, credential: &Credential) -> Result<Caller> {
        let entry = self.find(credential.id()).filter(|entry| entry.verifier.keys == credential.keys());
        entry.map(|entry| entry.caller()).ok_or_else(|| unknown(credential.id()))
    }

    pub(crate) fn find(&self, id: &str) -> Option<Entry> {
        self.standing.get(id).cloned().or_else(|| self.listed.read().get(id).cloned())
    }
}

/// Seconds since 1970, by which rights end.
pub fn unix_now() -> u64 {
    // A clock before 1970 is none: rights that end have ended.
    forebay_runtime::system_time().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs())
}

/// The same whether there is no such name or the secret is another one.
pub(crate) fn unknown(id: &str) -> Error {
    Error::denied(format!(
        "the credential {id:?} is none of this cluster, or was taken away: see FOREBAY_TOKEN (or token-file), and for a process of \
         the cluster FOREBAY_CLUSTER_SECRET (or cluster-secret-file)"
    ))
}
