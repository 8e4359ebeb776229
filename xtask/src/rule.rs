//! The rules by name, what to do about each, and one place that does not meet one.

use std::fmt;

/// What `cargo xtask tidy` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A crate depends on a member of the workspace's list that does not stand before it.
    Rings,
    /// Lines of files beyond the limit.
    FileLines,
    /// Lines of functions beyond the limit.
    FunctionLines,
    /// Source files of a folder beyond the limit.
    FolderFiles,
    /// Fields of structs beyond the limit.
    StructFields,
    /// A file of a few lines that has no type of its own.
    SmallFiles,
    /// A file that does not say what it is for.
    Heads,
    /// A name or word that says nothing, or that belongs to one machine.
    Words,
    /// Modules that can be understood only together.
    Circles,
    /// A module that uses one which ARCHITECTURE.md has not on a floor below its own.
    Floors,
    /// Functions of a type that lie outside of its room.
    Rooms,
    /// A relative link that leads nowhere.
    Links,
    /// A page that nobody finds by the table of contents.
    Pages,
    /// Assertions in tenths for each thousand lines; the only rule where more is better.
    Assertions,
    /// A clock that is read where it is needed.
    Clocks,
    /// Chance that is taken where it is needed.
    Chance,
    /// A task that is started, or a sleep, where it is needed.
    Tasks,
}

impl Rule {
    /// All of them, in the order of the report.
    pub const ALL: [Rule; 17] = [
        Rule::Rings,
        Rule::FileLines,
        Rule::FunctionLines,
        Rule::FolderFiles,
        Rule::StructFields,
        Rule::SmallFiles,
        Rule::Heads,
        Rule::Words,
        Rule::Circles,
        Rule::Floors,
        Rule::Rooms,
        Rule::Links,
        Rule::Pages,
        Rule::Assertions,
        Rule::Clocks,
        Rule::Chance,
        Rule::Tasks,
    ];

    /// The word for it in the ratchet and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Rings => "rings",
            Rule::FileLines => "file-lines",
            Rule::FunctionLines => "function-lines",
            Rule::FolderFiles => "folder-files",
            Rule::StructFields => "struct-fields",
            Rule::SmallFiles => "small-files",
            Rule::Heads => "heads",
            Rule::Words => "words",
            Rule::Circles => "circles",
            Rule::Floors => "floors",
            Rule::Rooms => "rooms",
            Rule::Links => "links",
            Rule::Pages => "pages",
            Rule::Assertions => "assertions",
            Rule::Clocks => "clocks",
            Rule::Chance => "chance",
            Rule::Tasks => "tasks",
        }
    }

    /// The rule of that name.
    pub fn named(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// What to do where it is broken.
    pub fn remedy(self) -> &'static str {
        match self {
            Rule::Rings => "move what is needed to a crate before both, or the crate to where it belongs in Cargo.toml's members",
            Rule::FileLines => "a file this long holds two things: give the second one a file of its own",
            Rule::FunctionLines => "name the phases of the function and make each one a function",
            Rule::FolderFiles => "group the files by what they are about, a folder for each group",
            Rule::StructFields => "give fields that go together a type of their own, or let the struct own fewer things",
            Rule::SmallFiles => "put the functions where they are used, or beside others of their kind",
            Rule::Heads => "begin the file with a line `//!` that says what it is for",
            Rule::Words => "say it by its own name; a path of one machine does not belong into the project",
            Rule::Circles => "move what both modules need into a third one, or hand it over as an argument",
            Rule::Floors => {
                "move what is needed to a floor below both; where the floors are other ones by now, say so in ARCHITECTURE.md"
            }
            Rule::Rooms => {
                "move the functions to their type, make them functions of the room that they are in, or give that room a type"
            }
            Rule::Links => "let the link lead to where the file or the heading is now",
            Rule::Pages => "give the page its line in docs/SUMMARY.md, where who looks for it would look",
            Rule::Assertions => "state by `assert!` or `debug_assert!` what must hold at the entry of what changes state",
            Rule::Clocks => "take the time as an argument, or from forebay_runtime::now",
            Rule::Chance => "take a seed or a number as an argument, or from forebay_runtime::random",
            Rule::Tasks => "start tasks and timers by forebay_runtime",
        }
    }

    /// Whether the number is one that should grow.
    pub fn more_is_better(self) -> bool {
        self == Rule::Assertions
    }
}

/// A place that does not meet a rule, or for [`Rule::Assertions`] a crate's figure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// The crate's folder, `.` for what belongs to none.
    pub owner: String,
    /// The file or folder, from the root of the checkout.
    pub path: String,
    /// From 1; 0 where the whole file is meant.
    pub line: usize,
    /// How much of the ratchet it takes.
    pub weight: usize,
    /// What is wrong, in a few words.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}: {}", self.rule.name(), self.what)
    }
}
