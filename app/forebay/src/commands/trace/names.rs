//! Hashes in the place of names, so that a trace may be shown to others.

use std::hash::{BuildHasher, RandomState};

/// A secret of this process, which is kept nowhere: without it no guess of a name can be tried.
#[derive(Default)]
pub(super) struct Names(RandomState);

impl Names {
    /// A path whose parts are hashed one by one, so that what lies in one folder still does.
    pub(super) fn hidden(&self, path: &str) -> String {
        let part = |part: &str| if part.is_empty() { String::new() } else { format!("{:016x}", self.0.hash_one(part)) };
        path.split('/').map(part).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_still_does_and_nothing_is_told() {
        let names = Names::default();
        let paths = ["/lake/dt=1/a", "/lake/dt=1/b", "/lake/dt=2//a/"];
        let [one, two, three] = paths.map(|path| names.hidden(path));
        let parts = |path: &str| path.split('/').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(parts(&one)[..3], parts(&two)[..3]);
        assert_ne!(one, two);
        assert_eq!((parts(&three).len(), &parts(&three)[3][..], &parts(&three)[5][..]), (6, "", ""));
        assert_eq!(parts(&three)[4], parts(&one)[3], "the same name is the same everywhere");
        assert!([&one, &two, &three].iter().all(|path| !path.contains("lake") && !path.contains("dt")));
        assert_eq!(names.hidden(paths[0]), one);
        assert_ne!(Names::default().hidden(paths[0]), one, "another trace has another secret");
    }
}
