//! How lists and objects are written into the parts of a request that are text.

/// How an argument that is a list or an object is written. Other arguments are written as their text in every style,
/// except for [`Style::Json`] and [`Style::File`].
///
/// ```
/// use patter_core::declare::http::Style;
/// assert_eq!(Style::parse("brackets"), Some(Style::Brackets));
/// assert_eq!(Style::Comma.separator(), Some(','));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// A list repeats its name: `id=1&id=2`.
    Repeat,
    /// The items of a list, or the names and values of an object, separated by commas: `id=1,2`.
    Comma,
    /// The items, separated by spaces.
    Space,
    /// The items, separated by `|`.
    Pipe,
    /// The items, separated by tabs.
    Tab,
    /// The place of each value in brackets: `filter[color]=red`, `id[]=1`, `line[0][price]=5`.
    Brackets,
    /// Each field of an object under its own name: `color=red&size=5`.
    Fields,
    /// JSON.
    Json,
    /// The content of a file: text, or a `data:` URL for anything else.
    File,
}

impl Style {
    /// All styles.
    pub const ALL: [Style; 9] = [
        Style::Repeat,
        Style::Comma,
        Style::Space,
        Style::Pipe,
        Style::Tab,
        Style::Brackets,
        Style::Fields,
        Style::Json,
        Style::File,
    ];

    /// Parses the name of a style.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|style| style.name() == name)
    }

    /// Returns the name of the style.
    pub const fn name(self) -> &'static str {
        match self {
            Style::Repeat => "repeat",
            Style::Comma => "comma",
            Style::Space => "space",
            Style::Pipe => "pipe",
            Style::Tab => "tab",
            Style::Brackets => "brackets",
            Style::Fields => "fields",
            Style::Json => "json",
            Style::File => "file",
        }
    }

    /// Returns the separator of the items, if the style joins them.
    pub const fn separator(self) -> Option<char> {
        match self {
            Style::Comma => Some(','),
            Style::Space => Some(' '),
            Style::Pipe => Some('|'),
            Style::Tab => Some('\t'),
            Style::Repeat | Style::Brackets | Style::Fields | Style::Json | Style::File => None,
        }
    }
}
