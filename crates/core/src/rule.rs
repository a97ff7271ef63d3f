//! The rules of the static check, each with a stable code, a level, a title and a page.

pub use patter_gram::Rule;

use patter_gram::Severity;

macro_rules! rules {
    ($($name:ident = $code:literal $level:ident $title:literal;)*) => {
        $(#[doc = concat!($code, ": ", $title, ".")]
        pub static $name: Rule = Rule { code: $code, level: Severity::$level, title: $title };)*

        /// The rules about declarations, sorted by code.
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
    MISSING_NAME = "P001" Error "a declaration without a name";
    MISSING_PROPERTY = "P002" Error "a missing required property";
    EMPTY_PROPERTY = "P003" Error "an empty required property";
    UNKNOWN_PROPERTY = "P004" Error "an unknown property";
    WRONG_VALUE = "P005" Error "a property with a value of the wrong type";
    OUT_OF_BOUNDS = "P006" Error "a value that is not allowed";
    DUPLICATE_TOOL = "P007" Error "two tools with the same name";
    NO_SIGNATURE = "P008" Error "a tool without a signature";
    SEVERAL_SIGNATURES = "P009" Error "a tool with several signatures";
    MISPLACED = "P010" Error "a misplaced element";
    UNKNOWN_DECLARATION = "P011" Warning "a pattern that declares nothing";
    DUPLICATE_DECLARATION = "P012" Error "two declarations with the same name";
    NAME_PROPERTY = "P013" Error "a name given as a property";
    DEPRECATED_LABEL = "P014" Warning "a deprecated label";

    UNKNOWN_TYPE = "P020" Error "an unknown type";
    MISSING_TYPE = "P021" Error "a parameter without a type";
    ANONYMOUS_PARAMETER = "P022" Error "a parameter without a name";
    DUPLICATE_PARAMETER = "P023" Error "two parameters with the same name";
    MISSING_RESULT = "P024" Error "a signature without a result";
    SEVERAL_TYPES = "P025" Error "a parameter with several types";
    BAD_DEFAULT = "P026" Error "a default that does not match its type";
    BAD_ENUM = "P027" Error "an enum that does not match its type";
    BAD_RANGE = "P028" Error "an invalid range";
    BAD_PATTERN = "P029" Error "an invalid regular expression";
    BAD_FIELDS = "P030" Error "invalid fields";
    BAD_ELEMENT_TYPE = "P031" Error "an array without an element type";
    INAPPLICABLE_PROPERTY = "P032" Error "a property that does not apply to the type";
    EMPTY_PARAMETER = "P033" Error "an empty parameter";
    INAPPLICABLE_PRESENCE = "P034" Warning "a result or element with `optional` or `default`";
    INFINITE_RECORD = "P035" Error "an infinitely recursive record type";
    BAD_SCHEMA = "P036" Error "an invalid JSON Schema";
    BAD_PARAMETER_NAME = "P037" Error "a parameter name that providers do not accept";
    MISLEADING_ARROW = "P038" Warning "mixed or reversed arrows in a signature";
    CONTRADICTORY_PRESENCE = "P039" Warning "`optional: false` on a value that may be omitted";

    UNDEFINED_REFERENCE = "P040" Warning "an undefined reference";
    AMBIGUOUS_REFERENCE = "P041" Error "an ambiguous reference";
    DELEGATION_CYCLE = "P042" Error "agents that delegate in a cycle";
    NOT_CALLABLE = "P043" Error "a reference to something that cannot be called";
    UNUSED_DECLARATION = "P044" Warning "an unused declaration";
    UNBOUND_TOOL = "P045" Error "a declared tool that nothing implements";
    UNUSED_PERMISSION = "P046" Error "a permission rule that never applies";
    SECOND_MEANING = "P047" Warning "a name with two meanings";

    MALFORMED_MODEL = "P050" Error "a malformed model";
    UNKNOWN_PROVIDER = "P051" Error "an unknown provider";
    BAD_WIRE_NAME = "P052" Error "a name that providers do not accept";
    BAD_PERMISSION = "P053" Error "an invalid permission rule";
    SEVERAL_KINDS = "P054" Error "a pattern that declares several things";
    DENIED_TOOL = "P055" Warning "a tool whose calls are all denied";
    DEEP_DELEGATION = "P056" Warning "agents that delegate too deeply";
    TOO_MANY_TOOLS = "P057" Error "more tools than the provider accepts";
    SECRET = "P058" Error "a secret in a file";
    SEALED_OVERRIDE = "P059" Error "a tool that overrides a sealed one";

    MISSING_TOOL = "P060" Warning "an instruction that mentions a tool the agent does not have";
    UNMENTIONED_TOOL = "P061" Warning "a tool that the instruction never mentions";
    INCONSISTENT_TYPE = "P062" Warning "a parameter name with different types";
    UNSUPPORTED_SCHEMA = "P063" Warning "a schema that the provider does not fully support";
    MISSPELT_FORMAT = "P064" Warning "a format that is probably misspelt";
    UNDESCRIBED_DELEGATE = "P065" Warning "a delegate without a description";
    UNDESCRIBED_PARAMETER = "P066" Warning "a parameter without a description";
    SAME_DESCRIPTION = "P067" Warning "two tools with the same description";

    BAD_TEMPLATE = "P070" Error "an invalid template";
    UNKNOWN_PLACEHOLDER = "P071" Error "a placeholder that is not a parameter";
    BAD_URL = "P072" Error "an invalid URL";
    ARGUMENT_IN_HOST = "P073" Error "a placeholder in the host of a URL";
    UNSAFE_RETRY = "P074" Error "retries of a request that is not idempotent";
    NO_IMPLEMENTATION = "P075" Error "a tool in a toolbox without an implementation";
    MISPLACED_PLACEHOLDER = "P080" Error "a placeholder where none is allowed";
    PARAMETER_IN_SCRIPT = "P081" Warning "a parameter inside a shell script";
    WRONG_RESULT = "P082" Error "a result that does not match the signature";
    UNUSED_PARAMETER = "P083" Warning "an unused parameter";
    EMPTY_TOOLKIT = "P084" Error "an empty toolkit";
    TOOLKIT_CYCLE = "P085" Error "a toolkit that includes itself";

    NO_INPUT = "P090" Error "a case without input";
    BAD_CHECK = "P091" Error "an invalid check";
    DUPLICATE_CASE = "P092" Error "two cases with the same name";
    BAD_EXPRESSION = "P093" Error "an invalid expression in a check";
    UNKNOWN_CALL = "P094" Warning "a check for a tool that no agent has";

    HIDDEN_BY_SEALED = "P100" Warning "a tool whose name refers to a sealed one";
    FOREIGN_KEY = "P101" Warning "a key that goes to another server";
    BAD_FULL_NAME = "P110" Error "a name with too many parts";
    NO_SANDBOX = "P125" Error "a setting of a sandbox without a sandbox";
    OTHER_NOTATION = "P135" Error "a file in another notation";
    UNRESTRICTED_TOOL = "P140" Warning "a tool that gets around a rule";
    UNKNOWN_SCHEDULED_AGENT = "P141" Error "a schedule of an unknown agent";
    BAD_TIME = "P142" Error "an invalid time of a schedule";
    UNKNOWN_TIMEZONE = "P143" Error "an unknown time zone";
    BAD_SCHEDULED_INPUT = "P144" Error "a schedule whose input does not fit";
    NEVER_FIRES = "P145" Error "a schedule that never runs";
    UNKNOWN_BASE = "P146" Error "a base that is not declared";
    BAD_BASE = "P147" Error "a base that is not an agent";
    BASE_CYCLE = "P148" Error "agents that extend each other in a cycle";
    TOO_MANY_BASES = "P149" Error "an agent that extends too many others";
    USELESS_FALLBACK = "P150" Warning "a fallback that is asked already";
    INVALID_QUERY = "P151" Error "an invalid query";
    BROKEN_POLICY = "P152" Error "a broken policy";
    SEALED_POLICY = "P153" Error "a policy that replaces a sealed one";
    UNCHECKED_POLICY = "P154" Error "a policy that cannot be checked";
    BROKEN_CONTRACT = "P155" Error "an agent that breaks the contract of its base";
    CONFLICTING_ELEMENT = "P156" Error "a tool or agent that differs from that of the base";

    UNKNOWN_STEP = "P160" Warning "a step that calls nothing known";
    BAD_STEP = "P161" Error "an invalid step";
    BAD_EDGE = "P162" Error "an invalid edge";
    UNREACHABLE_STEP = "P163" Error "a step that is never reached";
    ENDLESS_STEP = "P164" Error "a step that leads to no end";
    UNBOUNDED_CYCLE = "P165" Error "a cycle without a bound";
    WAITING_JOIN = "P166" Error "steps that wait for each other";
    INCOMPLETE_ROUTE = "P167" Error "a route that does not cover all values";
    UNKNOWN_ROUTE_VALUE = "P168" Error "a condition that is never met";
    WRONG_EDGE_TYPE = "P169" Error "a value that the next step does not accept";
    MISSING_VALUE = "P170" Error "a placeholder whose value may be missing";
    UNKNOWN_VALUE = "P171" Error "a placeholder without a value";
    WRONG_RESULT_TYPE = "P172" Error "a workflow that returns another type than it declares";
    SEVERAL_RESULTS = "P173" Error "a workflow with several results";
    UNCLEAR_INPUT = "P174" Error "a step that receives several values";
    TOO_MANY_ROUTES = "P175" Error "more routes than can be checked";
    TOO_MANY_MODEL_CALLS = "P176" Error "more model calls than a workflow allows";
    BAD_HANDOFF = "P177" Error "a hand-off without a conversation";
    BAD_PIPE = "P178" Error "a pipe that is not a path of tools";
}

/// The pages of the rules of the notation. They are here because their examples are agents, which the notation itself does
/// not know.
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

/// Iterates over all rules, sorted by code, those of the notation first.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    patter_gram::RULES.iter().chain(RULES.iter().copied())
}

/// Returns the rule with the given code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.code == code)
}

/// Returns the page of a rule in Markdown: an explanation, a file that violates the rule, and the corrected file.
///
/// ```
/// use patter_core::rule;
/// assert!(rule::page("P020").unwrap().starts_with("# P020: an unknown type\n"));
/// assert!(rule::all().all(|rule| rule::page(rule.code).is_some()));
/// ```
pub fn page(code: &str) -> Option<&'static str> {
    let mut pages = GRAM_PAGES.iter().chain(PAGES);
    pages.find(|page| page.code == code).map(|page| page.text)
}
