//! The word before a request or an answer: how long it is, and how long a request is waited for.

use forebay_protocol::Left;

/// Before a request with so many bytes of message and of payload, fewer than 64 KiB each. What is left is told where the ring
/// `is_timed`.
pub(super) fn asked(is_timed: bool, left: Left, meta: usize, payload: usize) -> u64 {
    debug_assert!(meta <= usize::from(u16::MAX) && payload <= usize::from(u16::MAX), "it was found short enough");
    if !is_timed {
        return answered(meta, payload);
    }
    let ms = u32::from_le_bytes(left.to_bytes().unwrap_or_default());
    meta as u64 | (payload as u64) << 16 | u64::from(ms) << 32
}

/// What is left, and the lengths of message and payload, which whoever wrote them may have made up.
pub(super) fn of_request(is_timed: bool, word: u64) -> (Left, (usize, usize)) {
    if !is_timed {
        return (Left::default(), of_answer(word));
    }
    let left = Left::from_bytes(((word >> 32) as u32).to_le_bytes());
    (left, (usize::from(word as u16), usize::from((word >> 16) as u16)))
}

/// Before an answer.
pub(super) fn answered(meta: usize, payload: usize) -> u64 {
    meta as u64 | (payload as u64) << 32
}

pub(super) fn of_answer(word: u64) -> (usize, usize) {
    (word as u32 as usize, (word >> 32) as usize)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_protocol::LEFT_MS_MAX;

    use super::*;

    #[test]
    fn a_request_says_how_long_it_is_waited_for_where_the_server_knows_what_that_means() {
        let (wanted, day) = (Duration::from_millis(1_500), Duration::from_millis(LEFT_MS_MAX.into()));
        for (is_timed, left, heard) in [
            (true, Some(wanted), Some(wanted)),
            (true, Some(Duration::MAX), Some(day)),
            (true, None, None),
            (false, Some(wanted), None),
        ] {
            for lengths in [(0, 0), (20_475, 5), (0, 20_480), (usize::from(u16::MAX), usize::from(u16::MAX))] {
                let word = asked(is_timed, Left::new(left), lengths.0, lengths.1);
                assert_eq!(of_request(is_timed, word), (Left::new(heard), lengths), "{is_timed} {left:?}");
            }
        }
        assert_eq!(asked(false, Left::new(Some(wanted)), 3, 7), 3 | 7_u64 << 32, "as the version before has it");
        assert_eq!(of_answer(answered(3, 20_477)), (3, 20_477));
    }
}
