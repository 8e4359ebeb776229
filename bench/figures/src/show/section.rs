//! The part of a page that is written by a program: all between two markers.

use forebay_types::{Error, Result};

/// A kind of section, by the word in its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section(&'static str);

impl Section {
    /// Figures with their bars.
    pub const FIGURES: Self = Self("figures");
    /// Figures beside physical limits.
    pub const LIMITS: Self = Self("limits");

    /// The page with `body` between the markers.
    ///
    /// # Errors
    /// A page where a marker is missing, stands twice, or in the wrong order.
    pub fn write(self, page: &str, body: &str) -> Result<String> {
        let (begin, end) = self.markers();
        let (from, to) = (only(page, &begin)? + begin.len(), only(page, &end)?);
        if from > to {
            return Err(Error::invalid(format!("`{end}` stands before `{begin}`")));
        }
        Ok(format!("{}\n{}\n{}", &page[..from], body.trim(), &page[to..]))
    }

    fn markers(self) -> (String, String) {
        (format!("<!-- {}:begin -->", self.0), format!("<!-- {}:end -->", self.0))
    }
}

fn only(page: &str, marker: &str) -> Result<usize> {
    let mut places = page.match_indices(marker).map(|(at, _)| at);
    let first = places.next().ok_or_else(|| Error::not_found(format!("no `{marker}`: put it where the section shall be")))?;
    if places.next().is_some() { Err(Error::invalid(format!("`{marker}` stands twice: take one out"))) } else { Ok(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "before\n<!-- figures:begin -->\nold\n<!-- figures:end -->\nafter\n";

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let written = Section::FIGURES.write(PAGE, "new\nlines\n").unwrap();
        assert_eq!(written, "before\n<!-- figures:begin -->\nnew\nlines\n<!-- figures:end -->\nafter\n");
        assert_eq!(Section::FIGURES.write(&written, "new\nlines").unwrap(), written, "writing it again changes nothing");
    }

    #[test]
    fn a_page_without_its_markers_is_refused_and_says_which() {
        let missing = |page: &str, section: Section| section.write(page, "new").unwrap_err().to_string();
        assert!(missing("before\nafter\n", Section::FIGURES).contains("figures:begin"));
        assert!(missing("<!-- figures:begin -->", Section::FIGURES).contains("figures:end"));
        assert!(missing(PAGE, Section::LIMITS).contains("limits:begin"));
        assert!(missing(&format!("{PAGE}{PAGE}"), Section::FIGURES).contains("twice"));
        assert!(missing("<!-- figures:end --><!-- figures:begin -->", Section::FIGURES).contains("before"));
    }
}
