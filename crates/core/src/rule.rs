//! The rules of the static check: a stable code, a level, a title and a page for each.

pub use patter_gram::Rule;

use patter_gram::Severity;

macro_rules! rules {
    ($($name:ident = $code:literal $level:ident $title:literal;)*) => {
        $(pub(crate) static $name: Rule = Rule { code: $code, level: Severity::$level, title: $title };)*

        /// The rules about declarations, in the order of their codes.
        pub static RULES: &[&Rule] = &[$(&$name),*];

        static PAGES: &[Page] = &pages![$($code)*];
    };
}

macro_rules! pages {
    ($($code:literal)*) => {
        [$(Page { code: $code, text: include_str!(concat!("../rules/", $code, ".md")) }),*]
    };
}

rules! {
    UNNAMED = "P001" Error "a declaration without a name";
    MISSING_PROPERTY = "P002" Error "a required property is missing";
    EMPTY_PROPERTY = "P003" Error "a required property is empty";
    UNKNOWN_PROPERTY = "P004" Error "a property that nothing reads";
    WRONG_VALUE = "P005" Error "a property with a value of the wrong type";
    OUT_OF_BOUNDS = "P006" Error "a setting outside of its bounds";
    DUPLICATE_TOOL = "P007" Error "two tools of an agent with one name";
    NO_SIGNATURE = "P008" Error "a tool without a signature";
    SEVERAL_SIGNATURES = "P009" Error "a tool with several signatures";
    MISPLACED = "P010" Error "an element that cannot stand there";
    UNKNOWN_DECLARATION = "P011" Warning "a pattern that declares nothing";
    DUPLICATE_DECLARATION = "P012" Error "two declarations with one name";
    NAME_PROPERTY = "P013" Error "a name given as a property";
    OLD_LABEL = "P014" Warning "the old label of a tool";

    UNKNOWN_TYPE = "P020" Error "a type that does not exist";
    MISSING_TYPE = "P021" Error "a parameter without a type";
    ANONYMOUS_PARAMETER = "P022" Error "a parameter without a name";
    DUPLICATE_PARAMETER = "P023" Error "two parameters with one name";
    MISSING_RESULT = "P024" Error "a signature without a result";
    SEVERAL_TYPES = "P025" Error "a parameter with several types";
    BAD_DEFAULT = "P026" Error "a default that its type does not allow";
    BAD_ENUM = "P027" Error "a list of allowed values that its type does not allow";
    BAD_RANGE = "P028" Error "a range that makes no sense";
    BAD_PATTERN = "P029" Error "a pattern that is no regular expression";
    BAD_FIELDS = "P030" Error "fields that cannot be read";
    BAD_ELEMENT_TYPE = "P031" Error "an array without the type of its elements";
    MISAPPLIED = "P032" Error "a property that does not fit the type";
    EMPTY_PARAMETER = "P033" Error "an empty node among parameters";
    OPTIONAL_RESULT = "P034" Warning "a result with what only parameters have";
    ENDLESS_RECORD = "P035" Error "a record type that no value can have";
    BAD_SCHEMA = "P036" Error "a schema value that is no JSON Schema";

    UNDEFINED = "P040" Warning "a reference to nothing in the project";
    AMBIGUOUS = "P041" Error "a reference to several declarations";
    DELEGATE_CYCLE = "P042" Error "agents that delegate in a circle";
    NOT_CALLABLE = "P043" Error "a reference to something that cannot be called";
    UNUSED = "P044" Warning "a declaration that no agent uses";
    UNBOUND = "P045" Error "a declared tool that nothing serves";
    IDLE_PERMISSION = "P046" Warning "a permission that can never decide anything";

    MALFORMED_MODEL = "P050" Error "a model that is not provider/name";
    UNKNOWN_PROVIDER = "P051" Error "a provider that does not exist";
    NOT_ON_WIRE = "P052" Error "a name that providers do not take";
    BAD_PERMISSION = "P053" Error "a permission that cannot be read";

    MISSING_TOOL = "P060" Warning "an instruction that names a tool the agent does not have";
    UNMENTIONED_TOOL = "P061" Warning "a tool that the instruction never mentions";
    TWO_TYPES = "P062" Warning "one parameter name with two types";
    NOT_EXPRESSIBLE = "P063" Warning "a schema that the provider cannot take as it is";

    BAD_TEMPLATE = "P070" Error "a text with holes that cannot be read";
    UNKNOWN_HOLE = "P071" Error "a hole that names no parameter";
    BAD_URL = "P072" Error "an address that cannot be called";
    ARGUMENT_IN_HOST = "P073" Error "an argument that would choose the server";
    UNSAFE_RETRY = "P074" Error "retries of a request that may do its work twice";
    MISPLACED_HOLE = "P080" Error "a hole that a model or the environment may not fill";
    PARAMETER_IN_SCRIPT = "P081" Warning "a parameter inside of a shell script";
    WRONG_RESULT = "P082" Error "a result that the signature does not give";
    UNUSED_PARAMETER = "P083" Warning "a parameter that the tool never uses";

    NO_INPUT = "P090" Error "a case without input";
    BAD_CHECK = "P091" Error "a check that cannot be read";
    DUPLICATE_CASE = "P092" Error "two cases with one name";
    BAD_EXPRESSION = "P093" Error "a check with an expression that cannot be read";
    MISSING_CALL = "P094" Warning "a check of a tool that no agent has";
}

/// The pages of the rules of the notation, which has none itself: it knows nothing of agents, and its pages show them.
static GRAM_PAGES: &[Page] = &pages![
    "G001" "G002" "G003" "G004" "G005" "G006" "G007" "G008" "G009" "G010"
    "G011" "G012" "G013" "G014" "G015" "G016" "G017" "G018" "G019" "G020"
    "G021" "G022" "G023" "G024" "G025" "G026" "G027" "G028" "G029" "G030"
    "G031" "G032" "G033" "G034" "G035" "G036" "G037"
];

struct Page {
    code: &'static str,
    text: &'static str,
}

/// Iterates over all rules, those of the notation first, in the order of their codes.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    patter_gram::RULES.iter().chain(RULES.iter().copied())
}

/// Returns the rule with a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code == code)
}

/// Returns the page of a rule, in Markdown: what is wrong, a file that breaks the rule, and the same file mended.
///
/// ```
/// use patter_core::rule;
/// assert!(rule::page("P020").unwrap().starts_with("# P020: a type that does not exist\n"));
/// assert!(rule::all().all(|rule| rule::page(rule.code).is_some()));
/// ```
pub fn page(code: &str) -> Option<&'static str> {
    let mut pages = GRAM_PAGES.iter().chain(PAGES);
    pages.find(|page| page.code == code).map(|page| page.text)
}
