//! Hints for models on how to get the next page of a list.

use super::operation::Operation;
use super::parameter::{ParameterLocation, Parameters};
use serde_json::Value as Json;

/// Parameters that select the page after a result, without case and separators.
const TOKENS: &[&str] = &[
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "cursor",
    "pagecursor",
    "nextcursor",
    "startcursor",
    "continuationtoken",
    "paginationtoken",
    "marker",
    "after",
    "continue",
    "scrollid",
    "pageafter",
];
/// Fields of results that such parameters accept.
const NEXT_TOKENS: &[&str] = &[
    "nextpagetoken",
    "nexttoken",
    "nextcursor",
    "nextpagecursor",
    "endcursor",
    "cursor",
    "continuationtoken",
    "nextmarker",
    "paginationtoken",
    "after",
    "continue",
    "scrollid",
];
/// Parameters that are the number of a page.
const PAGES: &[&str] = &["page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage"];
/// Parameters that are the number of items to skip.
const OFFSETS: &[&str] = &["offset", "skip", "startat", "startindex"];
/// Fields that contain what is known about pages.
const DESCRIPTIONS: &[&str] =
    &["meta", "metadata", "listmeta", "paging", "pagination", "pageinfo", "responsemetadata", "cursors"];

/// Returns whether a field describes pages, so that its own fields matter.
pub(super) fn describes_pages(field: &str) -> bool {
    DESCRIPTIONS.contains(&plain(field).as_str())
}

/// Returns a sentence that says how to get the next page, if the names of parameters and fields tell.
pub(super) fn hint(operation: &Operation<'_>, parameters: &Parameters, fields: &[String]) -> Option<String> {
    let find = |names: &[&str]| {
        let found = parameters.iter().find(|(_, parameter)| {
            let is_sent = matches!(parameter.location, ParameterLocation::Query | ParameterLocation::Body);
            is_sent && names.contains(&plain(&parameter.wire).as_str())
        });
        found.filter(|(_, parameter)| !parameter.is_required)
    };
    if let Some((name, _)) = find(TOKENS) {
        let next = NEXT_TOKENS.iter().find_map(|token| {
            fields.iter().find(|field| plain(field.rsplit('.').next().unwrap_or_default()) == *token)
        });
        if let Some(next) = next {
            return Some(format!(" Returns one page: pass `{next}` of the result as `{name}` to get the next one."));
        }
    }
    if operation.method != "GET" {
        return None;
    }
    if let (Some((name, _)), true) = (find(&["startingafter"]), fields.iter().any(|field| field == "has_more")) {
        return Some(format!(
            " Returns one page: while `has_more` is true, pass the id of the last item as `{name}` to get the next one."
        ));
    }
    let is_number = |schema: &Json| schema.get("type").is_some_and(|name| name == "integer" || name == "number");
    if let Some((name, _)) = find(PAGES).filter(|(_, parameter)| is_number(&parameter.schema)) {
        return Some(format!(" Returns one page: `{name}` is its number."));
    }
    let (name, _) = find(OFFSETS).filter(|(_, parameter)| is_number(&parameter.schema))?;
    Some(format!(" Returns one page: `{name}` is the number of items before it."))
}

/// Returns a name without case and separators.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
