//! Objects of a log that come with the word of them: in whatever order they do, nothing is taken over that is not the next one, and nobody answers
//! without what was acknowledged.

use forebay_navigation::{LogRead, Telling, told};
use proptest::collection::vec;
use proptest::prelude::*;

fn read(next: u64, unseen: u64, is_ended: bool) -> LogRead {
    LogRead { next, unseen, is_ended }
}

#[test]
fn the_next_object_is_taken_and_what_fits_less_well_is_looked_for() {
    let all_seen = read(5, 5, false);
    let of = |number| told(&all_seen, number, false, true);
    assert_eq!([3, 4, 5, 6].map(of), [Telling::Look, Telling::Look, Telling::Take, Telling::Look]);
    assert_eq!(told(&all_seen, 4, true, false), Telling::Has, "a look was faster");
    assert_eq!(told(&all_seen, 5, false, false), Telling::Look, "there is no room");
    let ended = read(5, 5, true);
    assert_eq!(told(&ended, 5, false, true), Telling::Look, "nothing comes behind the end of a log");
    assert_eq!(told(&ended, 4, true, true), Telling::Has);
}

#[test]
fn what_two_disks_had_is_seen_in_order_and_only_if_it_is_the_same() {
    let unseen = read(7, 5, false);
    assert_eq!(told(&unseen, 5, true, true), Telling::See);
    for (number, is_same) in [(5, false), (6, true), (7, false), (4, true)] {
        assert_eq!(told(&unseen, number, is_same, true), Telling::Look, "{number}");
    }
}

/// What happens between writers, the words that are on their way, and one who hears.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody stores the next object.
    Store,
    /// A word comes.
    Hear(usize),
    /// One that came comes again.
    HearAgain(usize),
    /// It does not come: who hears forgets what it knew, and then its writer goes on.
    Miss(usize),
    /// Who hears begins to look into shared storage.
    BeginLook,
    /// Its answer is there.
    EndLook,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Store),
        4 => any::<usize>().prop_map(Step::Hear),
        1 => any::<usize>().prop_map(Step::HearAgain),
        1 => any::<usize>().prop_map(Step::Miss),
        1 => Just(Step::BeginLook),
        1 => Just(Step::EndLook),
    ];
    vec(step, 0..60)
}

/// Who hears. A word has a number; it is known which was the last before it was sure to have all.
struct Hearer {
    next: u64,
    word: u64,
    looked: u64,
    /// The last object and the last word when a look began.
    look: Option<(u64, u64)>,
}

impl Hearer {
    fn hear(&mut self, number: u64) {
        let telling = told(&read(self.next, self.next, false), number, number < self.next, true);
        self.next += u64::from(telling == Telling::Take);
        if telling.is_known() && self.looked == self.word {
            self.looked += 1;
        }
        self.word += 1;
    }

    fn answers_at_once(&self) -> bool {
        self.looked == self.word
    }
}

proptest! {
    #[test]
    fn whoever_answers_without_a_look_has_all_that_was_acknowledged(steps in steps()) {
        let mut hearer = Hearer { next: 1, word: 0, looked: 0, look: None };
        let (mut stored, mut acknowledged, mut on_their_way) = (0_u64, 0_u64, Vec::new());
        for step in steps {
            match step {
                Step::Store => {
                    stored += 1;
                    on_their_way.push(stored);
                }
                Step::Hear(place) if !on_their_way.is_empty() => {
                    let number = on_their_way.remove(place % on_their_way.len());
                    hearer.hear(number);
                    acknowledged = acknowledged.max(number);
                }
                Step::HearAgain(place) if stored > 0 => hearer.hear(place as u64 % stored + 1),
                Step::Miss(place) if !on_their_way.is_empty() => {
                    acknowledged = acknowledged.max(on_their_way.remove(place % on_their_way.len()));
                    hearer.word += 1;
                }
                Step::BeginLook => hearer.look = Some((stored, hearer.word)),
                Step::EndLook => {
                    if let Some((there, word)) = hearer.look.take() {
                        hearer.next = hearer.next.max(there + 1);
                        hearer.looked = hearer.looked.max(word);
                    }
                }
                _ => {}
            }
            prop_assert!(hearer.next <= stored + 1, "nothing is taken over that is not there");
            prop_assert!(!hearer.answers_at_once() || acknowledged < hearer.next, "{acknowledged} is acknowledged");
        }
    }

    #[test]
    fn who_hears_each_word_in_order_never_looks(count in 0_u64..50) {
        let mut hearer = Hearer { next: 1, word: 0, looked: 0, look: None };
        for number in 1..=count {
            hearer.hear(number);
            prop_assert!(hearer.answers_at_once() && hearer.next == number + 1);
        }
    }
}
