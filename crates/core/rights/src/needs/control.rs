//! The table of rights for the coordinator's port, request by request.

use forebay_protocol::{AdminRequest, ControlCall, ControlRequest};

use crate::{Need, Place};

/// What a request to the coordinator needs.
pub fn control(call: &ControlCall) -> Need {
    match call {
        ControlCall::Ask(request) => ask(request),
        ControlCall::Administer(request) => administer(request),
        ControlCall::Serve(_) => Need::serve(),
    }
}

fn ask(request: &ControlRequest) -> Need {
    match request {
        ControlRequest::View { .. }
        | ControlRequest::Tables
        | ControlRequest::Status
        | ControlRequest::Routes { .. }
        | ControlRequest::Placement { .. }
        | ControlRequest::Scheduler
        | ControlRequest::WhoAmI => Need::read(Place::Cluster),
        ControlRequest::Budget { mount, .. } => Need::read(Place::Mount(*mount)),
        // Costs a worker what it knows of objects, which is asked for anew.
        ControlRequest::Unheard { mount, .. } => Need::write(Place::Mount(*mount)),
        ControlRequest::TableAdd { .. } | ControlRequest::TableRemove { .. } => Need::write(Place::Cluster),
    }
}

fn administer(request: &AdminRequest) -> Need {
    match request {
        // Which storage a name stands for decides what everyone reads there.
        AdminRequest::MountAdd { .. } => Need::administer(Place::Cluster),
        AdminRequest::MountSet { name, .. } | AdminRequest::MountRemove { name } => Need::administer(Place::Named(name.clone())),
        AdminRequest::PinAdd { path } | AdminRequest::PinRemove { path } => Need::administer(Place::Named(path.mount().clone())),
        AdminRequest::Drain { .. } | AdminRequest::TokenAdd { .. } | AdminRequest::TokenRemove { .. } | AdminRequest::Tokens => {
            Need::administer(Place::Cluster)
        }
    }
}
