//! A Rust file as the rules read it: its code without what stands in comments, strings and tests.

/// What stands before that which only tests have. Strings are blank, so that the name of a feature is not there.
const TEST_ATTRIBUTES: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test, loom))]", "#[cfg(loom)]"];

/// A file's text, and the same text with everything blanked that is not code. Lines stay where they were.
pub(crate) struct Source {
    /// As it is on disk.
    pub(crate) text: String,
    /// With blanks for comments, strings and characters.
    pub(crate) code: String,
    /// With blanks for modules under `#[cfg(test)]` as well.
    pub(crate) shipped: String,
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        let code = blank_prose(&text);
        let shipped = blank_test_modules(&code);
        Self { text, code, shipped }
    }

    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }
}

/// The line of a place, from 1.
pub(crate) fn line_at(code: &str, at: usize) -> usize {
    code.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Where a word begins, as a word of its own: what stands before it is not part of a name.
pub(crate) fn find_words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(|&at| at == 0 || !is_name(code.as_bytes()[at - 1]))
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The name that a text begins with.
pub(crate) fn name_at(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.bytes().take_while(|&byte| is_name(byte)).count()]
}

/// The place behind the brace that closes the one at `open`.
pub(crate) fn end_of_block(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return offset + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The modules under `#[cfg(test)]` that have files of their own.
pub(crate) fn test_modules(code: &str) -> impl Iterator<Item = &str> {
    test_items(code).filter_map(|(_, at, end)| {
        let is_declared = code.as_bytes()[end] == b';';
        module_name(&code[at..end]).filter(|_| is_declared)
    })
}

fn blank_test_modules(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (attribute, at, end) in test_items(code) {
        if code.as_bytes()[end] == b'{' && module_name(&code[at..end]).is_some() {
            blank(&mut bytes, attribute, end_of_block(code, end));
        }
    }
    text_of(bytes)
}

/// The name of the item, if it is a module.
fn module_name(item: &str) -> Option<&str> {
    let mut words = item.split_whitespace().rev();
    words.next().filter(|_| words.next() == Some("mod"))
}

/// Where an attribute begins under which only tests have an item, where the item does, and the `{` or `;` of it.
fn test_items(code: &str) -> impl Iterator<Item = (usize, usize, usize)> {
    TEST_ATTRIBUTES.iter().flat_map(|attribute| code.match_indices(attribute)).filter_map(|(at, attribute)| {
        let item = at + attribute.len();
        let end = code[item..].find(['{', ';'])?;
        Some((at, item, item + end))
    })
}

fn blank_prose(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < text.len() {
        let end = end_of_prose(text.as_bytes(), at);
        if end > at {
            blank(&mut bytes, at, end);
            at = end;
        } else {
            at += 1;
        }
    }
    text_of(bytes)
}

/// Where the comment, string or character that begins here ends; `at` itself if none does.
fn end_of_prose(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    if rest.starts_with(b"//") {
        return at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }
    if rest.starts_with(b"/*") {
        return at + find(rest, b"*/").map_or(rest.len(), |end| end + 2);
    }
    match rest[0] {
        b'"' => at + end_of_string(rest),
        b'r' if at == 0 || !is_name(text[at - 1]) || text[at - 1] == b'b' => at + end_of_raw_string(rest),
        b'\'' => at + end_of_character(rest),
        _ => at,
    }
}

fn end_of_string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn end_of_raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let inside = 2 + hashes;
    find(&rest[inside..], &close).map_or(rest.len(), |end| inside + end + close.len())
}

/// A lifetime is no character: nothing closes it right behind its first sign.
fn end_of_character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().skip(3).position(|&byte| byte == b'\'').map_or(0, |end| end + 4);
    }
    let width = match rest.get(1) {
        None | Some(b'\'') => return 0,
        Some(byte) if byte.is_ascii() => 1,
        Some(_) => 1 + rest[2..].iter().take_while(|&&byte| byte & 0xC0 == 0x80).count(),
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn blank(bytes: &mut [u8], from: usize, to: usize) {
    let to = to.min(bytes.len());
    for byte in &mut bytes[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
