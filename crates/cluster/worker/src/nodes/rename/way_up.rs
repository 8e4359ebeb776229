//! Where a container is that another one is to come into: not in that one.

use forebay_nodes::{DirId, Namespace, NodeError, NodeErrorKind, NodeResult, ROOT, WayUp};
use forebay_protocol::{NodeReply, PeerCall, PeerOp};
use forebay_runtime::{Defect, planted};
use forebay_transport::Response;

use crate::nodes::Nodes;
use crate::nodes::tree::misfit;
use crate::nodes::values::reply;

/// Steps of a way up, from one worker to the next, at most.
const STEPS_MAX: usize = 1_000;

impl Nodes {
    /// Whether all of the way from `dir` up to the root is here, so that nothing changes on it while the names are locked. `Invalid` when
    /// it goes through the container that has this name.
    pub(super) fn way_is_here(names: &Namespace, (at, name): (DirId, &str), dir: DirId) -> NodeResult<bool> {
        let Some(id) = names.container_of(at, name) else { return Ok(true) };
        if planted(Defect::CircleInRename) { Ok(true) } else { Ok(names.way_up(dir, id)? == WayUp::At(ROOT)) }
    }

    /// `Invalid` when the way from `dir` up to the root goes through the container `outer`, whose name is on its way, `Retry` while another
    /// container on it is on its way too. Of names that move into each other at least one so finds the other, since each stays marked
    /// from before it is looked for until it has its new place.
    pub(super) async fn keep_out(&self, outer: DirId, dir: DirId) -> NodeResult<()> {
        if planted(Defect::CircleInRename) {
            return Ok(());
        }
        let (mut at, mut asked, mut is_hint) = (dir, dir.worker, false);
        for _ in 0..STEPS_MAX {
            if at == ROOT {
                return Ok(());
            }
            match self.go_up(asked, at, outer).await? {
                WayUp::At(next) => (at, asked, is_hint) = (next, next.worker, false),
                WayUp::Perhaps(parent) if !is_hint => (asked, is_hint) = (parent.worker, true),
                WayUp::Perhaps(_) => break,
            }
        }
        Err(NodeError::new(NodeErrorKind::Retry, "the containers that it is to come into are being renamed: try again"))
    }

    async fn go_up(&self, worker: u64, from: DirId, outer: DirId) -> NodeResult<WayUp> {
        let has_root = || self.names.read().has(ROOT);
        if worker == self.worker || worker == ROOT.worker && has_root() {
            return self.names.read().way_up(from, outer);
        }
        let op = PeerOp::WayUp { outer };
        match self.ask_nodes(worker, &PeerCall { from, path: "", op }, None).await?.reply()? {
            NodeReply::Dir(next) => Ok(WayUp::At(next)),
            NodeReply::Elsewhere { dir, .. } => Ok(WayUp::Perhaps(dir)),
            _ => Err(misfit()),
        }
    }

    /// The same for another worker.
    pub(in crate::nodes) fn answer_way_up(&self, from: DirId, outer: DirId) -> NodeResult<Response> {
        Ok(reply(&match self.names.read().way_up(from, outer)? {
            WayUp::At(dir) => NodeReply::Dir(dir),
            WayUp::Perhaps(dir) => NodeReply::Elsewhere { dir, rest: 0 },
        }))
    }
}
