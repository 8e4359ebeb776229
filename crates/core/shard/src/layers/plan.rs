//! Which layers a shard of some size should have: the next one is the one that gains most throughput a byte.

use std::collections::BTreeSet;

use super::id::{LayerId, LayerKind};
use super::shape::{RATE_MAX, Shape};
use crate::base::Base;
use crate::sampling::{QueryCounters, SUBSTRING_HITS};

// All costs are in steps of one chain of a get, as measured on TPC-H lineitem of 100 MB.
/// What a get costs beside the steps of its longest chain.
const GET_COST: f64 = 8.0;
/// Unpacking a block of records, and reading a plain record.
const BLOCK_COST: f64 = 9.0;
const PLAIN_COST: f64 = 1.5;
/// Backward search, for each symbol of the value, and a hit that is read from an array.
const SEARCH_COST: f64 = 1.6;
const HIT_COST: f64 = 0.15;
/// The same with postings: a look into the table, a step for each symbol, and a hit.
const POSTINGS_COST: f64 = 2.0;
const POSTINGS_STEP_COST: f64 = 0.3;
const POSTINGS_HIT_COST: f64 = 0.1;
/// The same with an index.
const INDEX_COST: f64 = 4.0;
const INDEX_HIT_COST: f64 = 0.01;
/// Walks overlap, chains of one get less so.
const OVERLAP: f64 = 3.0;

/// The layers beyond the base that bring the shard to `ratio` of its input, or as near below as slices allow.
///
/// Layers are taken one by one, by what they gain a byte, and once more without those that later ones have made useless.
/// That never gives back what a text layer makes useless in part, so the plans that begin with a whole one are tried too, and
/// the best one stays.
pub(crate) fn dial(base: &Base, ratio: f64, counters: &QueryCounters) -> Vec<LayerId> {
    let budget = ratio * base.numbers.input_bytes as f64 - base.bytes as f64;
    let mut best: Option<Plan> = None;
    for first in [None, Some(LayerKind::Blocks), Some(LayerKind::Plain)] {
        let mut without = BTreeSet::new();
        while let Some(plan) = greedy(base, budget, counters, first, &without) {
            let before = without.len();
            without.extend(plan.useless.iter().copied());
            let is_done = without.len() == before;
            if best.as_ref().is_none_or(|best| plan.cost < best.cost) {
                best = Some(plan);
            }
            if is_done {
                break;
            }
        }
    }
    best.map_or_else(Vec::new, |plan| plan.chosen)
}

/// The chosen layers, what queries cost with them, and the arrays that lower the cost only once others are there too.
struct Plan {
    chosen: Vec<LayerId>,
    cost: f64,
    useless: Vec<(LayerKind, u16)>,
}

/// Takes `first`, then what gains most a byte while it fits. `None` if `first` doesn't fit.
fn greedy(
    base: &Base,
    mut budget: f64,
    counters: &QueryCounters,
    first: Option<LayerKind>,
    without: &BTreeSet<(LayerKind, u16)>,
) -> Option<Plan> {
    let mut model = Model::new(base, counters);
    let mut chosen = Vec::new();
    let mut missing = false;
    // What is useless fills up what is left, so that the dial has no jumps.
    let (mut last, mut layers): (Vec<_>, Vec<_>) =
        candidates(base).into_iter().partition(|(kind, which, _)| without.contains(&(*kind, *which)));
    let mut text_begun = false;
    let mut next = None;
    if let Some(first) = first {
        let at = layers.iter().position(|(kind, ..)| *kind == first)?;
        if layers[at].2.bytes * 1.02 > budget {
            return None;
        }
        next = Some(at);
    }
    loop {
        if layers.is_empty() {
            layers = std::mem::take(&mut last);
        }
        let Some(at) = next.take().or_else(|| model.best(&layers)) else { break };
        let (kind, which, shape) = layers.swap_remove(at);
        // Part of an index or of postings answers nothing, and of the text layers one is filled at a time.
        let text = matches!(kind, LayerKind::Blocks | LayerKind::Plain);
        if (matches!(kind, LayerKind::Index | LayerKind::Postings) && shape.bytes > budget) || (text && text_begun) {
            missing = true;
            continue;
        }
        let mut taken = 0;
        for slice in 0..shape.slices() as u32 {
            let bytes = shape.slice_bytes(slice) + PART_BYTES;
            if bytes > budget {
                break;
            }
            budget -= bytes;
            taken += 1;
            chosen.push(LayerId { kind, which, slice });
        }
        let part = f64::from(taken) / shape.slices() as f64;
        missing |= part < 1.0;
        if text {
            model.add_text(kind, part);
            text_begun |= part < 1.0;
        } else if part == 1.0 {
            model.add(kind, which);
        }
    }
    assert!(chosen.is_empty() || budget.is_nan() || budget >= 0.0, "{} slices take {} bytes too many", chosen.len(), -budget);
    debug_assert_eq!(chosen.iter().collect::<BTreeSet<_>>().len(), chosen.len(), "each slice is chosen once");
    // With everything there is no use for what would be saved.
    let useless = if missing { model.useless() } else { Vec::new() };
    Some(Plan { chosen, cost: model.cost(), useless })
}

/// Header and table of a part.
const PART_BYTES: f64 = 160.0;

fn candidates(base: &Base) -> Vec<(LayerKind, u16, Shape)> {
    let layers: BTreeSet<(LayerKind, u16)> = LayerId::all(base).map(|(id, _)| (id.kind, id.which)).collect();
    layers.into_iter().filter_map(|(kind, which)| Some((kind, which, Shape::of(base, kind, which)?))).collect()
}

/// What queries cost in psi steps with the layers chosen so far.
struct Model<'b> {
    base: &'b Base,
    /// Weights of gets, of each attribute's column gets, and of each attribute's searches and their hits.
    gets: f64,
    columns: Vec<f64>,
    searches: Vec<f64>,
    hits: Vec<f64>,
    substring_hits: f64,
    isa: Vec<bool>,
    sa: Vec<bool>,
    index: Vec<bool>,
    postings: Vec<bool>,
    rate: Option<u16>,
    /// The part of the records that the text layers have.
    blocks: f64,
    plain: f64,
}

impl<'b> Model<'b> {
    fn new(base: &'b Base, counters: &QueryCounters) -> Self {
        let count = base.schema.attributes.len();
        let records = base.numbers.records.max(1) as f64;
        let padded =
            |numbers: &[f64]| -> Vec<f64> { (0..count).map(|index| numbers.get(index).copied().unwrap_or(0.0)).collect() };
        let (mut gets, mut searches, mut hits) = (counters.gets, padded(&counters.searches), padded(&counters.hits));
        let asked = gets + searches.iter().sum::<f64>() + counters.columns.iter().sum::<f64>() + counters.substring_hits;
        if asked == 0.0 {
            // Nothing is known yet: half gets, half searches, the more of an attribute the more selective it is.
            gets = 1.0;
            let weight = |attribute: usize| {
                let each = records / (base.attributes[attribute][2].max(1) as f64);
                if each > records / 64.0 { (0.01 / each.max(1.0), each) } else { (1.0, each) }
            };
            for attribute in 0..count {
                let (share, each) = weight(attribute);
                searches[attribute] = share / count as f64;
                hits[attribute] = share * each / count as f64;
            }
        }
        let mut isa = vec![false; count];
        let mut sa = vec![false; count];
        if count > 0 {
            (isa[0], sa[0]) = (true, true);
        }
        Self {
            base,
            gets,
            columns: padded(&counters.columns),
            searches,
            hits,
            substring_hits: counters.substring_hits,
            isa,
            sa,
            index: vec![false; count],
            postings: vec![false; count],
            rate: None,
            blocks: 0.0,
            plain: 0.0,
        }
    }

    fn add(&mut self, kind: LayerKind, which: u16) {
        match kind {
            LayerKind::IsaAttribute => self.isa[which as usize] = true,
            LayerKind::SaAttribute => self.sa[which as usize] = true,
            LayerKind::Index => self.index[which as usize] = true,
            LayerKind::Postings => self.postings[which as usize] = true,
            LayerKind::SaRate => self.rate = Some(which),
            LayerKind::Blocks | LayerKind::Plain => self.add_text(kind, 1.0),
            LayerKind::IsaRate => {}
        }
    }

    fn add_text(&mut self, kind: LayerKind, part: f64) {
        debug_assert!((0.0..=1.0).contains(&part), "{part} is a part of the records");
        if kind == LayerKind::Blocks { self.blocks = part } else { self.plain = part }
    }

    fn take_back(&mut self, kind: LayerKind, which: u16) {
        match kind {
            LayerKind::IsaAttribute => self.isa[which as usize] = false,
            LayerKind::SaAttribute => self.sa[which as usize] = false,
            LayerKind::Index => self.index[which as usize] = false,
            LayerKind::Postings => self.postings[which as usize] = false,
            _ => {}
        }
    }

    /// The chosen layers of attributes that save nothing any more.
    fn useless(&mut self) -> Vec<(LayerKind, u16)> {
        use LayerKind::{Index, IsaAttribute, Postings, SaAttribute};
        let cost = self.cost();
        let mut useless = Vec::new();
        for which in 0..self.base.schema.attributes.len() {
            for kind in [IsaAttribute, SaAttribute, Index, Postings] {
                let has = match kind {
                    // Those of the first attribute are the base's.
                    IsaAttribute => which > 0 && self.isa[which],
                    SaAttribute => which > 0 && self.sa[which],
                    Index => self.index[which],
                    _ => self.postings[which],
                };
                if has {
                    self.take_back(kind, which as u16);
                    if self.cost() <= cost {
                        useless.push((kind, which as u16));
                    }
                    self.add(kind, which as u16);
                    debug_assert_eq!(self.cost().to_bits(), cost.to_bits(), "a layer that is thought away comes back");
                }
            }
        }
        useless
    }

    /// The candidate that saves most a byte. Sampling rates come from coarse to fine, the plain records after the
    /// compressed ones have been worth it.
    fn best(&mut self, layers: &[(LayerKind, u16, Shape)]) -> Option<usize> {
        let now = self.cost();
        let coarsest = layers.iter().filter(|(kind, ..)| *kind == LayerKind::SaRate).map(|(_, which, _)| *which).max();
        let mut best: Option<(usize, f64)> = None;
        for (at, (kind, which, shape)) in layers.iter().enumerate() {
            if *kind == LayerKind::SaRate && Some(*which) != coarsest {
                continue;
            }
            let before = (self.rate, self.blocks, self.plain);
            self.add(*kind, *which);
            let gain = (now - self.cost()) / (shape.bytes + PART_BYTES);
            (self.rate, self.blocks, self.plain) = before;
            self.take_back(*kind, *which);
            if best.is_none_or(|(_, most)| gain > most) {
                best = Some((at, gain));
            }
        }
        debug_assert_eq!(self.cost().to_bits(), now.to_bits(), "layers that are tried leave nothing");
        best.map(|(at, _)| at)
    }

    /// Symbols of one value of `attribute` on average, with its delimiter.
    fn length(&self, attribute: usize) -> f64 {
        self.base.attributes[attribute][0] as f64 / self.base.numbers.records.max(1) as f64
    }

    fn cost(&self) -> f64 {
        let count = self.base.schema.attributes.len();
        if count == 0 {
            return 0.0;
        }
        // Gets: about the longest chain, as a norm of all of them, so that the first of two cuts that only help together has
        // its worth; and a little for each symbol.
        let (mut chain, mut chains, mut whole) = (0f64, 0f64, 0.0);
        let mut from_sample = vec![0.0; count];
        for (attribute, before) in from_sample.iter_mut().enumerate() {
            if self.isa[attribute] {
                chains += chain.powi(4);
                chain = 0.0;
            }
            *before = chain;
            chain += self.length(attribute);
            whole += self.length(attribute);
        }
        let longest = (chains + chain.powi(4)).sqrt().sqrt();
        let with_text = |walked: f64| {
            let blocks = self.blocks * BLOCK_COST.min(walked) + (1.0 - self.blocks) * walked;
            self.plain * PLAIN_COST + (1.0 - self.plain) * blocks
        };
        let get = with_text(GET_COST + longest.max(whole / 4.0) + whole / 16.0);
        let (mut columns, mut asked) = (0.0, 0.0);
        for (attribute, before) in from_sample.iter().enumerate() {
            columns += self.columns[attribute] * with_text(GET_COST + before + self.length(attribute));
            asked += self.columns[attribute];
        }
        let (mut search, mut searches) = (0.0, 0.0);
        // Searches: each hit is read, or walked to the next attribute that has an array, or to the next record.
        let rate = self.rate.map_or(f64::INFINITY, |rate| f64::from(1u32 << rate.min(RATE_MAX)));
        let mut distance = 0.0;
        let mut average = 0.0;
        for attribute in (0..count).rev() {
            distance = if self.sa[attribute] && attribute > 0 { 0.0 } else { distance + self.length(attribute) };
            average += distance.min(rate) * self.length(attribute) / whole.max(1.0);
            let hit = if self.sa[attribute] { HIT_COST } else { distance.min(rate) / OVERLAP };
            let (fixed, hit) = match (self.index[attribute], self.postings[attribute]) {
                (true, _) => (INDEX_COST, INDEX_HIT_COST),
                (_, true) => (POSTINGS_COST + POSTINGS_STEP_COST * self.length(attribute), POSTINGS_HIT_COST),
                _ => (SEARCH_COST * self.length(attribute), hit),
            };
            search += self.searches[attribute] * fixed + self.hits[attribute] * hit;
            searches += self.searches[attribute];
        }
        // The logarithm, so that a kind of query that costs little is not starved by one that costs much: what counts is by
        // how much each becomes faster, and how often it is asked.
        let kinds = [
            (self.gets, get),
            (asked, columns / asked.max(f64::MIN_POSITIVE)),
            (searches, search / searches.max(f64::MIN_POSITIVE)),
            (self.substring_hits / SUBSTRING_HITS, 1.0 + average / OVERLAP),
        ];
        kinds.iter().filter(|(count, _)| *count > 0.0).map(|(count, each)| count * each.ln()).sum()
    }
}
