//! The suffix array: libsais, or a slow sort of our own where no C can run.

use forebay_types::Result;

/// The positions of `text`'s suffixes in order; the end of the text is below all symbols.
#[cfg(feature = "libsais")]
pub(crate) fn suffix_array(text: &[u8]) -> Result<Vec<i32>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let sorted = libsais::SuffixArrayConstruction::for_text(text).in_owned_buffer32().single_threaded().run();
    sorted
        .map(|sorted| sorted.into_vec())
        .map_err(|error| forebay_types::Error::internal(format!("the suffix sort failed: {error:?}")))
}

/// The positions of `text`'s suffixes in order, by doubling: for tests that can't run C.
#[cfg(not(feature = "libsais"))]
pub(crate) fn suffix_array(text: &[u8]) -> Result<Vec<i32>> {
    let mut array: Vec<i32> = (0..text.len() as i32).collect();
    let mut rank: Vec<i32> = text.iter().map(|symbol| i32::from(*symbol)).collect();
    let mut width = 1;
    loop {
        let key = |at: i32| (rank[at as usize], rank.get(at as usize + width).copied().unwrap_or(-1));
        array.sort_unstable_by_key(|at| key(*at));
        let mut next = vec![0; text.len()];
        for two in 1..array.len() {
            next[array[two] as usize] = next[array[two - 1] as usize] + i32::from(key(array[two]) != key(array[two - 1]));
        }
        let done = array.last().is_none_or(|last| next[*last as usize] as usize == text.len() - 1);
        rank = next;
        if done {
            return Ok(array);
        }
        width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_in_order() {
        for text in [b"".as_slice(), b"a", b"mississippi", b"aaaaaaaa", b"\x01\x02\x01\x02\x01"] {
            let mut expected: Vec<i32> = (0..text.len() as i32).collect();
            expected.sort_by_key(|at| &text[*at as usize..]);
            assert_eq!(suffix_array(text).unwrap(), expected);
        }
    }
}
