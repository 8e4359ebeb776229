//! Values that are learned, each with a guess behind it.

/// What is known moves a part of the way to what was measured last.
pub(crate) fn learn(known: &mut f64, measured: f64, weight: f64) {
    debug_assert!((0.0..=1.0).contains(&weight), "{weight} is a part of the way");
    *known += (measured - *known) * weight;
}

/// The same of bytes a second. Over in no time says nothing.
pub(crate) fn learn_rate(known: &mut f64, bytes: u64, secs: f64, weight: f64) {
    if secs > 0.0 {
        learn(known, bytes as f64 / secs, weight);
    }
}

/// What was measured counts a little less from now on, since a bad moment must not decide for good: so much is `left` of how far it is
/// from the guess.
pub(crate) fn doubt(known: &mut f64, guess: f64, left: f64) {
    *known = guess + (*known - guess) * left;
}
