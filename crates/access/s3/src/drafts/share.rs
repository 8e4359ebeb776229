//! How many uploads one writer may have begun.

/// Uploads that are under way at once.
pub(super) const UPLOADS_MAX: usize = 1000;

/// Whether who has `own` of all uploads that were begun may begin another one: who has as many as are left may not, so that some are left
/// whoever comes.
pub(super) fn may_begin(own: usize, begun: usize) -> bool {
    debug_assert!(own <= begun && begun <= UPLOADS_MAX, "{own} of {begun} uploads are somebody's");
    own < UPLOADS_MAX - begun
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::{Key, MountId};

    use super::super::Drafts;
    use super::*;

    #[test]
    fn whoever_comes_finds_some_that_are_left() {
        let mut begun = 0;
        let had = [(); 11].map(|()| {
            let mut own = 0;
            while may_begin(own, begun) {
                (own, begun) = (own + 1, begun + 1);
            }
            own
        });
        assert_eq!(had, [500, 250, 125, 63, 31, 16, 8, 4, 2, 1, 0]);
        assert_eq!(begun, UPLOADS_MAX);
    }

    #[test]
    fn one_writer_keeps_no_other_from_beginning_an_upload() {
        let (drafts, key) = (Drafts::new(1000), Key::new("a").unwrap());
        let begins = |by: &str| drafts.begin(by.to_string(), (MountId(1), key.clone()));
        let begun: Vec<String> = std::iter::from_fn(|| begins("first").ok()).collect();
        assert_eq!(begun.len(), UPLOADS_MAX / 2);
        let refused = begins("first").unwrap_err();
        assert!(refused.code == "SlowDown" && refused.message.contains("complete or abort"), "{}", refused.message);
        begins("second").expect("others begin theirs");
        drafts.abort((MountId(1), &key), &begun[0]).unwrap();
        begins("first").expect("one of his is gone");
        assert!(begins("first").is_err());
        drafts.forget(Duration::ZERO);
        begins("first").expect("all of his were forgotten");
    }
}
