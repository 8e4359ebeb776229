//! What `forebay plan replicas` prints: the plan with the names that its input had, for people and as JSON.

use forebay_placement::{Plan, PlanSettings, Policy, Reason};
use forebay_types::format_bytes;
use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::demand::Demand;
use crate::exit::Outcome;
use crate::output::Output;

/// What can't be had is listed up to this many segments.
const LISTED_MAX: usize = 20;

/// A plan in the words of the file that it was made from.
pub(super) struct Answer<'a> {
    pub(super) demand: &'a Demand,
    pub(super) plan: &'a Plan,
    pub(super) settings: &'a PlanSettings,
}

impl Answer<'_> {
    /// For people.
    pub(super) fn show(&self, output: &mut Output) -> Outcome {
        let (demand, plan) = (self.demand, self.plan);
        let counted = demand.segments.iter().filter(|segment| segment.count > 0).count();
        let slack = match self.settings.policy {
            Policy::Getafix => format!(", slack {:.1} %", self.settings.slack * 100.0),
            _ => String::new(),
        };
        output.line(&format!("policy       {}{slack}", self.settings.policy))?;
        output.line(&format!("demand       {} accesses a window of {counted} segments", demand.accesses()))?;
        output.line(&format!("workers      {}, at most {} accesses a window each", plan.capacity.len(), self.capacities()))?;
        output.line(&format!("replicas     {}", plan.replicas))?;
        output.line(&format!("lower bound  {}", plan.lower_bound))?;
        output.line(&format!("to move      {}", format_bytes(plan.bytes_to_move)))?;
        output.line("")?;
        let rows: Vec<Vec<String>> = plan
            .assignment
            .iter()
            .enumerate()
            .map(|(worker, bag)| {
                let load = plan.load(worker as u32);
                let bytes: u64 = bag.iter().map(|piece| demand.segments[piece.segment as usize].bytes).sum();
                let share = (load * 100).checked_div(plan.capacity[worker]).unwrap_or(0);
                vec![worker.to_string(), format!("{load} ({share} %)"), bag.len().to_string(), format_bytes(bytes)]
            })
            .collect();
        output.table(&["worker", "load", "replicas", "size"], &[0, 1, 2, 3], &rows)?;
        for missing in plan.unsatisfied.iter().take(LISTED_MAX) {
            let id = &demand.ids[missing.segment as usize];
            output.line(&format!(
                "not placed: {} accesses and {} replicas of {id}: {}",
                missing.count,
                missing.replicas,
                why(missing.reason)
            ))?;
        }
        if plan.unsatisfied.len() > LISTED_MAX {
            output.line(&format!("not placed: {} more segments; --json lists all", plan.unsatisfied.len() - LISTED_MAX))?;
        }
        Ok(())
    }

    /// Of the largest worker, which is that of all unless a file says that they differ.
    fn capacity(&self) -> u64 {
        self.plan.capacity.iter().copied().max().unwrap_or(0)
    }

    fn capacities(&self) -> String {
        let least = self.plan.capacity.iter().copied().min().unwrap_or(0);
        if least < self.capacity() { format!("{least} to {}", self.capacity()) } else { least.to_string() }
    }

    fn id(&self, segment: u32) -> &str {
        &self.demand.ids[segment as usize]
    }
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Capacity => "no worker has capacity left",
        Reason::Bytes => "no worker with capacity left has room for its bytes",
        Reason::Domains => "too few failure domains, or too few with room, for the minimum of replicas",
    }
}

impl Serialize for Answer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plan = self.plan;
        let assignment = plan.assignment.iter().enumerate().map(|(worker, bag)| {
            let pieces = bag.iter().map(|piece| (self.id(piece.segment), piece.count));
            (worker.to_string(), Object(pieces.collect()))
        });
        let routed = (0..self.demand.ids.len() as u32).filter(|segment| !plan.holders(*segment).is_empty());
        let routing = routed.map(|segment| {
            let percents = plan.routing(segment).into_iter().map(|(worker, percent)| (worker.to_string(), percent));
            (self.id(segment), Object(percents.collect()))
        });
        let unsatisfied = plan.unsatisfied.iter().map(|missing| {
            let entries: [(&str, serde_json::Value); 3] =
                [("accesses", missing.count.into()), ("replicas", missing.replicas.into()), ("why", why(missing.reason).into())];
            (self.id(missing.segment), Object(entries.into()))
        });
        let mut answer = serializer.serialize_struct("answer", 9)?;
        answer.serialize_field("policy", &self.settings.policy.to_string())?;
        answer.serialize_field("replicas", &plan.replicas)?;
        answer.serialize_field("lower_bound", &plan.lower_bound)?;
        answer.serialize_field("capacity", &self.capacity())?;
        answer.serialize_field("capacities", &plan.capacity)?;
        answer.serialize_field("bytes_to_move", &plan.bytes_to_move)?;
        answer.serialize_field("assignment", &Object(assignment.collect()))?;
        answer.serialize_field("routing", &Object(routing.collect()))?;
        answer.serialize_field("unsatisfied", &Object(unsatisfied.collect()))?;
        answer.end()
    }
}

/// A JSON object with its entries in this order.
struct Object<K, V>(Vec<(K, V)>);

impl<K: AsRef<str>, V: Serialize> Serialize for Object<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key.as_ref(), value)?;
        }
        map.end()
    }
}
