//! Runs the rules, holds their sums against the ratchet, and says the result.

use std::fmt;
use std::io;
use std::path::Path;

use crate::ratchet::{self, Numbers, RATCHET_PATH};
use crate::rule::{Finding, Rule};
use crate::rules;
use crate::tree::Tree;

/// What one look at a checkout found.
pub struct Outcome {
    /// All places, of what the ratchet lets stand too.
    pub findings: Vec<Finding>,
    found: Numbers,
    kept: Numbers,
}

/// Looks at the checkout under `root`; with `update` the ratchet is tightened to what was found.
///
/// # Errors
/// A file that can't be read or written, or a line of the ratchet that says nothing.
pub fn tidy(root: &Path, update: bool) -> io::Result<Outcome> {
    let tree = Tree::read(root)?;
    let mut findings = rules::run(&tree);
    findings.sort();
    let mut found = Numbers::new();
    for finding in &findings {
        *found.entry((finding.rule, finding.owner.clone())).or_default() += finding.weight;
    }
    let mut kept = ratchet::read(root)?;
    if update {
        // Where there is no table yet, it begins with what is there.
        let tight = ratchet::tightened(kept.as_ref().unwrap_or(&found), &found);
        ratchet::write(root, &tight)?;
        kept = Some(tight);
    }
    let kept = kept.unwrap_or_default();
    Ok(Outcome { findings, found, kept })
}

impl Outcome {
    /// Whether nothing is worse than the ratchet says.
    pub fn is_tidy(&self) -> bool {
        self.broken().next().is_none()
    }

    /// Rules and crates that are worse than the ratchet, with what was found and what is let stand.
    fn broken(&self) -> impl Iterator<Item = (Rule, &str, usize, usize)> {
        self.found.iter().filter_map(|(key, &found)| {
            let kept = number(&self.kept, key);
            let worse = if key.0.more_is_better() { found < kept } else { found > kept };
            worse.then_some((key.0, key.1.as_str(), found, kept))
        })
    }

    fn could_be_tighter(&self) -> usize {
        let better = |key: &(Rule, String), kept: usize| {
            let found = number(&self.found, key);
            if key.0.more_is_better() { found > kept } else { found < kept }
        };
        self.kept.iter().filter(|(key, kept)| better(key, **kept)).count()
    }
}

fn number(numbers: &Numbers, key: &(Rule, String)) -> usize {
    numbers.get(key).copied().unwrap_or(0)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rule, owner, found, kept) in self.broken() {
            if rule.more_is_better() {
                writeln!(f, "{owner}: {}: {found}, and {kept} is the least ({RATCHET_PATH})", rule.name())?;
            } else {
                writeln!(f, "{owner}: {}: {found}, and {kept} is the most ({RATCHET_PATH})", rule.name())?;
            }
            for finding in self.findings.iter().filter(|finding| finding.rule == rule && finding.owner == owner) {
                writeln!(f, "  {finding}")?;
            }
            writeln!(f, "  remedy: {}\n", rule.remedy())?;
        }
        writeln!(f, "{:<16} {:>8} {:>8}", "rule", "found", "crates")?;
        for rule in Rule::ALL {
            let of_rule = || self.found.iter().filter(|((found, _), number)| *found == rule && **number > 0);
            let crates = of_rule().count();
            let sum: usize = of_rule().map(|(_, number)| number).sum();
            if rule.more_is_better() {
                let least = self.found.iter().filter(|((found, _), _)| *found == rule).min_by_key(|(_, number)| **number);
                let (owner, least) = least.map_or(("no crate", 0), |((_, owner), number)| (owner, *number));
                writeln!(f, "{:<16} least {}.{} a thousand lines, in {owner}", rule.name(), least / 10, least % 10)?;
            } else {
                writeln!(f, "{:<16} {sum:>8} {crates:>8}", rule.name())?;
            }
        }
        let tighter = self.could_be_tighter();
        if tighter > 0 {
            writeln!(f, "{tighter} numbers of {RATCHET_PATH} may be tightened: cargo xtask tidy --update")?;
        }
        write!(f, "{}", if self.is_tidy() { "tidy" } else { "NOT TIDY" })
    }
}
