//! The paths of a file that begin at the crate or above the module, with the lists of `use` taken apart.

use crate::source::{find_words, is_name};

/// `crate::a::{b, c::D}` is `crate a b` and `crate a c D`.
pub(super) fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for at in find_words(code, start) {
            // `super::super::` is taken from its beginning.
            if !code[..at].ends_with("::") {
                tree(&code[at..], Vec::new(), &mut found);
            }
        }
    }
    found
}

/// The names that `pub use` and `use` of this file bring in from its own modules, each with its whole path.
pub(super) fn imports(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for at in find_words(code, "use ") {
        tree(code[at + "use ".len()..].trim_start(), Vec::new(), &mut found);
    }
    found
}

/// Takes one path or list of them from the beginning of `code`, and says how many bytes it took.
fn tree(code: &str, mut prefix: Vec<String>, found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 0;
    loop {
        at += blanks(&code[at..]);
        if code[at..].starts_with('{') {
            return at + list(&code[at..], &prefix, found);
        }
        let name = code[at..].bytes().take_while(|&byte| is_name(byte)).count();
        if name == 0 {
            at += usize::from(code[at..].starts_with('*'));
            break;
        }
        prefix.push(code[at..at + name].to_owned());
        at += name;
        if !code[at..].starts_with("::") {
            break;
        }
        at += 2;
    }
    found.push(prefix);
    at
}

fn list(code: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut at = 1;
    while at < code.len() && !code[at..].starts_with('}') {
        let byte = code.as_bytes()[at];
        if is_name(byte) || byte == b'*' || byte == b'{' {
            at += tree(&code[at..], prefix.to_vec(), found);
            // What follows a name up to the next comma says how it is called here.
            at += code[at..].find([',', '}']).unwrap_or(code.len() - at);
        } else {
            at += code[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    (at + 1).min(code.len())
}

fn blanks(code: &str) -> usize {
    code.len() - code.trim_start().len()
}
