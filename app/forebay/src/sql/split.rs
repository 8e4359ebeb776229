//! Tells the prompt when what was typed is a whole statement, before there is an engine to ask.

/// Whether the text ends with a `;` that ends a statement.
pub(crate) fn is_complete(text: &str) -> bool {
    let mut rest = text;
    // The first `;` outside of quotes and comments.
    while let Some((end, _)) = tokens(rest).find(|(_, token)| *token == Token::End) {
        rest = &rest[end + 1..];
        if !tokens(rest).any(|(_, token)| token == Token::Text) {
            return true;
        }
    }
    false
}

#[derive(Clone, Copy, PartialEq)]
enum Token {
    /// A `;`.
    End,
    /// What is neither space nor comment.
    Text,
    /// Space or a comment.
    Nothing,
}

/// The text in pieces, as far as statements are concerned, each with its place.
fn tokens(text: &str) -> impl Iterator<Item = (usize, Token)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let first = rest.chars().next()?;
        let until = |end: &str, skip: usize| rest[skip..].find(end).map_or(rest.len(), |found| skip + found + end.len());
        let (len, token) = match first {
            ';' => (1, Token::End),
            // A doubled quote inside ends one quoted piece and starts the next, which comes to the same.
            '\'' | '"' | '`' => (until(first.encode_utf8(&mut [0; 4]), 1), Token::Text),
            '$' if rest.starts_with("$$") => (until("$$", 2), Token::Text),
            '-' if rest.starts_with("--") => (until("\n", 2), Token::Nothing),
            '/' if rest.starts_with("/*") => (until("*/", 2), Token::Nothing),
            space if space.is_whitespace() => (space.len_utf8(), Token::Nothing),
            other => (other.len_utf8(), Token::Text),
        };
        let place = at;
        at += len;
        Some((place, token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_complete_at_its_semicolon() {
        assert!(is_complete("select 1;"));
        assert!(is_complete("select 1; -- done"));
        assert!(is_complete("select ';'; /* ; */ -- ;\n"));
        assert!(is_complete("select 'it''s';"));
        assert!(is_complete("select $$;$$;") && !is_complete("select $$;"));
        assert!(!is_complete("select ';"));
        assert!(!is_complete("select 1 -- ;"));
        assert!(!is_complete("select 1; select"));
        assert!(!is_complete("select 1"));
    }
}
