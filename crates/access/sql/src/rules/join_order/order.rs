//! Which tables are joined first, by how many rows are expected of each join. Estimates in, an order out.

/// Tables among which an order is looked for, at most: it takes time with three times as much for each.
const TABLES_MAX: usize = 10;

/// What is known of tables that are joined with each other.
pub(super) struct Known {
    /// Rows of each table.
    pub(super) rows: Vec<f64>,
    /// Two tables with a condition between them, and the part of all pairs of their rows that meets it.
    pub(super) pairs: Vec<(usize, usize, f64)>,
}

/// An order in which tables are joined.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Table(usize),
    Join(Box<Self>, Box<Self>),
}

/// How much better an order must be than what was asked for to be taken instead: estimates are wrong by some factor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    /// Rows that come of its joins less.
    pub(super) rows: f64,
    /// And so many times fewer.
    pub(super) times: f64,
}

impl Tree {
    /// Its tables, a bit each.
    pub(super) fn set(&self) -> u32 {
        match self {
            Self::Table(table) => 1_u32 << *table,
            Self::Join(left, right) => left.set() | right.set(),
        }
    }
}

impl Known {
    /// An order that is better than the given one by that much; none where there is none, or there are too many tables.
    pub(super) fn better(&self, given: &Tree, bar: Bar) -> Option<Tree> {
        let was = self.cost(given);
        // Most statements have so few rows that looking for an order takes longer.
        if was < bar.rows {
            return None;
        }
        let tree = self.best()?;
        let is = self.cost(&tree);
        (was - is >= bar.rows && was >= is * bar.times).then_some(tree)
    }

    /// Rows that come of all joins of an order.
    pub(super) fn cost(&self, tree: &Tree) -> f64 {
        match tree {
            Tree::Table(_) => 0.0,
            Tree::Join(left, right) => self.cost(left) + self.cost(right) + self.rows_of(tree.set()),
        }
    }

    /// The order of which the fewest rows come, without joins of tables that have no condition between them.
    fn best(&self) -> Option<Tree> {
        let count = self.rows.len();
        if !(3..=TABLES_MAX).contains(&count) {
            return None;
        }
        let all = (1_u32 << count) - 1;
        // For each set of tables the least cost, and one of the two sets that it is joined of.
        let mut best: Vec<Option<(f64, u32)>> = vec![None; all as usize + 1];
        for set in 1..=all {
            let lowest = set & set.wrapping_neg();
            let mut others = set & !lowest;
            if others == 0 {
                best[set as usize] = Some((0.0, 0));
                continue;
            }
            let rows = self.rows_of(set);
            let (mut least, all_others) = (None::<(f64, u32)>, others);
            while others != 0 {
                // All ways to part it, with the lowest table on the first side.
                others = (others - 1) & all_others;
                let (one, other) = (lowest | others, set & !(lowest | others));
                let (Some((a, _)), Some((b, _))) = (best[one as usize], best[other as usize]) else { continue };
                let cost = a + b + rows;
                if self.are_joined(one, other) && least.is_none_or(|(least, _)| cost < least) {
                    least = Some((cost, one));
                }
            }
            best[set as usize] = least;
        }
        best[all as usize]?;
        Some(self.tree(&best, all))
    }

    fn tree(&self, best: &[Option<(f64, u32)>], set: u32) -> Tree {
        if set.count_ones() == 1 {
            return Tree::Table(set.trailing_zeros() as usize);
        }
        let one = best[set as usize].map_or(set, |(_, one)| one);
        assert!(one != 0 && one & set == one && one != set, "{one:b} is a part of {set:b}");
        // A hash table is made of the first.
        let (first, second) = if self.rows_of(one) <= self.rows_of(set & !one) { (one, set & !one) } else { (set & !one, one) };
        Tree::Join(Box::new(self.tree(best, first)), Box::new(self.tree(best, second)))
    }

    /// Rows that come of a set of tables, in whichever order.
    fn rows_of(&self, set: u32) -> f64 {
        let has = |table: usize| set & (1 << table) != 0;
        let rows = self.rows.iter().enumerate().filter(|(table, _)| has(*table)).map(|(_, rows)| rows);
        let parts = self.pairs.iter().filter(|(a, b, _)| has(*a) && has(*b)).map(|(_, _, part)| part);
        rows.chain(parts).product()
    }

    fn are_joined(&self, one: u32, other: u32) -> bool {
        let lie = |a: usize, b: usize| one & (1 << a) != 0 && other & (1 << b) != 0;
        self.pairs.iter().any(|(a, b, _)| lie(*a, *b) || lie(*b, *a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of a set of tables in which each join has a condition.
    fn all(known: &Known, set: u32) -> Vec<Tree> {
        if set.count_ones() == 1 {
            return vec![Tree::Table(set.trailing_zeros() as usize)];
        }
        let parts = (1..set).filter(|one| one & set == *one && known.are_joined(*one, set & !one));
        let of = |one: u32| {
            let (firsts, seconds) = (all(known, one), all(known, set & !one));
            let join = |first: &Tree, second: &Tree| Tree::Join(Box::new(first.clone()), Box::new(second.clone()));
            firsts
                .iter()
                .flat_map(|first| seconds.iter().map(|second| join(first, second)).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        parts.flat_map(of).collect()
    }

    /// Tables and conditions as a number says.
    fn known(count: usize, mut number: u64) -> Known {
        let mut next = |below: u64| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) % below
        };
        let rows: Vec<f64> = (0..count).map(|_| 10_f64.powi(next(6) as i32 + 1)).collect();
        let mut pairs = Vec::new();
        for b in 1..count {
            for a in 0..b {
                if next(3) == 0 {
                    pairs.push((a, b, 1.0 / 10_f64.powi(next(6) as i32)));
                }
            }
        }
        Known { rows, pairs }
    }

    #[test]
    fn no_order_has_fewer_rows_than_the_one_that_is_found() {
        let (mut found, mut none) = (0, 0);
        for count in 3..=5 {
            for number in 0..200 {
                let known = known(count, number);
                let every = all(&known, (1 << count) - 1);
                let least = every.iter().map(|tree| known.cost(tree)).min_by(f64::total_cmp);
                match (known.best(), least) {
                    (Some(tree), Some(least)) => {
                        assert_eq!(tree.set(), (1 << count) - 1);
                        assert!((known.cost(&tree) - least).abs() <= least * 1e-9, "{tree:?} of {number}");
                        found += 1;
                    }
                    (None, None) => none += 1,
                    other => panic!("{other:?} of {number}"),
                }
            }
        }
        assert!(found > 50 && none > 50, "{found} {none}");
    }

    #[test]
    fn an_order_that_is_asked_for_stays_unless_another_one_is_better_by_far() {
        let join = |left: Tree, right: Tree| Tree::Join(Box::new(left), Box::new(right));
        let tables = || (Tree::Table(0), Tree::Table(1), Tree::Table(2));
        // Two large tables, and a small one that few rows of the first are left of.
        let known = Known { rows: vec![1e6, 1e6, 10.0], pairs: vec![(0, 1, 1e-4), (0, 2, 1e-4)] };
        let (a, b, c) = tables();
        let given = join(join(a, b), c);
        let (a, b, c) = tables();
        let best = join(join(c, a), b);
        let bar = |rows, times| Bar { rows, times };
        assert_eq!(known.better(&given, bar(1e6, 3.0)), Some(best.clone()), "the smaller side first");
        assert_eq!(known.better(&given, bar(1e9, 3.0)), None);
        assert_eq!(known.better(&given, bar(1e6, 1e3)), None);
        assert_eq!(known.better(&best, bar(1.0, 1.0)), None);
        let apart = Known { rows: vec![10.0; 3], pairs: vec![(0, 1, 0.1)] };
        assert_eq!(apart.better(&given, bar(0.0, 0.0)), None, "there is no condition with the third");
        let many = Known { rows: vec![10.0; 11], pairs: (1..11).map(|table| (0, table, 0.1)).collect() };
        assert_eq!(many.better(&given, bar(0.0, 0.0)), None);
    }
}
