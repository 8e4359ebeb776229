//! Where ranges of values are.

use forebay_nodes::{BlockRef, Got, NodeErrorKind};

/// Blocks with their bytes, which say where in the value they are.
fn blocks(lens: &[u32]) -> (Vec<BlockRef>, Vec<Vec<u8>>) {
    let (mut blocks, mut contents, mut at) = (Vec::new(), Vec::new(), 0u32);
    for (number, len) in (1..).zip(lens) {
        blocks.push(BlockRef { worker: 1, number, len: *len });
        contents.push((at..at + len).map(|at| at as u8).collect());
        at += len;
    }
    (blocks, contents)
}

#[test]
fn a_range_of_a_value_is_what_files_give_of_theirs() {
    let cases: [&[u32]; 5] = [&[], &[1], &[5], &[5, 7, 2], &[4, 4]];
    for lens in cases {
        let (blocks, contents) = blocks(lens);
        let all = contents.concat();
        let in_blocks = Got::Blocks(&blocks);
        let inline = Got::Inline(&all);
        let len = all.len() as u64;
        for offset in 0..=len {
            for bytes in (0..=len + 1).chain([u64::MAX]) {
                let end = offset.saturating_add(bytes).min(len);
                let wanted = &all[offset as usize..end as usize];
                let view = inline.view("k", offset, bytes).unwrap();
                assert_eq!((view.len, view.skip, view.blocks, view.inline), (len, 0, &[][..], wanted));
                let view = in_blocks.view("k", offset, bytes).unwrap();
                assert_eq!((view.len, view.inline), (len, &[][..]));
                let found: Vec<u8> = view.blocks.iter().flat_map(|block| contents[block.number as usize - 1].clone()).collect();
                let read: Vec<u8> = found.into_iter().skip(view.skip as usize).take(wanted.len()).collect();
                assert_eq!(read, wanted, "{lens:?}: {offset}+{bytes}");
                if let [first, middle @ .., _] = view.blocks {
                    let before = u64::from(first.len) - view.skip;
                    let within: u64 = middle.iter().map(|block| u64::from(block.len)).sum();
                    assert!(before > 0 && before + within < end - offset, "no block too many: {lens:?}: {offset}+{bytes}");
                }
            }
        }
        for value in [&in_blocks, &inline] {
            assert_eq!(value.view("k", len + 1, 1).unwrap_err().kind, NodeErrorKind::Invalid);
        }
    }
}

#[test]
fn the_number_of_a_value_is_another_one_when_its_bytes_are() {
    let block = |number| [BlockRef { worker: 1, number, len: 10 }];
    let serial = |value: Got<'_>, offset| value.view("k", offset, 1).unwrap().serial;
    let (old, new) = (block(7), block(8));
    assert_eq!(serial(Got::Blocks(&old), 0), serial(Got::Blocks(&old), 9), "wherever it is read");
    let all = [Got::Blocks(&old), Got::Blocks(&new), Got::Inline(b"one"), Got::Inline(b"two"), Got::Inline(b"")];
    let serials: Vec<u64> = all.into_iter().map(|value| serial(value, 0)).collect();
    for (at, one) in serials.iter().enumerate() {
        assert!(*one != 0 && !serials[..at].contains(one), "{serials:?}");
    }
}
