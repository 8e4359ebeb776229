//! The locations that nodes ask for, each kept once.

use std::collections::HashSet;

use super::Namespace;
use crate::terms::{Location, NodeError, NodeErrorKind, NodeResult};

/// Locations that the nodes of one part ask for, at most.
const LABELS_MAX: usize = 1000;

/// The locations that nodes of a part ask for, by small numbers: nodes are many, locations few. 0 is anywhere.
#[derive(Debug, Default)]
pub(crate) struct Labels(Vec<Option<Location>>);

impl Labels {
    pub(crate) fn location(&self, label: u16) -> Location {
        let at = usize::from(label).checked_sub(1);
        at.and_then(|at| self.0.get(at)).cloned().flatten().unwrap_or_default()
    }

    fn label(&mut self, location: &Location) -> Option<u16> {
        let same = |it: &Option<Location>| it.as_ref() == Some(location);
        let at = self.0.iter().position(same).or_else(|| {
            let free = self.0.iter().position(Option::is_none);
            let free = free.or_else(|| (self.0.len() < LABELS_MAX).then_some(self.0.len()))?;
            self.0.resize(self.0.len().max(free + 1), None);
            self.0[free] = Some(location.clone());
            Some(free)
        });
        assert!(self.0.len() <= LABELS_MAX, "{} locations are kept", self.0.len());
        at.map(|at| at as u16 + 1)
    }

    fn keep(&mut self, used: &HashSet<u16>) {
        let is_known = |label: &u16| usize::from(*label) <= self.0.len();
        assert!(used.iter().all(is_known), "nodes have labels that were given");
        let numbered = (1..).zip(&mut self.0);
        numbered.filter(|(label, _)| !used.contains(label)).for_each(|(_, location)| *location = None);
    }
}

impl Namespace {
    /// The number of a location. `NoSpace` when nodes ask for too many; O(nodes) when they have so far.
    pub(crate) fn label(&mut self, location: &Location) -> NodeResult<u16> {
        if location.is_anywhere() {
            return Ok(0);
        }
        if let Some(label) = self.labels.label(location) {
            return Ok(label);
        }
        let used = self.every_node().map(|node| node.flags().label()).collect();
        self.labels.keep(&used);
        self.labels.label(location).ok_or_else(|| {
            NodeError::new(NodeErrorKind::NoSpace, format!("nodes of this worker ask for {LABELS_MAX} locations already"))
        })
    }
}
