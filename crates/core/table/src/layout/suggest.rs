//! Column groups from what queries have read: which of them were read together often enough (Albis, section 3.1).

use std::collections::BTreeSet;

/// Of the queries that read either of two groups, how many have to read both for the groups to become one.
const TOGETHER_MIN: f64 = 0.9;

/// A column group that recent queries speak for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggested {
    /// The columns, in the order of the table.
    pub columns: Vec<String>,
    /// Queries that read any of them.
    pub queries: usize,
    /// Queries that read all of them.
    pub together: usize,
}

/// Column groups for a table, from the columns that queries read of it (`reads`: a set a query).
///
/// Columns that are (nearly) always read together share a group; one that is also read without the others stays alone,
/// since reading it would touch the others' bytes (Albis §3.1: complete groups are cheap, partial ones are not). The two
/// groups that are read together the most are joined first. Columns that no query reads come last, as one group. Columns
/// that `columns` does not name are left out.
pub fn suggest(columns: &[String], reads: &[BTreeSet<String>]) -> Vec<Suggested> {
    let readers = |column: &String| {
        let readers = reads.iter().enumerate().filter(|(_, read)| read.contains(column));
        readers.map(|(query, _)| query).collect::<BTreeSet<_>>()
    };
    let mut groups = Vec::new();
    let mut unread = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        match readers(column) {
            queries if queries.is_empty() => unread.push(place),
            queries => groups.push(Draft { places: vec![place], any: queries.clone(), all: queries }),
        }
    }
    while let Some((a, b)) = closest(&groups) {
        let joined = groups.remove(b);
        groups[a].join(joined);
    }
    let named = |places: &[usize]| places.iter().map(|&place| columns[place].clone()).collect();
    let mut out = Vec::with_capacity(groups.len() + 1);
    for group in &groups {
        out.push(Suggested { columns: named(&group.places), queries: group.any.len(), together: group.all.len() });
    }
    if !unread.is_empty() {
        out.push(Suggested { columns: named(&unread), queries: 0, together: 0 });
    }
    assert_eq!(out.iter().map(|group| group.columns.len()).sum::<usize>(), columns.len(), "each column is in one group");
    debug_assert!(out.iter().all(|group| group.together <= group.queries), "who reads all columns reads any");
    out
}

struct Draft {
    places: Vec<usize>,
    any: BTreeSet<usize>,
    all: BTreeSet<usize>,
}

impl Draft {
    fn join(&mut self, other: Self) {
        self.places.extend(other.places);
        self.places.sort_unstable();
        self.any.extend(other.any);
        self.all.retain(|query| other.all.contains(query));
    }

    /// Share of the queries that read any column of both which read all of them.
    fn together(&self, other: &Self) -> f64 {
        self.all.intersection(&other.all).count() as f64 / self.any.union(&other.any).count() as f64
    }
}

/// The two groups that are read together most, if they are often enough; of equals those in front.
fn closest(groups: &[Draft]) -> Option<(usize, usize)> {
    let mut best = None;
    for a in 0..groups.len() {
        for b in a + 1..groups.len() {
            let share = groups[a].together(&groups[b]);
            if share >= TOGETHER_MIN && best.is_none_or(|(most, _)| share > most) {
                best = Some((share, (a, b)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(columns: &str, reads: &[&str]) -> Vec<String> {
        let columns = columns.split(' ').map(String::from).collect::<Vec<_>>();
        let reads = reads.iter().map(|read| read.split(' ').map(String::from).collect()).collect::<Vec<_>>();
        suggest(&columns, &reads).iter().map(|group| group.columns.join(",")).collect()
    }

    #[test]
    fn what_is_always_read_together_shares_a_group() {
        assert_eq!(suggested("a b c d e", &["a c", "c a", "b", "a b c"]), ["a,c", "b", "d,e"]);
    }

    #[test]
    fn a_column_that_is_also_read_alone_stays_alone() {
        assert_eq!(suggested("a b", &["a b", "a"]), ["a", "b"]);
    }

    #[test]
    fn a_rare_exception_does_not_part_a_group() {
        let mut reads = vec!["a b"; 19];
        reads.push("a");
        assert_eq!(suggested("a b", &reads), ["a,b"]);
    }

    #[test]
    fn near_misses_do_not_add_up() {
        // Each neighbour alone would be joined, all three are read together in 17 of 20 only.
        let mut reads = vec!["a b c"; 17];
        reads.extend(["a b", "b c", "a b"]);
        let groups = suggested("a b c", &reads);
        assert_eq!(groups, ["a,b", "c"]);
    }

    #[test]
    fn without_queries_all_columns_are_one_group_that_nobody_reads() {
        assert_eq!(suggested("a b", &[]), ["a,b"]);
        assert!(suggest(&[], &[]).is_empty());
    }
}
