//! Which functions make far more than what they are given, and how much at most.

use super::argument::Argument;

/// Bytes that an offset or a view takes beside a value.
const BESIDE: u64 = 16;
/// The longest character in UTF-8.
const CHARACTER: u64 = 4;
/// The longest text of a number.
const NUMBER: u64 = 330;
/// What a directive of a format becomes, a byte of it: `%+` is 35 bytes.
const DIRECTIVE: u64 = 20;
/// An element of a series.
const ELEMENT: u64 = 8;

/// By what a function's result grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Grows {
    /// What it is given, together.
    Sum,
    /// Twice that.
    Twice,
    /// And what is put between.
    Separated,
    /// A number of times a text.
    Repeated,
    /// A number of characters.
    Padded,
    /// A number of elements.
    ElementRepeated,
    /// A number of elements beside those that are there.
    Resized,
    /// The numbers, or times, between two.
    Series,
    /// What a text in a text becomes.
    Replaced,
    /// What a match in a text becomes.
    MatchReplaced,
    /// What an element of a list becomes.
    ElementReplaced,
    /// What each group of a pattern has met.
    Matched,
    /// Elements as a text.
    Joined,
    /// A text as elements.
    Split,
    /// Lists as long as the longest.
    Zipped,
    /// What a format says.
    Formatted,
}

impl Grows {
    /// How the function of this name grows; none where its result is about as large as what it is given, however often it is given that.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "concat" | "overlay" | "make_array" | "array_append" | "array_prepend" | "array_concat" | "array_union" | "map" => {
                Self::Sum
            }
            "encode" => Self::Twice,
            "concat_ws" => Self::Separated,
            "repeat" => Self::Repeated,
            "lpad" | "rpad" => Self::Padded,
            "array_repeat" => Self::ElementRepeated,
            "array_resize" => Self::Resized,
            "range" | "generate_series" => Self::Series,
            "replace" => Self::Replaced,
            "regexp_replace" => Self::MatchReplaced,
            "array_replace" | "array_replace_n" | "array_replace_all" => Self::ElementReplaced,
            "regexp_match" => Self::Matched,
            "array_to_string" => Self::Joined,
            "string_to_array" => Self::Split,
            "arrays_zip" => Self::Zipped,
            "to_char" => Self::Formatted,
            _ => return None,
        })
    }

    /// The most bytes that so many rows come to.
    pub(super) fn bytes(self, arguments: &[Argument], rows: u64) -> u64 {
        self.values(arguments, rows).saturating_add(rows.saturating_mul(BESIDE))
    }

    /// The same without what stands beside each row's value.
    fn values(self, arguments: &[Argument], rows: u64) -> u64 {
        let sum = |of: fn(&Argument) -> u64| arguments.iter().map(of).fold(0, u64::saturating_add);
        let bytes = |place: usize| arguments.get(place).map_or(0, Argument::bytes);
        let length = |place: usize| arguments.get(place).map_or(0, Argument::length);
        let largest = |place: usize| arguments.get(place).map_or(0, Argument::largest);
        let number = |place: usize| arguments.get(place).map_or(0, Argument::number);
        let elements = |place: usize| arguments.get(place).map_or(0, Argument::elements);
        let more = match self {
            Self::Sum => return sum(Argument::bytes),
            Self::Twice => return length(0).saturating_mul(2),
            Self::Series => return series(arguments, rows),
            Self::Separated => {
                let between = sum(Argument::leaves).saturating_add(rows.saturating_mul(arguments.len() as u64));
                return sum(Argument::bytes).saturating_add(between.saturating_mul(largest(0)));
            }
            Self::Repeated => return length(0).saturating_mul(number(1)),
            Self::Padded => {
                let character = if arguments.len() > 2 { CHARACTER } else { 1 };
                rows.saturating_mul(number(1)).saturating_mul(character)
            }
            Self::ElementRepeated => {
                let element = bytes(0).saturating_add(rows.saturating_mul(BESIDE));
                return element.saturating_mul(number(1));
            }
            Self::Resized => {
                let null = arguments.first().map_or(0, Argument::null_element);
                let element = bytes(2).saturating_add(rows.saturating_mul(null.saturating_add(BESIDE)));
                element.saturating_mul(number(1))
            }
            Self::Replaced => {
                let shortest = arguments.get(1).map_or(0, Argument::shortest).max(1);
                (length(0) / shortest).saturating_add(rows).saturating_mul(largest(2))
            }
            Self::MatchReplaced => {
                // Without flags the first match alone is replaced. It may name groups, each with two bytes.
                let matches = if arguments.len() > 3 { length(0).saturating_add(rows) } else { rows };
                matches.saturating_mul(largest(2)).saturating_add(length(0).saturating_mul(largest(2) / 2))
            }
            Self::ElementReplaced => elements(0).saturating_mul(largest(2)),
            Self::Matched => bytes(0).saturating_mul(largest(1) / 2).saturating_add(rows.saturating_mul(BESIDE)),
            Self::Joined => {
                let leaves = arguments.first().map_or(0, Argument::leaves);
                leaves.saturating_mul(largest(1).saturating_add(largest(2)).saturating_add(NUMBER))
            }
            Self::Split => length(0).saturating_mul(BESIDE),
            Self::Zipped => {
                let null = sum(Argument::null_element);
                return sum(Argument::bytes).saturating_add(sum(Argument::elements).saturating_mul(null));
            }
            Self::Formatted => return length(1).saturating_mul(DIRECTIVE),
        };
        bytes(0).saturating_add(more)
    }
}

/// Bytes of `start`, `stop` and `step`, of which `stop` may stand alone.
fn series(arguments: &[Argument], rows: u64) -> u64 {
    let (start, stop) = match arguments {
        [] => return 0,
        [stop] => (None, stop),
        [start, stop, ..] => (Some(start), stop),
    };
    let elements = |row: usize| {
        let (from, to) = (start.map_or(Some(0), |start| start.point(row))?, stop.point(row)?);
        let step = arguments.get(2).map_or(Some(1), |step| step.step(row, stop.is_of_days()))?;
        // One that goes in both directions may never get there.
        let steps = if step == 0 { i128::from(u64::MAX) } else { (to - from) / step };
        Some(u64::try_from(steps.max(0)).unwrap_or(u64::MAX).saturating_add(1))
    };
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let count = match arguments.iter().all(Argument::is_constant) {
        true => elements(0).unwrap_or(0).saturating_mul(rows as u64),
        false => (0..rows).filter_map(elements).fold(0, u64::saturating_add),
    };
    count.saturating_mul(ELEMENT)
}
