//! Whether a process can serve, by its roles.

use std::sync::Arc;

use forebay_types::Result;
use parking_lot::Mutex;

/// Says whether a role can serve now, with the reason where it can't. It is asked by anybody and often: it waits for nothing, and names
/// no place or secret.
type Check = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// What roles a process has, and how to see whether each can serve. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Readiness(Arc<Mutex<Vec<Role>>>);

/// A role, and its check once it has started.
type Role = (&'static str, Option<Check>);

impl Readiness {
    /// Of roles that are being started.
    pub fn of(roles: impl IntoIterator<Item = &'static str>) -> Self {
        Self(Arc::new(Mutex::new(roles.into_iter().map(|role| (role, None)).collect())))
    }

    /// A role has started: from now on it is ready when `check` says so.
    pub fn started(&self, role: &'static str, check: impl Fn() -> Result<()> + Send + Sync + 'static) {
        let mut roles = self.0.lock();
        let check: Option<Check> = Some(Arc::new(check));
        match roles.iter_mut().find(|(known, _)| *known == role) {
            Some((_, there)) => *there = check,
            None => roles.push((role, check)),
        }
    }

    /// Whether the process has such a role, started or not.
    pub(crate) fn has(&self, role: &str) -> bool {
        self.0.lock().iter().any(|(known, _)| *known == role)
    }

    /// The first role that can't serve, and why, in a line.
    pub(crate) fn look(&self) -> std::result::Result<(), String> {
        let roles = self.0.lock().clone();
        for (role, check) in roles {
            let Some(check) = check else { return Err(format!("{role}: it is being started")) };
            check().map_err(|error| format!("{role}: {}", error.message().replace(char::is_control, " ")))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use forebay_types::Error;

    use super::*;

    #[test]
    fn a_process_is_ready_when_all_of_its_roles_are() {
        let (ready, reached) = (Readiness::of(["coordinator", "worker"]), Arc::new(AtomicBool::new(true)));
        assert_eq!(ready.look(), Err("coordinator: it is being started".to_string()));
        let seen = Arc::clone(&reached);
        ready.started("coordinator", move || match seen.load(Relaxed) {
            true => Ok(()),
            false => Err(Error::retry("its database\ndoes not answer")),
        });
        assert_eq!(ready.look(), Err("worker: it is being started".to_string()));
        ready.started("worker", || Ok(()));
        assert_eq!(ready.look(), Ok(()));
        reached.store(false, Relaxed);
        assert_eq!(ready.look(), Err("coordinator: its database does not answer".to_string()), "in one line");
    }
}
