//! Tools for files: reading, listing, searching, writing and editing within allowed folders.
//!
//! Every path is resolved relative to the handle of an allowed folder, step by step, by the operating system where
//! possible. So neither `..`, nor an absolute path, nor a symbolic link leads outside, not even a link that is created
//! while the call runs.

mod root;
mod guard;
mod action;
mod read;
mod list;
mod search;
mod target;
mod write;
mod edit;

pub use guard::Guard;
pub use root::Root;

use crate::tool::{BoxFuture, Definition, Effect, Implementation, Tool, ToolContext, ToolFailure, ToolKind};
use action::{Action, ActionContext, ToolText};
use root::Roots;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Returns the tools for the files of a project. Relative paths are resolved in the first root; a path in another root
/// is written `name:path`, and an absolute path may be in any root.
///
/// What defines the project is protected by a [`Guard`]: `.env` can be neither read nor written; gram files, `patter.toml`,
/// `patter.lock`, `.git` and whatever the guard adds cannot be written.
///
/// ```
/// use patter::tool::{ToolContext, standard::fs::{Root, fs}};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let project = env!("CARGO_MANIFEST_DIR");
/// let tools = fs(project, vec![Root::new("project", project)]);
/// let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
/// assert_eq!(names, ["readFile", "listFolder", "searchFiles", "writeFile", "editFile"]);
/// let (read, context) = (&tools[0].implementation, ToolContext::new("1"));
/// let found = read.call(json!({"path": "Cargo.toml", "lines": 1}), &context).await.unwrap();
/// assert_eq!(found["content"], "[package]\n");
/// let failure = read.call(json!({"path": "../../Cargo.toml"}), &context).await.unwrap_err();
/// assert!(failure.message().contains("outside"));
/// # }
/// ```
pub fn fs(project: impl Into<Guard>, roots: Vec<Root>) -> Vec<Tool> {
    let roots = Arc::new(Roots::new(project.into(), roots));
    let tools = [
        tool(&roots, &read::DEFINITION, Effect::Reads, read::read),
        tool(&roots, &list::DEFINITION, Effect::Reads, list::list),
        tool(&roots, &search::DEFINITION, Effect::Reads, search::search),
        tool(&roots, &write::DEFINITION, Effect::Writes, write::write),
        tool(&roots, &edit::DEFINITION, Effect::Writes, edit::edit),
    ];
    // The definitions are constants; a test checks that all of them are valid.
    tools.into_iter().flatten().collect()
}

struct FileTool<A: 'static> {
    roots: Arc<Roots>,
    action: Action<A>,
}

fn tool<A: DeserializeOwned + Send + 'static>(
    roots: &Arc<Roots>,
    text: &ToolText,
    effect: Effect,
    action: Action<A>,
) -> Option<Tool> {
    let definition = Definition::new(text.name, text.description, text.signature).ok()?;
    let implementation = FileTool { roots: Arc::clone(roots), action };
    Some(Tool::new(definition, ToolKind::Native, implementation).effect(effect).source("built in"))
}

impl<A: DeserializeOwned + Send + 'static> Implementation for FileTool<A> {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            let given = match &arguments {
                Json::Object(arguments) if context.has_rules() => arguments.clone(),
                _ => Map::new(),
            };
            let arguments = serde_json::from_value(arguments)
                .map_err(|error| ToolFailure::new(format!("invalid arguments: {error}")))?;
            let cancellation = CancellationToken::new();
            let context = ActionContext {
                roots: Arc::clone(&self.roots),
                call: context.clone(),
                arguments: given,
                cancellation: cancellation.clone(),
                real_roots: OnceCell::default(),
                excluded: Cell::default(),
            };
            let _guard = cancellation.drop_guard();
            let action = self.action;
            tokio::task::spawn_blocking(move || action(&context, &arguments)).await?
        })
    }

    fn canonical_arguments(&self, arguments: &Map<String, Json>) -> Vec<Map<String, Json>> {
        let Some(path) = arguments.get("path").and_then(Json::as_str) else { return Vec::new() };
        let with_path = |form: String| {
            let mut arguments = arguments.clone();
            arguments.insert("path".to_owned(), form.into());
            arguments
        };
        self.roots.canonical_paths(path).into_iter().map(with_path).collect()
    }
}
