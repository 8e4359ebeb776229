//! What requests at a role's own HTTP port need.

use forebay_types::MountName;

use crate::{Need, Place};

/// To see what a cluster says of itself, metrics among it: it names all mounts.
pub const fn shown() -> Need {
    Need::read(Place::Everything)
}

/// To ask a dataset that lies in a mount.
pub fn dataset(mount: &MountName) -> Need {
    Need::read(Place::Named(mount.clone()))
}

/// To change records of a dataset that lies in a mount.
pub fn dataset_change(mount: &MountName) -> Need {
    Need::write(Place::Named(mount.clone()))
}

/// To order the sizes and layers of a dataset's replicas, which leaves less room for others, and to give up changes of it that were acknowledged.
pub fn dataset_orders(mount: &MountName) -> Need {
    Need::administer(Place::Named(mount.clone()))
}

/// To be told what is cut to who asks, or to have a statement of SQL run, which then reads what its caller may read, and is refused the rest
/// where that is.
pub const fn statement() -> Need {
    Need::read(Place::Cluster)
}

/// To have what lies in a mount brought into the tiers, or to be told where it is: costs requests to shared storage, and changes nothing.
pub fn object(mount: &MountName) -> Need {
    Need::read(Place::Named(mount.clone()))
}

/// To see a load of what lies in a mount that somebody else has begun, and to end it.
pub fn load_of_others(mount: &MountName) -> Need {
    Need::administer(Place::Named(mount.clone()))
}

/// To see what temporary data there is.
pub const fn temporary() -> Need {
    Need::read(Place::Temporary)
}

/// To see which tokens there are, as over the coordinator's own port.
pub const fn tokens() -> Need {
    Need::administer(Place::Cluster)
}

/// What a request at the port of `/metrics` needs, by its path. `None`: it is open to everybody, as it says nothing of the data:
/// whether a process runs and can serve, and the files of the console, which ask for the rest.
pub fn http(path: &str) -> Option<Need> {
    match path {
        "/healthz" | "/readyz" | "/" => None,
        path if path.starts_with("/console/") => None,
        // `/metrics`, `/api/v1`, and whatever comes to be there.
        _ => Some(shown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_is_open_that_is_not_in_the_list() {
        for open in ["/healthz", "/readyz", "/", "/console/console.js"] {
            assert_eq!(http(open), None, "{open}");
        }
        for path in [
            "",
            "/metrics",
            "/metrics/",
            "/healthz/",
            "/readyz/x",
            "/readyz?",
            "//",
            "/console",
            "/api/v1/status",
            "/api/v2",
            "/new",
        ] {
            assert_eq!(http(path), Some(shown()), "{path}");
        }
    }
}
