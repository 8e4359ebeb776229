//! Enums whose variants have a word each.

/// Gives the variants of an enum their words: by `as_str` and `Display` they are shown, by `FromStr` read; what is none of them is the
/// error that stands behind.
///
/// ```
/// use forebay_types::{Error, named};
///
/// #[derive(Debug, PartialEq, Clone, Copy)]
/// enum Side {
///     Left,
///     Right,
/// }
/// named! { Side, Error: Left = "left", Right = "right"; |text| Error::invalid(format!("{text:?} is no side: write left or right")) }
///
/// assert_eq!("left".parse::<Side>().unwrap(), Side::Left);
/// assert_eq!(Side::Right.to_string(), "right");
/// assert!("up".parse::<Side>().is_err());
/// ```
#[macro_export]
macro_rules! named {
    ($of:ident, $error:ty: $($variant:ident = $word:literal),+; |$text:ident| $wrong:expr) => {
        impl $of {
            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $of {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $of {
            type Err = $error;

            fn from_str($text: &str) -> ::std::result::Result<Self, $error> {
                match $text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($wrong),
                }
            }
        }
    };
}
