//! The columns of a wide table: what a service that counts visits to websites notes of each.

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any 64 bits, others in each row.
    Number,
    /// When it was: later from row to row.
    At,
    /// The day of that.
    Day,
    /// One of so many numbers of 64 bits. Here and below a few of them make most of the rows.
    Who(u32),
    /// 0 to so many.
    Code(u32),
    /// 1 in one of so many rows, else 0.
    Flag(u32),
    /// In one of `of` rows one of `texts` texts, most of them short and some long; else an empty one.
    Text { texts: u32, of: u32 },
    /// The same, of addresses.
    Address { texts: u32, of: u32 },
}

/// Those that have a name of their own.
const NAMED: [(&str, Kind); 40] = [
    ("visit", Kind::Number),
    ("seen_at", Kind::At),
    ("seen_on", Kind::Day),
    ("visitor", Kind::Who(300_000)),
    ("session", Kind::Who(900_000)),
    ("network", Kind::Who(200_000)),
    ("site", Kind::Code(5_000)),
    ("owner", Kind::Code(2_000)),
    ("region", Kind::Code(2_500)),
    ("language", Kind::Code(80)),
    ("zone", Kind::Code(40)),
    ("system", Kind::Code(30)),
    ("browser", Kind::Code(60)),
    ("browser_version", Kind::Code(120)),
    ("device", Kind::Code(20)),
    ("source", Kind::Code(12)),
    ("search_service", Kind::Code(50)),
    ("advert", Kind::Code(8_000)),
    ("width", Kind::Code(3_000)),
    ("height", Kind::Code(2_000)),
    ("colours", Kind::Code(32)),
    ("seconds", Kind::Code(7_200)),
    ("pages", Kind::Code(300)),
    ("load_ms", Kind::Code(60_000)),
    ("answer_ms", Kind::Code(20_000)),
    ("name_ms", Kind::Code(5_000)),
    ("bytes_sent", Kind::Code(50_000_000)),
    ("price", Kind::Code(1_000_000)),
    ("age", Kind::Code(7)),
    ("is_new", Kind::Flag(4)),
    ("is_mobile", Kind::Flag(3)),
    ("is_robot", Kind::Flag(50)),
    ("is_reload", Kind::Flag(9)),
    ("address", Kind::Address { texts: 150_000, of: 1 }),
    ("came_from", Kind::Address { texts: 60_000, of: 2 }),
    ("title", Kind::Text { texts: 40_000, of: 1 }),
    ("sought", Kind::Text { texts: 50_000, of: 9 }),
    ("phone", Kind::Text { texts: 300, of: 14 }),
    ("campaign", Kind::Text { texts: 200, of: 30 }),
    ("goods", Kind::Text { texts: 20_000, of: 60 }),
];
/// Families of columns that few queries ask for, as such tables have them: of which kind, and how many.
const FAMILIES: [(&str, Kind, usize); 4] = [
    ("flag", Kind::Flag(20), 24),
    ("number", Kind::Code(100), 18),
    ("mark", Kind::Text { texts: 1_000, of: 40 }, 12),
    ("hash", Kind::Who(10_000), 6),
];

/// All of them, in order.
pub(super) fn columns() -> Vec<(String, Kind)> {
    let named = NAMED.iter().map(|(name, kind)| ((*name).to_string(), *kind));
    let families = FAMILIES.iter().flat_map(|(name, kind, count)| (0..*count).map(move |at| (format!("{name}_{at}"), *kind)));
    named.chain(families).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_is_as_wide_as_is_said() {
        let columns = columns();
        assert_eq!(columns.iter().map(|(name, _)| name).collect::<HashSet<_>>().len(), 100);
    }
}
