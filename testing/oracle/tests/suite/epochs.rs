//! Views of the cluster that one coordinator an epoch has given, and others.

use forebay_oracle::{Rule, Views};

/// What is wrong when somebody is shown these, one after the other: who, epoch and version, and what they say.
fn broken(shown: &[(&str, (u64, u64), u64)]) -> Vec<Rule> {
    let mut views = Views::default();
    shown.iter().filter_map(|(who, of, says)| views.note(who, *of, *says)).map(|violation| violation.rule).collect()
}

#[test]
fn a_version_says_the_same_to_all_and_epochs_only_grow() {
    let one_after_the_other = [("a", (1, 5), 50), ("b", (1, 4), 40), ("a", (2, 1), 10), ("b", (1, 5), 50), ("b", (2, 1), 10)];
    assert!(broken(&one_after_the_other).is_empty(), "who hears late hears the same");
    assert!(broken(&[("a", (1, 5), 50), ("a", (1, 5), 50), ("a", (2, 5), 51)]).is_empty(), "each epoch counts by itself");
}

#[test]
fn two_coordinators_in_one_epoch_are_found() {
    assert_eq!(broken(&[("a", (1, 5), 50), ("b", (1, 5), 51)]), [Rule::OneEpoch]);
}

#[test]
fn who_goes_back_to_an_earlier_epoch_is_found() {
    assert_eq!(broken(&[("a", (2, 1), 10), ("b", (1, 9), 90), ("a", (1, 9), 90)]), [Rule::OneEpoch]);
}
