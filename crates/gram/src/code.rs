//! The stable codes of everything that can be wrong with a text as gram.

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        $(pub(crate) const $name: &str = $code;)*

        /// The code and the title of every rule of the notation, in order.
        pub const RULES: &[(&str, &str)] = &[$(($code, $title)),*];
    };
}

codes! {
    UNEXPECTED = "G001", "text that fits nowhere";
    UNCLOSED = "G002", "a bracket that is not closed";
    UNMATCHED = "G003", "a closing bracket that nothing opened";
    UNTERMINATED = "G004", "quoted or fenced text that does not end";
    LINE_BREAK = "G005", "a line break in quoted text";
    ESCAPE = "G006", "an escape that does not exist";
    FENCE = "G007", "a fence that is not on a line of its own";
    NUMBER = "G008", "a malformed number";
    RANGE = "G009", "a malformed range";
    NAME = "G010", "a name or label that needs backticks";
    LABEL = "G011", "a label without a name";
    KEY = "G012", "a malformed key";
    MISSING_COLON = "G013", "a missing colon";
    MISSING_VALUE = "G014", "a missing value";
    MISSING_COMMA = "G015", "a missing comma";
    EXTRA_COMMA = "G016", "a comma too many";
    UNQUOTED = "G017", "text without quotes";
    PATTERN_VALUE = "G018", "a pattern used as a value";
    SUBJECT_ORDER = "G019", "the parts of a subject in the wrong order";
    NESTED = "G020", "a pattern inside a subject";
    ARROW = "G021", "a malformed arrow";
    PATH_END = "G022", "a path that does not end in a node";
    MISSING_BAR = "G023", "a missing bar before the elements";
    NO_ELEMENTS = "G024", "a bar without elements";
    REFERENCE = "G025", "a reference with labels or a record";
    ANNOTATION = "G026", "a malformed annotation";
    ANNOTATES_NOTHING = "G027", "an annotation without a pattern";
    MISPLACED_ANNOTATION = "G028", "an annotation in the wrong place";
    MISPLACED_RECORD = "G029", "a record in the wrong place";
    BARE_NAME = "G030", "a bare name at the top level";
    TOP_LEVEL_COMMA = "G031", "a comma between patterns at the top level";
    COMMENT = "G032", "a malformed comment";
    DUPLICATE_KEY = "G033", "a key given twice";
    NOT_PORTABLE = "G034", "a use of Patter's extension of gram";
    TOO_DEEP = "G035", "brackets nested too deep";
    NOT_UTF8 = "G036", "bytes that are not UTF-8";
    TOO_LARGE = "G037", "a text past 4 GiB";
}
