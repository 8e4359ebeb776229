//! Bytes of values and the symbols that stand for them in the text.
//!
//! A symbol is a byte of the text that is sorted. 0 ends the text, 1..=m delimit the attributes, and the bytes that occur
//! in values get the symbols after that, in order. No byte is reserved: if all do not fit, the lowest bytes that occur are
//! written as two symbols, the first from a range below and the second from a range above all others, so that order is
//! kept and no pattern can match across the two.

/// The symbol that ends the text.
pub(crate) const END: u8 = 0;

/// What a symbol means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The end of the text, or no symbol of this shard.
    End,
    /// The beginning of a value of this attribute.
    Delimiter(u8),
    /// A byte.
    Byte(u8),
    /// The first of two: holds the upper part of the byte's rank.
    First(u8),
    /// The second of two.
    Second(u8),
    /// There is no value.
    Null,
}

/// Where a bound lies against the symbols that stand for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is what they say.
    At,
    /// Before all that begins with them.
    Before,
    /// After all that begins with them.
    After,
}

#[derive(Clone, Debug)]
pub(crate) struct Alphabet {
    attributes: u8,
    used: [bool; 256],
    /// One or two symbols a byte; the first is 0 for a byte that does not occur.
    codes: Box<[[u8; 2]; 256]>,
    meanings: Box<[Meaning; 256]>,
    /// The bytes written as two symbols, by rank, and how many share a first symbol.
    paired: Vec<u8>,
    seconds: usize,
    firsts: u8,
    /// The symbol of null, if any value is null.
    pub(crate) null: Option<u8>,
    /// How many symbols there are.
    pub(crate) symbols: usize,
}

impl Alphabet {
    /// The alphabet of `attributes` delimiters, the used bytes, and null if there is one.
    pub(crate) fn new(attributes: u8, used: [bool; 256], nulls: bool) -> Self {
        let bytes: Vec<u8> = (0..=255).filter(|byte| used[*byte as usize]).collect();
        let fixed = 1 + attributes as usize + usize::from(nulls);
        // The fewest bytes as pairs, and with them the squarest split, so that all symbols fit in 256.
        let (pairs, seconds) = (0..=bytes.len())
            .map(|pairs| (pairs, (pairs as f64).sqrt().ceil() as usize))
            .find(|(pairs, seconds)| {
                let firsts = if *pairs == 0 { 0 } else { pairs.div_ceil(*seconds) };
                fixed + bytes.len() - pairs + firsts + seconds <= 256
            })
            .expect("all bytes as pairs take 32 symbols beside at most 122");
        let firsts = if pairs == 0 { 0 } else { pairs.div_ceil(seconds) };
        let mut codes = Box::new([[0; 2]; 256]);
        let mut meanings = Box::new([Meaning::End; 256]);
        for attribute in 0..attributes {
            meanings[attribute as usize + 1] = Meaning::Delimiter(attribute);
        }
        let first = attributes as usize + 1;
        let direct = first + firsts;
        let second = direct + bytes.len() - pairs;
        for (rank, byte) in bytes.iter().enumerate() {
            if rank < pairs {
                codes[*byte as usize] = [(first + rank / seconds) as u8, (second + rank % seconds) as u8];
                meanings[first + rank / seconds] = Meaning::First((rank / seconds) as u8);
                meanings[second + rank % seconds] = Meaning::Second((rank % seconds) as u8);
            } else {
                codes[*byte as usize] = [(direct + rank - pairs) as u8, 0];
                meanings[direct + rank - pairs] = Meaning::Byte(*byte);
            }
        }
        let mut symbols = second + seconds;
        let null = nulls.then_some(symbols as u8);
        if nulls {
            meanings[symbols] = Meaning::Null;
            symbols += 1;
        }
        Self { attributes, used, codes, meanings, paired: bytes[..pairs].to_vec(), seconds, firsts: firsts as u8, null, symbols }
    }

    /// The symbol that begins a value of `attribute`.
    pub(crate) fn delimiter(&self, attribute: usize) -> u8 {
        attribute as u8 + 1
    }

    #[inline(always)]
    pub(crate) fn meaning(&self, symbol: u8) -> Meaning {
        self.meanings[symbol as usize]
    }

    /// Whether a symbol is the first of two that stand for one byte.
    #[inline(always)]
    pub(crate) fn is_first(&self, symbol: u8) -> bool {
        symbol.wrapping_sub(self.attributes + 1) < self.firsts
    }

    /// The byte that two symbols stand for.
    pub(crate) fn pair(&self, first: u8, second: u8) -> u8 {
        self.paired.get(first as usize * self.seconds + second as usize).copied().unwrap_or_default()
    }

    /// Appends the symbols of `bytes`; false if one of them does not occur in the shard.
    #[inline]
    pub(crate) fn encode(&self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        for byte in bytes {
            let [first, second] = self.codes[*byte as usize];
            if first == 0 {
                return false;
            }
            out.push(first);
            if second != 0 {
                out.push(second);
            }
        }
        true
    }

    /// Appends symbols whose place in the order is where `bytes` would be: from the first byte on that does not occur,
    /// the next one that does takes its place.
    pub(crate) fn encode_bound(&self, bytes: &[u8], out: &mut Vec<u8>) -> Place {
        for byte in bytes {
            if self.codes[*byte as usize][0] != 0 {
                self.encode(&[*byte], out);
                continue;
            }
            return match (*byte..=255).find(|next| self.used[*next as usize]) {
                Some(next) => {
                    self.encode(&[next], out);
                    Place::Before
                }
                None => Place::After,
            };
        }
        Place::At
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.attributes);
        out.push(u8::from(self.null.is_some()));
        for eight in self.used.chunks(8) {
            out.push(eight.iter().enumerate().fold(0, |byte, (bit, used)| byte | u8::from(*used) << bit));
        }
    }

    /// The alphabet written in `bytes`; `None` if it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..34)?;
        let used = std::array::from_fn(|byte| bytes[2 + byte / 8] >> (byte % 8) & 1 == 1);
        (bytes[0] as usize <= super::schema::ATTRIBUTES_MAX && bytes[1] <= 1).then(|| Self::new(bytes[0], used, bytes[1] == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_fit_beside_all_delimiters_and_keep_their_order() {
        for attributes in [0, 1, 15, 120] {
            let alphabet = Alphabet::new(attributes, [true; 256], true);
            assert!(alphabet.symbols <= 256);
            let codes: Vec<Vec<u8>> = (0..=255u8)
                .map(|byte| {
                    let mut code = Vec::new();
                    assert!(alphabet.encode(&[byte], &mut code));
                    code
                })
                .collect();
            for code in &codes {
                let is_first = matches!(alphabet.meaning(code[0]), Meaning::First(_));
                assert_eq!((alphabet.is_first(code[0]), code.len()), (is_first, 1 + usize::from(is_first)));
            }
            assert!(codes.is_sorted() && codes.windows(2).all(|two| two[0] != two[1]), "{attributes} attributes");
        }
    }

    #[test]
    fn a_few_bytes_take_a_symbol_each() {
        let mut used = [false; 256];
        b"abc".iter().for_each(|byte| used[*byte as usize] = true);
        let alphabet = Alphabet::new(2, used, false);
        assert_eq!(alphabet.symbols, 6);
        let mut code = Vec::new();
        assert!(!alphabet.encode(b"ad", &mut code));
        assert_eq!(alphabet.meaning(3), Meaning::Byte(b'a'));
    }
}
