//! Types that are written as a text: enums whose variants have a word each, and what serde has as its text; and types that are as one of
//! their fields is.

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

/// Has `{:?}` show a type by these of its fields: the others are secret, or can't be shown.
///
/// ```
/// struct Key {
///     id: u32,
///     secret: String,
/// }
/// forebay_types::shown!(Key: id);
///
/// let key = Key { id: 7, secret: "unknown".into() };
/// assert!(!key.secret.is_empty() && format!("{key:?}") == "Key { id: 7, .. }");
/// ```
#[macro_export]
macro_rules! shown {
    ($of:ident $(: $($field:ident),+)?) => {
        impl ::std::fmt::Debug for $of {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($of))$($(.field(stringify!($field), &self.$field))+)?.finish_non_exhaustive()
            }
        }
    };
}

/// Has a type be shown as one of its fields is: `shown_as!(Named: name);`.
#[macro_export]
macro_rules! shown_as {
    ($of:ident: $field:tt) => {
        impl ::std::fmt::Display for $of {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.$field, f)
            }
        }
    };
}

/// Has a field, or what it gives, do these methods of a trait, each as it is said there.
///
/// ```
/// trait Counts {
///     fn count(&self) -> u32;
///     fn add(&mut self, more: u32);
/// }
///
/// impl Counts for u32 {
///     fn count(&self) -> u32 {
///         *self
///     }
///
///     fn add(&mut self, more: u32) {
///         *self += more;
///     }
/// }
///
/// struct Named {
///     count: u32,
/// }
///
/// impl Counts for Named {
///     forebay_types::handed_on! {
///         [count]
///         fn count(&self) -> u32;
///         fn add(&mut self, more: u32);
///     }
/// }
///
/// let mut named = Named { count: 3 };
/// named.add(4);
/// assert_eq!(named.count(), 7);
/// ```
#[macro_export]
macro_rules! handed_on {
    ([$($to:tt)+]) => {};
    ([$($to:tt)+] fn $name:ident(&self $(, $given:ident: $kind:ty)*) $(-> $gives:ty)?; $($rest:tt)*) => {
        fn $name(&self $(, $given: $kind)*) $(-> $gives)? {
            self.$($to)+.$name($($given),*)
        }

        $crate::handed_on!([$($to)+] $($rest)*);
    };
    ([$($to:tt)+] fn $name:ident(&mut self $(, $given:ident: $kind:ty)*) $(-> $gives:ty)?; $($rest:tt)*) => {
        fn $name(&mut self $(, $given: $kind)*) $(-> $gives)? {
            self.$($to)+.$name($($given),*)
        }

        $crate::handed_on!([$($to)+] $($rest)*);
    };
}

/// Makes a type a text where it is serialized (`#[serde(try_from = "String", into = "String")]`): that which it is shown as, and read from.
macro_rules! as_text {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = $crate::Error;

            fn try_from(text: String) -> $crate::Result<Self> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

pub(crate) use as_text;
