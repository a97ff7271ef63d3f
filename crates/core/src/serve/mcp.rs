//! MCP: the tools of a library, and their results, as clients of that protocol see them.
//!
//! Patter is a gateway for these tools: clients call them by themselves, behind the permissions of the project.

use crate::declare::Effect;
use crate::library::{Entry, Library, LibraryTool};
use crate::name::{FullName, WireName};
use crate::permission::{Decision, Permissions, Rule};
use crate::types::definition::Definition;
use serde_json::{Map, Value as Json, json};

/// What the rules come from that apply if the project has none about a tool.
const ORIGIN: &str = "`--tools`, because it changes something";

/// Returns the permissions of clients that call tools by themselves. Calls that only compute, read or use the network are
/// allowed, and calls that change something need an approval, unless the rules of the project say otherwise: like the tools
/// that an agent declares, a tool with `allow` rules is permitted if one of them matches. Tools that `is_included` rejects
/// are denied.
///
/// ```
/// use patter_core::library::Library;
/// use patter_core::serve::mcp::client_permissions;
/// # use patter_core::library::{Entry, HasDefinition, Layer, LibraryTool, Sealing, ToolFacts};
/// # use patter_core::name::FullName;
/// # use patter_core::permission::{Decision, Rule};
/// # use patter_core::types::definition::Definition;
/// # struct Tool(Definition, &'static str);
/// # impl HasDefinition for Tool { fn definition(&self) -> &Definition { &self.0 } }
/// # impl LibraryTool for Tool {
/// #     fn is_idempotent(&self) -> bool { false }
/// #     fn kind_name(&self) -> &str { "native" }
/// #     fn source(&self) -> &str { "" }
/// #     fn revision(&self) -> Option<&str> { None }
/// #     fn facts(&self) -> ToolFacts { ToolFacts { effect: self.1.to_owned(), ..ToolFacts::default() } }
/// # }
/// # let tool = |name: &str, effect| {
/// #     let definition = Definition::new(name, "A tool", "()==>(::Text)").unwrap();
/// #     let name = FullName::parse(&format!("notes/{name}")).unwrap();
/// #     Entry { name, layer: Layer::Project, sealing: Sealing::Open, value: Tool(definition, effect) }
/// # };
/// let library: Library<_> = Library::merge([tool("read", "reads"), tool("write", "writes")]).unwrap();
/// let decide = |rules: &[&str], name: &str| {
///     let rules: Vec<_> = rules.iter().map(|rule| Rule::parse(rule, "patter.toml").unwrap()).collect();
///     let permissions = client_permissions(&library, &rules, |_| true);
///     permissions.decide(&FullName::parse(name).unwrap(), &Default::default()).decision
/// };
/// assert_eq!(decide(&[], "notes/read"), Decision::Allow);
/// assert_eq!(decide(&[], "notes/write"), Decision::Ask);
/// assert_eq!(decide(&["allow notes/write"], "notes/write"), Decision::Allow);
/// assert_eq!(decide(&["deny notes/*"], "notes/read"), Decision::Deny);
/// ```
pub fn client_permissions<T: LibraryTool>(
    library: &Library<T>,
    rules: &[Rule],
    is_included: impl Fn(&FullName) -> bool,
) -> Permissions {
    let included: Vec<_> = library.entries().filter(|entry| is_included(&entry.name)).collect();
    let is_allowed = |name: &FullName| {
        let mut about = rules.iter().filter(|rule| rule.matches_tool(name));
        about.any(|rule| rule.decision == Decision::Allow)
    };
    let needs_approval =
        |entry: &&&Entry<T>| entry.value.facts().effect == Effect::Writes.name() && !is_allowed(&entry.name);
    let asking = included.iter().filter(needs_approval);
    let asking: Vec<_> =
        asking.filter_map(|entry| Rule::with_decision(Decision::Ask, entry.name.as_str(), ORIGIN).ok()).collect();
    let excluded = library.entries().filter(|entry| !is_included(&entry.name));
    let excluded: Vec<_> = excluded
        .filter_map(|entry| Rule::with_decision(Decision::Deny, entry.name.as_str(), "`patter.lock`").ok())
        .collect();
    let declared = included.iter().map(|entry| entry.name.clone());
    Permissions::for_declared(declared).with_all(excluded).with_all(rules.iter().cloned()).with_all(asking)
}

/// Iterates over the tools that clients may call, each with the name under which they do.
pub fn offered_tools<'l, T: LibraryTool>(
    library: &'l Library<T>,
    permissions: &'l Permissions,
) -> impl Iterator<Item = (WireName, &'l Entry<T>)> {
    let is_offered = |entry: &&Entry<T>| {
        // A bare name may refer to a tool of another layer.
        let is_itself = library.resolve(entry.name.as_str()).is_ok_and(|found| found.name == entry.name);
        is_itself && permissions.may_permit(&entry.name)
    };
    let entries = library.entries().filter(is_offered);
    entries.filter_map(|entry| Some((WireName::from_full_name(entry.name.as_str()).ok()?, entry)))
}

/// Returns a tool as `tools/list` describes it.
pub fn tool_json<T: LibraryTool>(name: &WireName, tool: &T) -> Json {
    let definition = tool.definition();
    let input = definition.input_schema();
    let mut described = json!({
        "name": name.as_str(),
        "description": definition.description,
        "inputSchema": input,
        "annotations": annotations(tool),
    });
    if let (Some(described), Some(schema)) = (described.as_object_mut(), ResultForm::new(definition).schema(definition))
    {
        described.insert("outputSchema".to_owned(), schema);
    }
    described
}

/// Returns what clients may assume about calls.
fn annotations(tool: &impl LibraryTool) -> Json {
    let effect = tool.facts().effect;
    let changes = effect == Effect::Writes.name();
    let is_local = effect == Effect::Pure.name() || effect == Effect::Reads.name();
    json!({
        "readOnlyHint": !changes,
        "destructiveHint": changes,
        "idempotentHint": tool.is_idempotent(),
        "openWorldHint": !is_local,
    })
}

/// How the results of a tool are structured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultForm {
    /// They are objects with a schema.
    Object,
    /// They have a schema, but are not objects.
    Value,
    /// They are texts, or anything.
    Free,
}

impl ResultForm {
    fn new(definition: &Definition) -> Self {
        match definition.output_schema().get("type") {
            Some(Json::String(kind)) if kind == "object" => Self::Object,
            Some(Json::String(kind)) if kind == "string" => Self::Free,
            Some(_) => Self::Value,
            None => Self::Free,
        }
    }

    fn schema(self, definition: &Definition) -> Option<Json> {
        match self {
            Self::Object => Some(definition.output_schema()),
            Self::Value => Some(value_schema("value", &definition.output_schema())),
            Self::Free => None,
        }
    }
}

/// Returns the schema of an object that has a value as its only member, because structured results are objects.
///
/// ```
/// use patter_core::serve::mcp::value_schema;
/// use serde_json::json;
/// let schema = value_schema("count", &json!({"type": "integer"}));
/// assert_eq!(schema, json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}));
/// ```
pub fn value_schema(name: &str, schema: &Json) -> Json {
    let mut value = schema.clone();
    // Definitions are at the root.
    let definitions = value.as_object_mut().and_then(|value| value.remove("$defs"));
    let mut root = json!({"type": "object", "properties": {name: value}, "required": [name]});
    if let (Some(root), Some(definitions)) = (root.as_object_mut(), definitions) {
        root.insert("$defs".to_owned(), definitions);
    }
    root
}

/// Returns the result of a call as `tools/call` has it. A value, or an element of a list, that is an image, audio or a
/// resource becomes content of that kind; other values are text.
///
/// ```
/// use patter_core::serve::mcp::result_json;
/// use patter_core::types::definition::Definition;
/// use serde_json::json;
/// let define = |signature: &str| Definition::new("look", "Looks", signature).unwrap();
/// let count = result_json(&define("()==>(::Int)"), &json!(3));
/// assert_eq!(count, json!({"content": [{"type": "text", "text": "3"}], "structuredContent": {"value": 3}}));
/// let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
/// assert_eq!(result_json(&define("()==>(::Any)"), &image), json!({"content": [image]}));
/// ```
pub fn result_json(definition: &Definition, value: &Json) -> Json {
    let mut result = Map::new();
    let content = match value {
        Json::Array(items) if items.iter().any(|item| media(item).is_some()) => items.iter().map(content).collect(),
        value => vec![content(value)],
    };
    result.insert("content".to_owned(), content.into());
    let structured = match ResultForm::new(definition) {
        ResultForm::Object => Some(value.clone()),
        ResultForm::Value => Some(json!({"value": value})),
        ResultForm::Free => None,
    };
    result.extend(structured.map(|structured| ("structuredContent".to_owned(), structured)));
    Json::Object(result)
}

/// Returns a value as content.
fn content(value: &Json) -> Json {
    match value {
        Json::String(text) => json!({"type": "text", "text": text}),
        value => match (media(value), value.get("text").and_then(Json::as_str)) {
            (Some(media), _) => media,
            (None, Some(text)) if value.get("type").is_some_and(|kind| kind == "text") => {
                json!({"type": "text", "text": text})
            }
            _ => json!({"type": "text", "text": value.to_string()}),
        },
    }
}

/// Returns a value that is an image, audio or a resource as content.
fn media(value: &Json) -> Option<Json> {
    let text = |key: &str| value.get(key).and_then(Json::as_str);
    let some = |keys: &[&str]| -> Map<String, Json> {
        let member = |key: &&str| Some(((*key).to_owned(), text(key)?.into()));
        keys.iter().filter_map(member).collect()
    };
    match text("type")? {
        kind @ ("image" | "audio") => Some(json!({"type": kind, "mimeType": text("mimeType")?, "data": text("data")?})),
        "resource" => {
            text("uri").filter(|_| text("text").is_some() || text("blob").is_some())?;
            Some(json!({"type": "resource", "resource": some(&["uri", "mimeType", "text", "blob"])}))
        }
        "resourceLink" => {
            text("uri").and(text("name"))?;
            let mut link = some(&["uri", "name", "description", "mimeType"]);
            link.insert("type".to_owned(), "resource_link".into());
            Some(Json::Object(link))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn define(signature: &str) -> Definition {
        Definition::new("look", "Looks", signature).unwrap()
    }

    #[test]
    fn results_keep_their_parts() {
        let audio = json!({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"});
        let resource = json!({"type": "resource", "uri": "a://b", "mimeType": "text/plain", "text": "hi"});
        let link = json!({"type": "resourceLink", "uri": "a://c", "name": "c", "bytes": null});
        let value = json!(["first", {"type": "text", "text": "second"}, audio, resource, link, {"other": 1}]);
        let result = result_json(&define("()==>(::Any)"), &value);
        let expected = json!([
            {"type": "text", "text": "first"},
            {"type": "text", "text": "second"},
            audio,
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "text/plain", "text": "hi"}},
            {"uri": "a://c", "name": "c", "type": "resource_link"},
            {"type": "text", "text": "{\"other\":1}"},
        ]);
        assert_eq!(result, json!({"content": expected}));
    }

    #[test]
    fn a_list_without_media_is_one_text() {
        let result = result_json(&define("()==>(::Array {elementType: \"Int\"})"), &json!([1, 2]));
        assert_eq!(result["content"], json!([{"type": "text", "text": "[1,2]"}]));
        assert_eq!(result["structuredContent"], json!({"value": [1, 2]}));
    }

    #[test]
    fn data_that_is_only_described_stays_text() {
        let described = json!({"type": "audio", "mimeType": "audio/wav", "bytes": 3});
        let result = result_json(&define("()==>(::Any)"), &described);
        assert_eq!(result["content"][0]["type"], "text");
    }

    #[test]
    fn definitions_move_to_the_root() {
        let schema = json!({"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}});
        let wrapped = value_schema("value", &schema);
        assert_eq!(wrapped["$defs"], schema["$defs"]);
        assert_eq!(wrapped["properties"]["value"], json!({"type": "array", "items": {"$ref": "#/$defs/A"}}));
    }
}
