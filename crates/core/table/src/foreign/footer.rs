//! Footers of Parquet files, looked at before a library reads them: it makes room for as many row groups and fields as they say, and calls
//! itself for each field that stands in another, so that some fifty bytes can end the process.
//!
//! Each struct is read as the format has it, and no looser: what two readers may take for something else is refused.

use super::PageFault;
use super::thrift::{BINARY, Broken, DOUBLE, FALSE, LIST, LONG, NUMBER, Read, Reader, SHORT, STRUCT, TINY, TRUE};

/// Row groups of a file: they are numbered from 0 on, by what has 16 bits and no sign.
const GROUPS_MAX: u64 = 1 << 15;
/// Fields of a schema, those that stand in others and those that have them.
const FIELDS_MAX: u64 = 1 << 18;
/// How deep they may stand in each other. A list is two or three of them.
const DEPTH_MAX: usize = 200;
/// Memory for paths: a library keeps one of each field that has no others, with the names of all that it stands in.
const PATHS_MAX: u64 = 256 << 20;
/// What a name in a path takes beside its bytes.
const NAME_BYTES: u64 = 24;

/// The number of a file's schema, and of its row groups.
const SCHEMA: i16 = 2;
const ROW_GROUPS: i16 = 4;
/// The numbers of a field's name, and of how many fields stand in it.
const NAME: i16 = 4;
const FIELDS: i16 = 5;

/// The fields that a struct may have: by their numbers their types, and what structs are in them, or in a list that they are.
struct Shape(&'static [(i16, u8, Option<&'static Shape>)]);

const FILE: Shape = Shape(&[
    (1, NUMBER, None),
    (SCHEMA, LIST, None),
    (3, LONG, None),
    (ROW_GROUPS, LIST, None),
    (5, LIST, Some(&KEY_VALUE)),
    (6, BINARY, None),
    (7, LIST, Some(&ORDER)),
    (8, STRUCT, None),
    (9, BINARY, None),
]);
const EMPTY: Shape = Shape(&[]);
const KEY_VALUE: Shape = Shape(&[(1, BINARY, None), (2, BINARY, None)]);
const ORDER: Shape = Shape(&[(1, STRUCT, Some(&EMPTY))]);
const FIELD: Shape = Shape(&[
    (1, NUMBER, None),
    (2, NUMBER, None),
    (3, NUMBER, None),
    (NAME, BINARY, None),
    (FIELDS, NUMBER, None),
    (6, NUMBER, None),
    (7, NUMBER, None),
    (8, NUMBER, None),
    (9, NUMBER, None),
    (10, STRUCT, Some(&LOGICAL)),
]);
const LOGICAL: Shape = Shape(&[
    (1, STRUCT, Some(&EMPTY)),
    (2, STRUCT, Some(&EMPTY)),
    (3, STRUCT, Some(&EMPTY)),
    (4, STRUCT, Some(&EMPTY)),
    (5, STRUCT, Some(&Shape(&[(1, NUMBER, None), (2, NUMBER, None)]))),
    (6, STRUCT, Some(&EMPTY)),
    (7, STRUCT, Some(&TIME)),
    (8, STRUCT, Some(&TIME)),
    (10, STRUCT, Some(&Shape(&[(1, TINY, None), (2, TRUE, None)]))),
    (11, STRUCT, Some(&EMPTY)),
    (12, STRUCT, Some(&EMPTY)),
    (13, STRUCT, Some(&EMPTY)),
    (14, STRUCT, Some(&EMPTY)),
    (15, STRUCT, Some(&EMPTY)),
    (16, STRUCT, Some(&Shape(&[(1, TINY, None)]))),
    (17, STRUCT, Some(&Shape(&[(1, BINARY, None)]))),
    (18, STRUCT, Some(&Shape(&[(1, BINARY, None), (2, NUMBER, None)]))),
]);
const TIME: Shape = Shape(&[(1, TRUE, None), (2, STRUCT, Some(&UNIT))]);
const UNIT: Shape = Shape(&[(1, STRUCT, Some(&EMPTY)), (2, STRUCT, Some(&EMPTY)), (3, STRUCT, Some(&EMPTY))]);
const ROW_GROUP: Shape = Shape(&[
    (1, LIST, Some(&CHUNK)),
    (2, LONG, None),
    (3, LONG, None),
    (4, LIST, Some(&Shape(&[(1, NUMBER, None), (2, TRUE, None), (3, TRUE, None)]))),
    (5, LONG, None),
    (6, LONG, None),
    (7, SHORT, None),
]);
const CHUNK: Shape = Shape(&[
    (1, BINARY, None),
    (2, LONG, None),
    (3, STRUCT, Some(&COLUMN)),
    (4, LONG, None),
    (5, NUMBER, None),
    (6, LONG, None),
    (7, NUMBER, None),
    (8, STRUCT, None),
    (9, BINARY, None),
]);
const COLUMN: Shape = Shape(&[
    (1, NUMBER, None),
    (2, LIST, None),
    (3, LIST, None),
    (4, NUMBER, None),
    (5, LONG, None),
    (6, LONG, None),
    (7, LONG, None),
    (8, LIST, Some(&KEY_VALUE)),
    (9, LONG, None),
    (10, LONG, None),
    (11, LONG, None),
    (12, STRUCT, Some(&STATISTICS)),
    (13, LIST, Some(&Shape(&[(1, NUMBER, None), (2, NUMBER, None), (3, NUMBER, None)]))),
    (14, LONG, None),
    (15, NUMBER, None),
    (16, STRUCT, Some(&Shape(&[(1, LONG, None), (2, LIST, None), (3, LIST, None)]))),
    (17, STRUCT, Some(&Shape(&[(1, STRUCT, Some(&BOX)), (2, LIST, None)]))),
]);
const STATISTICS: Shape = Shape(&[
    (1, BINARY, None),
    (2, BINARY, None),
    (3, LONG, None),
    (4, LONG, None),
    (5, BINARY, None),
    (6, BINARY, None),
    (7, TRUE, None),
    (8, TRUE, None),
]);
const BOX: Shape = Shape(&[
    (1, DOUBLE, None),
    (2, DOUBLE, None),
    (3, DOUBLE, None),
    (4, DOUBLE, None),
    (5, DOUBLE, None),
    (6, DOUBLE, None),
    (7, DOUBLE, None),
    (8, DOUBLE, None),
]);

/// What a file ends with: the footer's length, and the format's name.
pub const PARQUET_TAIL_BYTES: usize = 8;
const MAGIC: &[u8; 4] = b"PAR1";

/// The length of the footer that stands before these last bytes of a file; none where it is no Parquet file whose footer can be read.
pub fn parquet_footer_bytes(tail: &[u8; PARQUET_TAIL_BYTES]) -> Option<u32> {
    let [a, b, c, d, magic @ ..] = tail;
    (magic == MAGIC).then(|| u32::from_le_bytes([*a, *b, *c, *d]))
}

/// Whether a library may read a footer, which is all that stands before its length and the file's last word.
///
/// # Errors
/// [`PageFault::Damage`] where it is at odds with the format, or says that it has more than there can be.
pub fn check_parquet_footer(bytes: &[u8]) -> Result<(), PageFault> {
    let mut reader = Reader::new(bytes);
    let read = file(&mut reader);
    debug_assert!(reader.at <= bytes.len(), "no byte is read that is behind the last one");
    read.map_err(|broken| {
        let why = match broken {
            Broken::Cut => "it ends too early",
            Broken::Odd(why) => why,
        };
        PageFault::Damage(format!("its footer is damaged: {why}"))
    })
}

fn file(reader: &mut Reader<'_>) -> Read<()> {
    walk(reader, &FILE, &mut |reader, number| {
        match number {
            SCHEMA => schema(reader)?,
            ROW_GROUPS => {
                let groups = structs(reader)?;
                if groups > GROUPS_MAX {
                    return Err(Broken::Odd("it has more row groups than there can be"));
                }
                for _ in 0..groups {
                    walk(reader, &ROW_GROUP, &mut |_, _| Ok(false))?;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// The fields stand one behind the other, each before those in it.
fn schema(reader: &mut Reader<'_>) -> Read<()> {
    let fields = structs(reader)?;
    if fields > FIELDS_MAX {
        return Err(Broken::Odd("its schema has too many fields"));
    }
    // How many fields are still to come, all in all, and in each of those that stand in each other, with what its path takes.
    let (mut awaited, mut within) = (0_u64, Vec::<(u64, u64)>::new());
    let mut paths = 0;
    for at in 0..fields {
        let (inside, name) = field(reader)?;
        while within.last().is_some_and(|(left, _)| *left == 0) {
            within.pop();
        }
        // The first one is the file, of which no path says anything.
        let mut path = 0;
        match within.last_mut() {
            Some((left, above)) => {
                *left -= 1;
                awaited -= 1;
                path = *above + name + NAME_BYTES;
            }
            None if at > 0 => return Err(Broken::Odd("its schema has several roots")),
            None => {}
        }
        awaited += inside;
        if awaited >= fields - at {
            return Err(Broken::Odd("a field has more fields than there are"));
        }
        if inside > 0 {
            within.push((inside, path));
        } else {
            paths += path;
        }
        if within.len() > DEPTH_MAX {
            return Err(Broken::Odd("fields stand too deep in each other"));
        }
        if paths > PATHS_MAX {
            return Err(Broken::Odd("the names of its fields are too long"));
        }
        debug_assert!(awaited == 0 || within.iter().any(|(left, _)| *left > 0), "what is awaited is awaited by a field");
    }
    debug_assert_eq!(awaited, 0, "no field is awaited behind the last one");
    debug_assert!(within.iter().all(|(left, _)| *left == 0), "and none by any");
    Ok(())
}

/// How many fields stand in a field, and the length of its name.
fn field(reader: &mut Reader<'_>) -> Read<(u64, u64)> {
    let (mut inside, mut name) = (0, 0);
    walk(reader, &FIELD, &mut |reader, number| {
        match number {
            NAME => {
                name = reader.unsigned()?;
                reader.pass(name)?;
            }
            FIELDS => inside = u64::try_from(reader.number()?).map_err(|_| Broken::Odd("a field has less than no fields"))?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((inside, name))
}

/// Reads a struct to its end. `own` reads the fields that it has to, and says which: others are passed over.
fn walk(reader: &mut Reader<'_>, shape: &Shape, own: &mut dyn FnMut(&mut Reader<'_>, i16) -> Read<bool>) -> Read<()> {
    let mut last = 0;
    while let Some((number, kind)) = reader.field(last)? {
        last = number;
        let known = shape.0.iter().find(|(known, ..)| *known == number);
        if known.is_some_and(|(_, wanted, _)| !stands_for(kind, *wanted)) {
            return Err(Broken::Odd("a field has another type than the format says"));
        }
        if own(reader, number)? {
            continue;
        }
        match known.and_then(|(_, _, inside)| *inside) {
            Some(inside) if kind == LIST => {
                for _ in 0..structs(reader)? {
                    walk(reader, inside, &mut |_, _| Ok(false))?;
                }
            }
            Some(inside) => walk(reader, inside, &mut |_, _| Ok(false))?,
            None => {
                let start = reader.at;
                reader.skip(kind)?;
                // One of 8 bits has one byte: who awaits it takes no more.
                if kind != TINY && known.is_some_and(|(_, wanted, _)| *wanted == TINY) && reader.at != start + 1 {
                    return Err(Broken::Odd("a number is too large"));
                }
            }
        }
    }
    Ok(())
}

/// Whether a value of a type is read as one of another. What is true or false stands in the type. Numbers are written the same way
/// however large they may be, and some writers call all of them alike.
fn stands_for(kind: u8, wanted: u8) -> bool {
    kind == wanted || (kind, wanted) == (FALSE, TRUE) || (SHORT..=LONG).contains(&kind) && (TINY..=LONG).contains(&wanted)
}

/// How many structs a list has.
fn structs(reader: &mut Reader<'_>) -> Read<u64> {
    let (count, kind) = reader.list()?;
    if count == 0 || kind == STRUCT { Ok(count) } else { Err(Broken::Odd("a list has other values than the format says")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of a schema, with so many fields in it.
    fn field(fields: u8) -> Vec<u8> {
        // A name of one letter, and the number, which is doubled.
        vec![0x48, 1, b'a', 0x15, fields * 2, 0]
    }

    /// A file of these fields of a schema, behind which stands `rest`.
    fn file_of(fields: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
        let count = fields.len();
        let list =
            vec![0x15, 2, 0x19, 0xfc, 0x80 | (count & 0x7f) as u8, 0x80 | ((count >> 7) & 0x7f) as u8, (count >> 14) as u8];
        [list, fields.concat(), rest.to_vec()].concat()
    }

    /// No rows in no row groups, and the end.
    const NO_ROWS: [u8; 5] = [0x16, 0, 0x19, 0x0c, 0];

    fn refused(bytes: &[u8]) -> String {
        match check_parquet_footer(bytes) {
            Ok(()) => String::new(),
            Err(fault) => forebay_types::Error::from(fault).message().to_string(),
        }
    }

    #[test]
    fn fields_that_are_there_are_read() {
        assert_eq!(refused(&file_of(&[field(2), field(0), field(1), field(0)], &NO_ROWS)), "");
        // One row group of one column, of which nothing but a place is said.
        let group = [0x16, 0, 0x19, 0x1c, 0x19, 0x1c, 0x26, 0, 0, 0x16, 0, 0x16, 0, 0, 0];
        assert_eq!(refused(&file_of(&[field(1), field(0)], &group)), "");
        let deep = |depth: usize| [vec![field(1); depth], vec![field(0)]].concat();
        assert_eq!(refused(&file_of(&deep(DEPTH_MAX), &NO_ROWS)), "");
    }

    #[test]
    fn what_a_library_would_make_room_for_or_call_itself_for_is_refused() {
        // 2^31 - 1 row groups, of which there is none: 12 bytes.
        let groups = [0x16, 0, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0];
        let many = file_of(&[field(0)], &groups);
        assert!(refused(&many).contains("more row groups than there can be"), "{}", refused(&many));
        let fields = [vec![0x48, 1, b'a', 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0]];
        let many = file_of(&fields, &NO_ROWS);
        assert!(refused(&many).contains("more fields than there are"), "{}", refused(&many));
        let deep = file_of(&[vec![field(1); 100_000], vec![field(0)]].concat(), &NO_ROWS);
        assert!(refused(&deep).contains("too deep"), "{}", refused(&deep));
        let twice = file_of(&[field(0), field(0)], &NO_ROWS);
        assert!(refused(&twice).contains("several roots"), "{}", refused(&twice));
    }

    #[test]
    fn names_that_a_library_would_copy_for_each_field_are_refused() {
        // A name of 1 MiB, below which 1000 fields stand: a path of each takes 1 GiB.
        let long = [vec![0x48, 0x80, 0x80, 0x40], vec![b'a'; 1 << 20], vec![0x15, 0xd0, 0x0f, 0]].concat();
        let many = file_of(&[vec![field(1), long.clone()], vec![field(0); 1000]].concat(), &NO_ROWS);
        assert!(refused(&many).contains("too long"), "{}", refused(&many));
        // Of the file itself it is in no path.
        assert_eq!(refused(&file_of(&[vec![long], vec![field(0); 1000]].concat(), &NO_ROWS)), "");
    }

    #[test]
    fn what_writers_call_by_other_names_or_add_is_read() {
        // The number of a row group, which has 16 bits, and as one of 32 and of 64.
        for number in [0x44, 0x45, 0x46] {
            let group = [0x16, 0, 0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16, 0, number, 0, 0, 0];
            assert_eq!(refused(&file_of(&[field(0)], &group)), "");
        }
        // All numbers of a field as ones of 64 bits.
        let large = vec![0x16, 4, 0x26, 2, 0x18, 1, b'a', 0x16, 0, 0];
        assert_eq!(refused(&file_of(&[field(1), large], &NO_ROWS)), "");
        // How many bits a number has, in 32: 8 of them, and 64, which takes two bytes.
        let logical = |number: &[u8]| [&[0x48, 1, b'a', 0x6c, 0xac, 0x15][..], number, &[0x12, 0, 0, 0]].concat();
        assert_eq!(refused(&file_of(&[field(1), logical(&[0x10])], &NO_ROWS)), "");
        assert!(refused(&file_of(&[field(1), logical(&[0x80, 1])], &NO_ROWS)).contains("too large"));
        // What later versions add to a file, and a list of nothing without a type.
        let later = [&NO_ROWS[..3], &[0, 0xc8, 1, b'a', 0x1c, 0x18, 1, b'b', 0, 0]].concat();
        assert_eq!(refused(&file_of(&[field(0)], &later)), "");
    }

    #[test]
    fn what_another_reader_takes_for_something_else_is_refused() {
        // Row groups that are called a number.
        let number = file_of(&[field(0)], &[0x16, 0, 0x15, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0]);
        assert!(refused(&number).contains("another type"), "{}", refused(&number));
        // The same within a column, whose place is called a struct.
        let within = file_of(&[field(0)], &[0x16, 0, 0x19, 0x1c, 0x19, 0x1c, 0x2c, 0, 0, 0, 0]);
        assert!(refused(&within).contains("another type"), "{}", refused(&within));
        let whole = file_of(&[field(1), field(0)], &NO_ROWS);
        for end in 0..whole.len() {
            assert!(refused(&whole[..end]).contains("too early"), "{end} bytes");
        }
    }
}
