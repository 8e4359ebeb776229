//! Trigrams with their places, which Tantivy's own tokenizer of n-grams leaves out: by them a substring is a phrase, and none of what it finds
//! has to be looked at again.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Bytes of a gram.
pub const GRAM: usize = 3;

/// Every three bytes of a text in ASCII, each at the place where it begins.
#[derive(Clone, Default)]
pub struct Grams {
    token: Token,
}

pub struct GramStream<'a> {
    text: &'a str,
    next: usize,
    token: &'a mut Token,
}

impl Tokenizer for Grams {
    type TokenStream<'a> = GramStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GramStream<'a> {
        self.token.reset();
        GramStream { text, next: 0, token: &mut self.token }
    }
}

impl TokenStream for GramStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(gram) = self.text.get(self.next..self.next + GRAM) else { return false };
        self.token.text.clear();
        self.token.text.push_str(gram);
        self.token.position = self.next;
        (self.token.offset_from, self.token.offset_to) = (self.next, self.next + GRAM);
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}
