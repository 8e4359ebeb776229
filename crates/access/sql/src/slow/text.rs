//! A statement as a log has it: of bounded length, and without secrets.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

/// Bytes of a statement that are told.
const BYTES_MAX: usize = 4 << 10;
/// What stands for what is left out.
const LEFT_OUT: &str = "...";

/// What may be told of a statement: what `OPTIONS (..)` has in its parentheses is left out (of CREATE EXTERNAL TABLE and COPY), and of
/// URLs the user with a password and what stands after a `?`. So are comments, where either may stand; of what is no SQL all but the
/// first word.
pub fn told(sql: &str) -> String {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).with_unescape(false).tokenize() else {
        return cut(format!("{} {LEFT_OUT}", sql.split_whitespace().next().unwrap_or_default()));
    };
    let mut text = String::with_capacity(sql.len().min(BYTES_MAX));
    // Of open parentheses of options; and whether the next one may be their first.
    let (mut depth, mut comes) = (0usize, false);
    for token in &tokens {
        if text.len() > BYTES_MAX {
            break;
        }
        match token {
            Token::LParen if depth > 0 || comes => {
                if depth == 0 {
                    text += "(";
                    text += LEFT_OUT;
                }
                (depth, comes) = (depth + 1, false);
            }
            Token::RParen if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    text += ")";
                }
            }
            _ if depth > 0 => {}
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => text += " ",
            Token::Whitespace(_) => text += &token.to_string(),
            Token::Word(word) => {
                comes = word.quote_style.is_none() && word.value.eq_ignore_ascii_case("options");
                text += &without_secrets_of_url(&token.to_string());
            }
            _ => {
                comes = false;
                text += &without_secrets_of_url(&token.to_string());
            }
        }
    }
    cut(text)
}

/// A text that has a URL without its user and password, and without what stands after its `?`; any other as it is.
fn without_secrets_of_url(token: &str) -> String {
    let Some((scheme, rest)) = token.split_once("://") else { return token.to_string() };
    // Its last character is the quote.
    let (rest, quote) = rest.split_at(rest.char_indices().next_back().map_or(0, |(at, _)| at));
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, format!("?{LEFT_OUT}")),
        None => (rest, String::new()),
    };
    let host = rest.split('/').next().unwrap_or_default();
    let rest = if let Some(at) = host.rfind('@') { format!("{LEFT_OUT}{}", &rest[at..]) } else { rest.to_string() };
    format!("{scheme}://{rest}{query}{quote}")
}

/// The beginning of a text that is too long.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > BYTES_MAX {
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        text += LEFT_OUT;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_options_hold_is_left_out() {
        let create = "create external table t stored as CSV location '/lake/t' OPTIONS\n ('aws.secret' 'a (deep) ) secret', \
                      'x' nested('y'))";
        let expected = "create external table t stored as CSV location '/lake/t' OPTIONS\n (...)";
        assert_eq!(told(create), expected);
        let copy = "copy (select 'options (kept)' as x) to '/lake/o.csv' options(secret 1)";
        assert_eq!(told(copy), "copy (select 'options (kept)' as x) to '/lake/o.csv' options(...)");
        // A column of that name, and a call of a function that has it in quotes, are none.
        let column = "select options, (1), \"options\"(2) from '/lake/t.csv'";
        assert_eq!(told(column), column);
        assert_eq!(told("select 1/* key */+-- options ('x' 'secret')\n2, 'it''s'"), "select 1 + 2, 'it''s'");
        // Options without an end tell nothing more.
        assert_eq!(told("copy t to 'x' options ('key' 'secret'"), "copy t to 'x' options (...");
    }

    #[test]
    fn urls_lose_what_lets_somebody_in() {
        let from = |url: &str| told(&format!("select * from '{url}'"));
        assert_eq!(from("s3://key:secret@bucket/a@b.csv"), "select * from 's3://...@bucket/a@b.csv'");
        assert_eq!(from("https://x.blob/t.csv?sig=secret"), "select * from 'https://x.blob/t.csv?...'");
        assert_eq!(from("s3://bucket/a.csv"), "select * from 's3://bucket/a.csv'");
        assert_eq!(from("/lake/a?b=@c.csv"), "select * from '/lake/a?b=@c.csv'");
    }

    #[test]
    fn what_is_no_sql_and_what_is_long_is_cut() {
        assert_eq!(told("create external table t location 'x options ('secret'"), "create ...");
        let long = told(&format!("select '{}' as x", "é".repeat(BYTES_MAX)));
        assert!(long.len() <= BYTES_MAX + LEFT_OUT.len() && long.ends_with("é..."), "{} bytes", long.len());
    }
}
