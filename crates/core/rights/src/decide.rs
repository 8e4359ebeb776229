//! The one place that says yes or no: a right on one side, what a request needs on the other.

use std::fmt;

use forebay_types::{Error, Grant, MountId, MountName, Result, Role, Scope};

use crate::Who;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Shows something.
    Read,
    /// Changes data.
    Write,
    /// Changes the cluster.
    Administer,
    /// Is a process of the cluster.
    Serve,
}

/// Where it does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What belongs to no mount; what is shown of it is cut to what the caller may see.
    Cluster,
    /// Everything at once: the memory in which a worker keeps all mounts, a plan that reads any of them.
    Everything,
    /// A mount.
    Mount(MountId),
    /// A mount by its name, which may be no mount's yet.
    Named(MountName),
    /// The temporary namespace.
    Temporary,
    /// What the same connection has begun, when its right was looked at.
    Begun,
}

/// What a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it does.
    pub action: Action,
    /// Where.
    pub place: Place,
}

impl Need {
    /// To show something.
    pub const fn read(place: Place) -> Self {
        Self { action: Action::Read, place }
    }

    /// To change data.
    pub const fn write(place: Place) -> Self {
        Self { action: Action::Write, place }
    }

    /// To change the cluster.
    pub const fn administer(place: Place) -> Self {
        Self { action: Action::Administer, place }
    }

    /// To be a process of the cluster.
    pub const fn serve() -> Self {
        Self { action: Action::Serve, place: Place::Everything }
    }
}

/// Whether `who` has what is needed: `Denied` with the remedy where not. `now` is in seconds since 1970; `name_of` gives the
/// names of mounts, and is asked for who may reach some of them only, and for what who is refused is told.
pub fn decide(who: &Who, need: &Need, now: u64, name_of: impl Fn(MountId) -> Option<MountName>) -> Result<()> {
    let fits = match who {
        Who::Owner => true,
        // A process of the cluster serves everybody's data; whom it serves is what others decide.
        Who::Member => need.action != Action::Administer,
        Who::Holder(_) => {
            let Some(grant) = who.grant() else { return Err(refusal(who, need, now, name_of)) };
            if has_expired(grant, now) {
                return Err(Error::denied(format!("{who} has expired: ask an administrator for another one")));
            }
            grants(grant, need, now, &name_of)
        }
        Who::Anonymous(role) => role.is_some_and(|role| grants(&Grant::everywhere(role), need, now, &name_of)),
    };
    let is_process = matches!(who, Who::Owner | Who::Member);
    assert!(fits || *who != Who::Owner, "the owner may do anything");
    assert!(!fits || is_process || need.action != Action::Serve, "{who} may be a process of the cluster");
    assert!(!fits || who.grant().is_none_or(|grant| !has_expired(grant, now)), "{who} has expired, and may {need}");
    if fits { Ok(()) } else { Err(refusal(who, need, now, name_of)) }
}

fn has_expired(grant: &Grant, now: u64) -> bool {
    grant.expires.is_some_and(|expires| now >= expires)
}

/// Whether a right is what is needed, now.
pub fn grants(grant: &Grant, need: &Need, now: u64, name_of: impl Fn(MountId) -> Option<MountName>) -> bool {
    if has_expired(grant, now) {
        return false;
    }
    let least = match need.action {
        Action::Read => Role::Read,
        Action::Write => Role::Write,
        Action::Administer => Role::Admin,
        Action::Serve => return false,
    };
    if grant.role < least {
        return false;
    }
    let Scope::Only { mounts, temporary } = &grant.scope else { return true };
    let has = |name: &MountName| if name.is_temporary() { *temporary } else { mounts.contains(name) };
    match &need.place {
        Place::Cluster => need.action == Action::Read,
        Place::Everything => false,
        Place::Mount(id) => name_of(*id).is_some_and(|name| has(&name)),
        Place::Named(name) => has(name),
        Place::Temporary => *temporary,
        Place::Begun => true,
    }
}

fn refusal(who: &Who, need: &Need, now: u64, name_of: impl Fn(MountId) -> Option<MountName>) -> Error {
    // Who may see a mount is told its name. To others it is a number.
    let is_seen = |grant: &Grant, id| grants(grant, &Need::read(Place::Mount(id)), now, &name_of);
    let named = match (&need.place, who.grant()) {
        (Place::Mount(id), Some(grant)) if is_seen(grant, *id) => name_of(*id),
        _ => None,
    };
    let named = named.map(|name| Need { action: need.action, place: Place::Named(name) });
    let need = named.as_ref().unwrap_or(need);
    let remedy = match need.action {
        Action::Read => "a token with --read",
        Action::Write => "a token with --write",
        Action::Administer => "a token with --admin",
        Action::Serve => "the cluster's secret (cluster-secret-file), which only its processes have",
    };
    Error::denied(format!("{who} may not {need}: that takes {remedy} for it"))
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.action {
            Action::Read => "read",
            Action::Write => "write",
            Action::Administer => "administer",
            Action::Serve => return f.write_str("be a process of the cluster"),
        };
        match &self.place {
            Place::Cluster => write!(f, "{verb} what belongs to no mount"),
            Place::Everything => write!(f, "{verb} all mounts at once"),
            Place::Mount(id) => write!(f, "{verb} mount number {}", id.0),
            Place::Named(name) => write!(f, "{verb} mount {name}"),
            Place::Temporary => write!(f, "{verb} temporary data"),
            Place::Begun => write!(f, "{verb} here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_types::{TokenKeys, Verifier};

    use super::*;

    #[test]
    fn a_refusal_names_a_mount_to_who_may_see_it() {
        let name = |id: MountId| ["lake", "hidden"].get(id.0 as usize).map(|name| name.parse::<MountName>().expect("a name"));
        let grant = Grant {
            role: Role::Read,
            scope: Scope::Only { mounts: vec!["lake".parse::<MountName>().expect("a name")], temporary: false },
            expires: None,
        };
        let keys = TokenKeys { stored: [0; 32], server: [0; 32] };
        let who = Who::Holder(Arc::new(Verifier { id: "etl.1".into(), grant, created: 0, keys }));
        let refused = |id| {
            let error = decide(&who, &Need::write(Place::Mount(MountId(id))), 0, name).expect_err("it may only read");
            error.message().to_string()
        };
        assert!(refused(0).starts_with("token etl.1 may not write mount lake:"), "{}", refused(0));
        assert!(!refused(1).contains("hidden") && refused(1).contains("mount number 1"), "{}", refused(1));
        assert!(decide(&who, &Need::read(Place::Mount(MountId(0))), 0, name).is_ok());
    }
}
