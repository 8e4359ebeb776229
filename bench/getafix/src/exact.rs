//! The optimum of small instances by dynamic programming, which the planner's replicas are compared with.

/// The fewest replicas in which segments with these counts can be placed on `workers` workers that take `capacity` each;
/// none when they don't fit.
///
/// Dynamic programming over sets of segments: they are filled into workers one after the other, over their borders, and
/// the worker that was reached may be left as it is, which ends a group. Replicas = segments + workers - groups, so for
/// each set and number of groups only the least room taken matters. O(2^m m n) time, 4 (n + 1) 2^m bytes.
pub fn least_replicas(counts: &[u64], workers: usize, capacity: u64) -> Option<u64> {
    let counts: Vec<u64> = counts.iter().copied().filter(|count| *count > 0).collect();
    let most = capacity * workers as u64;
    if counts.iter().sum::<u64>() > most {
        return None;
    }
    let width = workers + 1;
    // taken[set * width + groups]: room taken up to the open end of the last group; groups that are closed.
    let mut taken = vec![u32::MAX; (1usize << counts.len()) * width];
    taken[0] = 0;
    for set in 0..1usize << counts.len() {
        for groups in 0..width {
            let room = taken[set * width + groups];
            if room == u32::MAX {
                continue;
            }
            let closed = u64::from(room).div_ceil(capacity) * capacity;
            for (at, count) in counts.iter().enumerate().filter(|(at, _)| set >> at & 1 == 0) {
                let mut reach = |groups: usize, room: u64| {
                    let cell = &mut taken[(set | 1 << at) * width + groups];
                    if room <= most {
                        *cell = (*cell).min(u32::try_from(room).expect("small instances only"));
                    }
                };
                reach(groups, u64::from(room) + count);
                if set != 0 && groups < workers {
                    reach(groups + 1, closed + count);
                }
            }
        }
    }
    let all = &taken[taken.len() - width..];
    let ends = all.iter().enumerate().filter(|(_, room)| **room != u32::MAX);
    let replicas = ends.map(|(groups, room)| counts.len() as u64 + u64::from(*room).div_ceil(capacity) - (groups as u64 + 1));
    if counts.is_empty() { Some(0) } else { replicas.min() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instances() {
        assert_eq!(least_replicas(&[6, 3, 2, 1], 3, 4), Some(5));
        assert_eq!(least_replicas(&[3, 3, 2, 2, 2, 2], 2, 7), Some(6));
        assert_eq!(least_replicas(&[4, 4, 4, 3, 3], 3, 6), Some(6));
        assert_eq!(least_replicas(&[9], 3, 3), Some(3));
        assert_eq!(least_replicas(&[10], 3, 3), None);
        assert_eq!(least_replicas(&[0, 0], 3, 3), Some(0));
    }
}
