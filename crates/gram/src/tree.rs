//! The lossless syntax tree.
//!
//! A tree is the source text plus one flat list of nodes in reading order. A node knows its kind, its bytes and where
//! its subtree ends, so children need no pointers, dropping a tree frees two blocks, and a deep text costs no stack.
//! Punctuation and white space are not nodes: they are the bytes between them. Comments are kept in a list of their own.

use crate::Span;
use std::fmt;
use std::sync::Arc;

/// What a piece of syntax is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The whole text: an optional record, then patterns.
    File,
    /// `(subject)`.
    Node,
    /// Nodes joined by arrows, flat: `(a)-->(b)-->(c)` is three nodes and two arrows.
    Path,
    /// `[subject | element, element]`.
    Bracket,
    /// A bare name among the elements of a bracket pattern.
    Reference,
    /// An arrow of a path, with its subject if it has one.
    Arrow,
    /// Annotations and the pattern that they describe.
    Annotated,
    /// `@key(value)`.
    Annotation,
    /// `@@id:Label`.
    Header,
    /// The name of a subject: a symbol, `` `quoted` ``, or an integer.
    Identifier,
    /// A label with its colon or colons.
    Label,
    /// `{ key: value }` of a subject or a file.
    Record,
    /// `key: value` of a record or a map.
    Property,
    /// The key of a property or an annotation.
    Key,
    /// A quoted string: `'…'`, `"…"` or `` `…` ``.
    String,
    /// A fenced string: three backticks, a line break, text, three backticks.
    Fence,
    /// A string with a tag, quoted or fenced.
    Tagged,
    /// The tag of a tagged string.
    Tag,
    /// A decimal integer.
    Integer,
    /// A decimal fraction.
    Decimal,
    /// `0xFF`.
    Hexadecimal,
    /// `042`.
    Octal,
    /// A number with a unit: `5km`.
    Measurement,
    /// `1..5`, `1...` or `...5`.
    Range,
    /// `true` or `false`.
    Boolean,
    /// A bare word used as a value.
    Symbol,
    /// `[value, value]`.
    Array,
    /// `{ key: value }` used as a value.
    Map,
    /// Text that fits nowhere; a diagnostic says why.
    Error,
}

impl Kind {
    /// Tells whether this is a pattern: a node, path, bracket pattern or reference.
    pub const fn is_pattern(self) -> bool {
        matches!(self, Kind::Node | Kind::Path | Kind::Bracket | Kind::Reference)
    }

    /// Tells whether this is a value of a property or annotation.
    pub const fn is_value(self) -> bool {
        matches!(
            self,
            Kind::String
                | Kind::Fence
                | Kind::Tagged
                | Kind::Integer
                | Kind::Decimal
                | Kind::Hexadecimal
                | Kind::Octal
                | Kind::Measurement
                | Kind::Range
                | Kind::Boolean
                | Kind::Symbol
                | Kind::Array
                | Kind::Map
        )
    }
}

/// One entry of the flat list: 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawNode {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Index of the first entry after this one's subtree.
    pub(crate) next: u32,
}

/// Facts about a node that its text does not show cheaply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The quoted text holds at least one escape.
    pub(crate) const ESCAPED: Flags = Flags(1);
    /// The closing bracket, quote or fence is missing.
    pub(crate) const UNCLOSED: Flags = Flags(2);

    pub(crate) const fn contains(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) const fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }
}

/// A parsed text: lossless, immutable, cheap to clone.
///
/// ```
/// let (tree, diagnostics) = patter_gram::parse("(hello)-->(world) // greet");
/// assert!(diagnostics.is_empty());
/// assert_eq!(tree.to_string(), "(hello)-->(world) // greet");
/// assert_eq!(tree.patterns().count(), 1);
/// assert_eq!(tree.comments().count(), 1);
/// ```
#[derive(Clone)]
pub struct Tree {
    inner: Arc<Inner>,
}

struct Inner {
    source: Arc<str>,
    nodes: Vec<RawNode>,
    comments: Vec<Span>,
    /// Bytes that were not UTF-8, with their offsets; [`PLACEHOLDER`] stands for each in the source.
    invalid_bytes: Vec<(u32, u8)>,
}

/// Stands in the text for each byte that is not UTF-8, so that all offsets stay true.
pub(crate) const PLACEHOLDER: u8 = 0x1A;

impl Tree {
    pub(crate) fn new(
        source: Arc<str>,
        nodes: Vec<RawNode>,
        comments: Vec<Span>,
        invalid_bytes: Vec<(u32, u8)>,
    ) -> Self {
        Self { inner: Arc::new(Inner { source, nodes, comments, invalid_bytes }) }
    }

    /// Returns the text that was parsed.
    ///
    /// Bytes that were not UTF-8 show as U+001A here; [`Tree::to_bytes`] gives them back.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Prints the tree: the exact bytes that were parsed, also where they were not UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.source().as_bytes().to_vec();
        for (at, byte) in &self.inner.invalid_bytes {
            if let Some(slot) = bytes.get_mut(*at as usize) {
                *slot = *byte;
            }
        }
        bytes
    }

    /// Returns the root of the tree, of kind [`Kind::File`].
    pub fn root(&self) -> Syntax<'_> {
        Syntax { tree: self, id: 0 }
    }

    /// Returns the record at the head of the file, if there is one.
    pub fn record(&self) -> Option<Syntax<'_>> {
        self.root().children().find(|child| child.kind() == Kind::Record)
    }

    /// Iterates over the comments, in order.
    pub fn comments(&self) -> impl Iterator<Item = Comment<'_>> {
        self.comment_spans().iter().map(|span| Comment { span: *span, text: span.slice(self.source()) })
    }

    /// Returns the piece of syntax with an id taken from this tree.
    pub fn get(&self, id: SyntaxId) -> Option<Syntax<'_>> {
        ((id.0 as usize) < self.inner.nodes.len()).then_some(Syntax { tree: self, id: id.0 })
    }

    pub(crate) fn comment_spans(&self) -> &[Span] {
        &self.inner.comments
    }

    pub(crate) fn invalid_bytes(&self) -> &[(u32, u8)] {
        &self.inner.invalid_bytes
    }

    fn raw(&self, id: u32) -> RawNode {
        const NOTHING: RawNode = RawNode { kind: Kind::Error, flags: Flags(0), start: 0, end: 0, next: u32::MAX };
        self.inner.nodes.get(id as usize).copied().unwrap_or(NOTHING)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source())
    }
}

/// A comment and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment<'t> {
    /// Its bytes.
    pub span: Span,
    /// Its text, markers included, without the line break.
    pub text: &'t str,
}

impl Comment<'_> {
    /// Tells whether this is a `/** … */` comment.
    pub fn is_doc(&self) -> bool {
        self.text.starts_with("/*")
    }
}

/// Names a piece of syntax within its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyntaxId(u32);

/// A piece of syntax: a cursor into a [`Tree`].
#[derive(Clone, Copy)]
pub struct Syntax<'t> {
    tree: &'t Tree,
    id: u32,
}

impl<'t> Syntax<'t> {
    /// Returns the tree this is part of.
    pub fn tree(self) -> &'t Tree {
        self.tree
    }

    /// Returns the id, for [`Tree::get`].
    pub fn id(self) -> SyntaxId {
        SyntaxId(self.id)
    }

    /// Returns what this is.
    pub fn kind(self) -> Kind {
        self.tree.raw(self.id).kind
    }

    /// Returns the bytes it covers.
    pub fn span(self) -> Span {
        let raw = self.tree.raw(self.id);
        Span::new(raw.start, raw.end)
    }

    /// Returns its text, exactly as written.
    pub fn text(self) -> &'t str {
        self.span().slice(self.tree.source())
    }

    /// Iterates over the direct parts, in order.
    pub fn children(self) -> Children<'t> {
        Children { tree: self.tree, next: self.id + 1, end: self.tree.raw(self.id).next }
    }

    /// Returns the first direct part of a kind.
    pub fn child(self, kind: Kind) -> Option<Syntax<'t>> {
        self.children().find(|child| child.kind() == kind)
    }

    /// Iterates over this and everything below it, in reading order.
    pub fn descendants(self) -> impl Iterator<Item = Syntax<'t>> {
        let tree = self.tree;
        (self.id..tree.raw(self.id).next).map(move |id| Syntax { tree, id })
    }

    pub(crate) fn flags(self) -> Flags {
        self.tree.raw(self.id).flags
    }

    /// Returns whether the closing bracket, quote or fence is missing.
    pub(crate) fn is_unclosed(self) -> bool {
        self.flags().contains(Flags::UNCLOSED)
    }

    /// Returns how many entries the subtree has, this one included.
    pub(crate) fn size(self) -> u32 {
        self.tree.raw(self.id).next.saturating_sub(self.id)
    }
}

impl fmt::Debug for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?} {:?}", self.kind(), self.span().range(), self.text())
    }
}

/// Iterator over the direct parts of a piece of syntax.
#[derive(Debug, Clone)]
pub struct Children<'t> {
    tree: &'t Tree,
    next: u32,
    end: u32,
}

impl<'t> Iterator for Children<'t> {
    type Item = Syntax<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let child = Syntax { tree: self.tree, id: self.next };
        self.next = self.tree.raw(child.id).next;
        Some(child)
    }
}
