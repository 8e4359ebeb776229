//! How long who asks still waits, and what is done with what is left of it.

use std::time::Duration;

/// Bytes before the message of a request that says it.
pub const LEFT_BYTES: usize = 4;
/// The longest that is said, in milliseconds: a day. What is longer is taken for this.
pub const LEFT_MS_MAX: u32 = 86_400_000;

/// How long somebody still waits for what is done for him; who has said nothing waits for as long as it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left(Option<Duration>);

impl Left {
    /// So long; none where nobody has said.
    pub fn new(left: Option<Duration>) -> Self {
        Self(left)
    }

    /// As a request has it: milliseconds, little endian, and 0 for nothing.
    pub fn from_bytes(bytes: [u8; LEFT_BYTES]) -> Self {
        let ms = u32::from_le_bytes(bytes);
        Self((ms > 0).then(|| Duration::from_millis(ms.min(LEFT_MS_MAX).into())))
    }

    /// The same for a request; none where there is nothing to say. Rounded up, so that nobody is given up before he gives up himself.
    pub fn to_bytes(self) -> Option<[u8; LEFT_BYTES]> {
        let ms = self.0?.as_micros().div_ceil(1_000).clamp(1, LEFT_MS_MAX.into()) as u32;
        debug_assert!((1..=LEFT_MS_MAX).contains(&ms), "{ms} ms would not be read as they are said");
        Some(ms.to_le_bytes())
    }

    /// How long that is, where it was said.
    pub fn known(self) -> Option<Duration> {
        self.0
    }

    /// Whether something may begin after a pause of this length: what is not begun while somebody waits is given up.
    pub fn lets_begin_after(self, pause: Duration) -> bool {
        self.0.is_none_or(|left| pause < left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_as_it_was_said_and_bounded() {
        let said = |left: Duration| Left::from_bytes(Left::new(Some(left)).to_bytes().unwrap()).known().unwrap();
        assert_eq!(said(Duration::from_millis(2_000)), Duration::from_secs(2));
        assert_eq!(said(Duration::from_micros(1_001)), Duration::from_millis(2), "never less than there is");
        assert_eq!(said(Duration::ZERO), Duration::from_millis(1), "it is over, which is not that nobody has said");
        let day = Duration::from_millis(LEFT_MS_MAX.into());
        assert_eq!(said(Duration::MAX), day);
        assert_eq!(Left::from_bytes([u8::MAX; LEFT_BYTES]).known(), Some(day));
        assert_eq!(Left::from_bytes([0; LEFT_BYTES]), Left::default());
        assert_eq!(Left::default().to_bytes(), None);
    }

    #[test]
    fn what_would_begin_when_nobody_waits_any_more_is_given_up() {
        let (second, two) = (Duration::from_secs(1), Duration::from_secs(2));
        assert!(Left::new(Some(two)).lets_begin_after(second));
        assert!(!Left::new(Some(second)).lets_begin_after(second) && !Left::new(Some(second)).lets_begin_after(two));
        assert!(!Left::new(Some(Duration::ZERO)).lets_begin_after(Duration::ZERO), "it is over");
        assert!(Left::default().lets_begin_after(Duration::MAX), "nobody has said");
    }
}
