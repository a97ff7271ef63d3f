//! The lossless syntax tree.
//!
//! A tree is the source text plus one flat list of nodes in reading order. A node stores its kind, its span and where
//! its subtree ends, so children need no pointers, dropping a tree frees two blocks, and deep nesting uses no stack.
//! Punctuation and white space are not nodes: they are the bytes between nodes. Comments are in a separate list.

use crate::Span;
use crate::span::{LineIndex, Lines, offset};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The kind of a syntax node.
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
    /// Annotations and the pattern they describe.
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
    /// Unexpected text; a diagnostic says why.
    Error,
}

impl Kind {
    /// Returns whether this is a pattern: a node, path, bracket pattern or reference.
    pub const fn is_pattern(self) -> bool {
        matches!(self, Kind::Node | Kind::Path | Kind::Bracket | Kind::Reference)
    }

    /// Returns whether this is a value of a property or annotation.
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

/// An entry of the flat list: 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawNode {
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Index of the first entry after this subtree.
    pub(crate) next: u32,
}

impl RawNode {
    #[inline]
    pub(crate) const fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }
}

/// Properties of a node that would be expensive to recompute from its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The quoted text contains at least one escape.
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

/// A parsed text: lossless, immutable and cheap to clone.
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
    /// Bytes that were not UTF-8, with their offsets; the source has a [`PLACEHOLDER`] for each.
    invalid_bytes: Vec<(u32, u8)>,
    /// The lines of the source, once they are needed.
    lines: OnceLock<Lines>,
    /// The parent of each node, once they are needed. The root is its own.
    parents: OnceLock<Vec<u32>>,
}

/// Replaces each byte that is not UTF-8, so that offsets into the source stay valid.
pub(crate) const PLACEHOLDER: u8 = 0x1A;

impl Tree {
    pub(crate) fn new(
        source: Arc<str>,
        nodes: Vec<RawNode>,
        comments: Vec<Span>,
        invalid_bytes: Vec<(u32, u8)>,
    ) -> Self {
        let lines = OnceLock::new();
        let parents = OnceLock::new();
        Self { inner: Arc::new(Inner { source, nodes, comments, invalid_bytes, lines, parents }) }
    }

    /// Returns the text that was parsed.
    ///
    /// Bytes that were not UTF-8 appear as U+001A here; [`Tree::to_bytes`] restores them.
    #[inline]
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns the lines of the text, which are indexed once for all clones of the tree.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("(a)\n(b)");
    /// assert_eq!(tree.line_index().line_column(4), (2, 1));
    /// ```
    pub fn line_index(&self) -> LineIndex<'_> {
        LineIndex::from_lines(self.source(), self.inner.lines.get_or_init(|| Lines::new(self.source())))
    }

    /// Prints the tree: the exact bytes that were parsed, even those that were not UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.source().as_bytes().to_vec();
        for (at, byte) in &self.inner.invalid_bytes {
            if let Some(slot) = bytes.get_mut(*at as usize) {
                *slot = *byte;
            }
        }
        bytes
    }

    /// Returns the root of the tree, a [`Kind::File`].
    #[inline]
    pub fn root(&self) -> Syntax<'_> {
        Syntax { tree: self, id: 0 }
    }

    /// Returns the record at the start of the file, if there is one.
    pub fn record(&self) -> Option<Syntax<'_>> {
        self.root().children().find(|child| child.kind() == Kind::Record)
    }

    /// Iterates over the comments, in order.
    pub fn comments(&self) -> impl Iterator<Item = Comment<'_>> {
        self.comment_spans().iter().map(|span| Comment { span: *span, text: span.slice(self.source()) })
    }

    /// Returns the node with an id from this tree.
    pub fn get(&self, id: SyntaxId) -> Option<Syntax<'_>> {
        ((id.0 as usize) < self.inner.nodes.len()).then_some(Syntax { tree: self, id: id.0 })
    }

    /// Returns the flat list of nodes.
    #[inline]
    pub(crate) fn nodes(&self) -> &[RawNode] {
        &self.inner.nodes
    }

    /// Returns the node at an index of [`Tree::nodes`].
    #[inline]
    pub(crate) fn syntax(&self, index: usize) -> Syntax<'_> {
        Syntax { tree: self, id: offset(index) }
    }

    /// Returns the parent of each node, in the order of [`Tree::nodes`].
    fn parents(&self) -> &[u32] {
        self.inner.parents.get_or_init(|| {
            let mut parents = vec![0; self.nodes().len()];
            for parent in self.root().descendants() {
                for child in parent.children() {
                    if let Some(slot) = parents.get_mut(child.id as usize) {
                        *slot = parent.id;
                    }
                }
            }
            parents
        })
    }

    pub(crate) fn comment_spans(&self) -> &[Span] {
        &self.inner.comments
    }

    pub(crate) fn invalid_bytes(&self) -> &[(u32, u8)] {
        &self.inner.invalid_bytes
    }

    #[inline]
    fn raw(&self, id: u32) -> RawNode {
        const MISSING: RawNode = RawNode { kind: Kind::Error, flags: Flags(0), start: 0, end: 0, next: u32::MAX };
        self.inner.nodes.get(id as usize).copied().unwrap_or(MISSING)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.source())
    }
}

/// A comment and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment<'t> {
    /// The span, without the line break.
    pub span: Span,
    /// The text, including the comment markers.
    pub text: &'t str,
}

impl Comment<'_> {
    /// Returns whether this is a `/** … */` comment.
    pub fn is_doc(&self) -> bool {
        self.text.starts_with("/*")
    }
}

/// The id of a node within its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SyntaxId(u32);

impl SyntaxId {
    /// Returns the position of the node in reading order.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of the syntax tree: a cursor into a [`Tree`].
#[derive(Clone, Copy)]
pub struct Syntax<'t> {
    tree: &'t Tree,
    id: u32,
}

impl<'t> Syntax<'t> {
    /// Returns the tree this node belongs to.
    #[inline]
    pub fn tree(self) -> &'t Tree {
        self.tree
    }

    /// Returns the id, for [`Tree::get`].
    #[inline]
    pub fn id(self) -> SyntaxId {
        SyntaxId(self.id)
    }

    /// Returns the kind of the node.
    #[inline]
    pub fn kind(self) -> Kind {
        self.tree.raw(self.id).kind
    }

    /// Returns the span of the node.
    #[inline]
    pub fn span(self) -> Span {
        let raw = self.tree.raw(self.id);
        Span::new(raw.start, raw.end)
    }

    /// Returns the source text of the node.
    #[inline]
    pub fn text(self) -> &'t str {
        self.span().slice(self.tree.source())
    }

    /// Iterates over the direct children, in order.
    #[inline]
    pub fn children(self) -> Children<'t> {
        Children { tree: self.tree, next: self.id + 1, end: self.tree.raw(self.id).next }
    }

    /// Returns the first direct child of a kind.
    #[inline]
    pub fn child(self, kind: Kind) -> Option<Syntax<'t>> {
        self.children().find(|child| child.kind() == kind)
    }

    /// Returns the node that this one is a direct child of.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("[a | [b | c]]");
    /// let text = tree.root().descendants().last().unwrap();
    /// let around: Vec<_> = std::iter::successors(Some(text), |syntax| syntax.parent()).map(|syntax| syntax.text()).collect();
    /// assert!(around.ends_with(&["[b | c]", "[a | [b | c]]", "[a | [b | c]]"]));
    /// ```
    pub fn parent(self) -> Option<Syntax<'t>> {
        let parent = *self.tree.parents().get(self.id as usize)?;
        (self.id != 0).then_some(Syntax { tree: self.tree, id: parent })
    }

    /// Iterates over this node and all its descendants, in reading order.
    pub fn descendants(self) -> impl DoubleEndedIterator<Item = Syntax<'t>> {
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

    /// Returns the number of nodes in the subtree, including this one.
    pub(crate) fn size(self) -> u32 {
        self.tree.raw(self.id).next.saturating_sub(self.id)
    }
}

impl fmt::Debug for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{:?} {:?}", self.kind(), self.span().range(), self.text())
    }
}

/// An iterator over the direct children of a node.
#[derive(Debug, Clone)]
pub struct Children<'t> {
    tree: &'t Tree,
    next: u32,
    end: u32,
}

impl<'t> Iterator for Children<'t> {
    type Item = Syntax<'t>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let child = Syntax { tree: self.tree, id: self.next };
        self.next = self.tree.raw(child.id).next;
        Some(child)
    }
}
