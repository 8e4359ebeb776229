//! Takes back splits that lie on a cycle.

use std::collections::HashMap;

use crate::Snapshot;
use crate::plan::packing::{Packing, Piece};

/// Takes the cycles out of a packing: where pieces lead from a worker over segments and other workers back to it, counts
/// can be shifted around until a piece is empty, and no worker's load changes. What is left is a forest, as every output
/// of Algorithm 1 is, so there are at most segments + workers - 1 pieces.
pub(crate) fn cut_cycles(snapshot: &Snapshot<'_>, packing: &mut Packing) {
    let mut pieces = vec![0u32; snapshot.segments.len()];
    for piece in packing.bags.iter().flatten() {
        pieces[piece.segment as usize] += 1;
    }
    // Only split segments can be on a cycle. Nodes: workers, then split segments.
    let workers = packing.bags.len();
    let mut nodes: HashMap<u32, usize> = HashMap::new();
    let mut edges: Vec<(usize, u32, Piece)> = Vec::new();
    for (worker, bag) in (0..).zip(&packing.bags) {
        for piece in bag.iter().filter(|piece| pieces[piece.segment as usize] > 1) {
            let next = workers + nodes.len();
            edges.push((*nodes.entry(piece.segment).or_insert(next), worker, *piece));
        }
    }
    let mut forest = Forest::new(workers + nodes.len());
    for (node, worker, piece) in edges {
        for (worker, segment) in forest.add(node, worker as usize, piece) {
            let bag = &mut packing.bags[worker];
            bag.retain(|piece| piece.segment != segment);
            packing.bytes[worker] = packing.bytes[worker].saturating_add(snapshot.segments[segment as usize].bytes);
        }
    }
    for edge in forest.edges.iter().filter(|edge| edge.changed && edge.count > 0) {
        let bag = &mut packing.bags[edge.worker];
        let piece = bag.iter_mut().find(|piece| piece.segment == edge.segment).expect("an edge is a piece");
        piece.count = edge.count;
    }
}

struct Edge {
    node: usize,
    worker: usize,
    segment: u32,
    count: u64,
    changed: bool,
}

/// Pieces of split segments without cycles.
struct Forest {
    edges: Vec<Edge>,
    /// By node: its edges.
    at: Vec<Vec<usize>>,
    /// Union-find over all edges that were ever added: different roots, no path.
    roots: Vec<usize>,
}

impl Forest {
    fn new(nodes: usize) -> Self {
        Self { edges: Vec::new(), at: vec![Vec::new(); nodes], roots: (0..nodes).collect() }
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.roots[node] != node {
            self.roots[node] = self.roots[self.roots[node]];
            node = self.roots[node];
        }
        node
    }

    /// Adds a piece; gives those, as (worker, segment), that became empty because it closed a cycle.
    fn add(&mut self, node: usize, worker: usize, piece: Piece) -> Vec<(usize, u32)> {
        let new = self.edges.len();
        self.edges.push(Edge { node, worker, segment: piece.segment, count: piece.count, changed: false });
        let (one, other) = (self.root(node), self.root(worker));
        let path = if one == other { self.path(worker, node) } else { None };
        self.roots[one] = other;
        self.at[node].push(new);
        self.at[worker].push(new);
        let Some(path) = path else { return Vec::new() };
        // Around the cycle every second piece gives and every other takes; a load is one of each at every worker, and a
        // segment's sum too. The smallest giver becomes empty.
        let cycle: Vec<usize> = std::iter::once(new).chain(path).collect();
        let (gives, takes): (Vec<_>, Vec<_>) = cycle.iter().enumerate().partition(|(place, _)| place % 2 == 0);
        let least = |side: &[(usize, &usize)]| side.iter().map(|(_, edge)| self.edges[**edge].count).min().unwrap_or(0);
        let (gives, takes, shift) = match (least(&gives), least(&takes)) {
            (one, other) if one <= other => (gives, takes, one),
            (_, other) => (takes, gives, other),
        };
        for (_, edge) in takes {
            self.edges[*edge].count += shift;
            self.edges[*edge].changed = true;
        }
        let mut emptied = Vec::new();
        for (_, edge) in gives {
            let edge_mut = &mut self.edges[*edge];
            edge_mut.count -= shift;
            edge_mut.changed = true;
            if edge_mut.count == 0 {
                emptied.push((edge_mut.worker, edge_mut.segment));
                let (node, worker) = (edge_mut.node, edge_mut.worker);
                self.at[node].retain(|other| other != edge);
                self.at[worker].retain(|other| other != edge);
            }
        }
        emptied
    }

    /// The edges from one node to another; none when they aren't connected (any more).
    fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut came: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            if node == to {
                let mut path = Vec::new();
                let mut node = to;
                while node != from {
                    let (edge, before) = came[&node];
                    path.push(edge);
                    node = before;
                }
                path.reverse();
                return Some(path);
            }
            for edge in &self.at[node] {
                let Edge { node: one, worker: other, .. } = self.edges[*edge];
                let next = if one == node { other } else { one };
                if next != from && !came.contains_key(&next) {
                    came.insert(next, (*edge, node));
                    stack.push(next);
                }
            }
        }
        None
    }
}
