//! The rules of the notation: a stable code for each kind of diagnostic.

use crate::{Diagnostic, Severity, Span};
use std::borrow::Cow;

/// A rule that a text can break.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The code, such as `G021`. Its meaning never changes.
    pub code: &'static str,
    /// The severity of a violation.
    pub level: Severity,
    /// A short description of the violation.
    pub title: &'static str,
}

impl Rule {
    /// Creates a diagnostic for a violation at `span`.
    pub fn at(&self, span: Span, message: impl Into<Cow<'static, str>>) -> Diagnostic {
        match self.level {
            Severity::Error => Diagnostic::error(self.code, span, message),
            Severity::Warning => Diagnostic::warning(self.code, span, message),
        }
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal $level:ident $title:literal;)*) => {
        $(#[doc = concat!("The code of ", $title, ".")]
        pub const $name: &str = $code;)*

        /// The rules of the notation, in the order of their codes.
        pub static RULES: &[Rule] = &[$(Rule { code: $code, level: Severity::$level, title: $title }),*];
    };
}

codes! {
    UNEXPECTED = "G001" Error "unexpected text";
    UNCLOSED = "G002" Error "an unclosed bracket";
    UNMATCHED = "G003" Error "an unmatched closing bracket";
    UNTERMINATED = "G004" Error "unterminated quoted or fenced text";
    LINE_BREAK = "G005" Error "a line break in quoted text";
    ESCAPE = "G006" Error "an invalid escape";
    FENCE = "G007" Error "a malformed fence";
    NUMBER = "G008" Error "a malformed number";
    RANGE = "G009" Error "a malformed range";
    NAME = "G010" Error "a name or label that needs backticks";
    LABEL = "G011" Error "a label without a name";
    KEY = "G012" Error "a malformed key";
    MISSING_COLON = "G013" Error "a missing colon";
    MISSING_VALUE = "G014" Error "a missing value";
    MISSING_COMMA = "G015" Error "a missing comma";
    EXTRA_COMMA = "G016" Error "an extra comma";
    UNQUOTED = "G017" Error "text that needs quotes";
    PATTERN_VALUE = "G018" Error "a pattern used as a value";
    SUBJECT_ORDER = "G019" Error "subject parts in the wrong order";
    NESTED = "G020" Error "a pattern inside a subject";
    ARROW = "G021" Error "a malformed arrow";
    PATH_END = "G022" Error "a path that does not end in a node";
    MISSING_BAR = "G023" Error "a missing bar before the elements";
    NO_ELEMENTS = "G024" Error "a bar without elements";
    REFERENCE = "G025" Error "a reference with labels or a record";
    ANNOTATION = "G026" Error "a malformed annotation";
    ANNOTATES_NOTHING = "G027" Error "an annotation without a pattern";
    MISPLACED_ANNOTATION = "G028" Error "an annotation in the wrong place";
    MISPLACED_RECORD = "G029" Error "a record in the wrong place";
    BARE_NAME = "G030" Error "a bare name at the top level";
    TOP_LEVEL_COMMA = "G031" Error "a comma between patterns at the top level";
    COMMENT = "G032" Error "a malformed comment";
    DUPLICATE_KEY = "G033" Warning "a duplicate key";
    NOT_PORTABLE = "G034" Error "a Patter extension in plain gram";
    TOO_DEEP = "G035" Error "brackets nested too deeply";
    NOT_UTF8 = "G036" Error "bytes that are not UTF-8";
    TOO_LARGE = "G037" Error "a text larger than 4 GiB";
}
