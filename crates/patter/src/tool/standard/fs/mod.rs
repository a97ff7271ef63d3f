//! Files: reading, listing, searching and writing, within folders that are allowed and nowhere else.
//!
//! Every path is looked up from the handle of an allowed folder, one step after the other, by the operating system where
//! it can. So neither `..`, nor an absolute path, nor a symbolic link leads out, not even one that is put in place while
//! the call runs.

mod list;
mod read;
mod root;
mod search;
mod write;

pub use root::Root;

use super::super::{BoxFuture, Definition, Effect, Failure, Implementation, Kind, Tool, ToolContext};
use root::Roots;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Returns the tools for files of a project. Relative paths are looked up in the first root; a path in another one is
/// written `name:path`, and an absolute path may be in any.
///
/// What sets up the project or a root is guarded: `.env` is neither read nor written, `patter.toml`, `patter.lock` and
/// what is in `.git` are not written.
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
/// assert_eq!(names, ["readFile", "listFolder", "searchFiles", "writeFile"]);
/// let (read, context) = (&tools[0].implementation, ToolContext::new("1"));
/// let found = read.call(json!({"path": "Cargo.toml", "lines": 1}), &context).await.unwrap();
/// assert_eq!(found["content"], "[package]\n");
/// let failure = read.call(json!({"path": "../../Cargo.toml"}), &context).await.unwrap_err();
/// assert!(failure.message().contains("outside"));
/// # }
/// ```
pub fn fs(project: impl Into<PathBuf>, roots: Vec<Root>) -> Vec<Tool> {
    let roots = Arc::new(Roots::new(project.into(), roots));
    let tools = [
        tool(&roots, read::DEFINITION, Effect::Reads, read::read),
        tool(&roots, list::DEFINITION, Effect::Reads, list::list),
        tool(&roots, search::DEFINITION, Effect::Reads, search::search),
        tool(&roots, write::DEFINITION, Effect::Writes, write::write),
    ];
    // The definitions are constants; a test tells that all of them can be read.
    tools.into_iter().flatten().collect()
}

/// The name, the description and the signature of a tool.
type Constant = (&'static str, &'static str, &'static str);

/// What an action is given beside its arguments.
struct Scene {
    roots: Arc<Roots>,
    context: ToolContext,
    /// Cancelled when nobody waits for the action any more.
    given_up: CancellationToken,
}

type Action<A> = fn(&Scene, &A) -> Result<Json, Failure>;

struct FileTool<A: 'static> {
    roots: Arc<Roots>,
    action: Action<A>,
}

fn tool<A: DeserializeOwned + Send + 'static>(
    roots: &Arc<Roots>,
    (name, description, signature): Constant,
    effect: Effect,
    action: Action<A>,
) -> Option<Tool> {
    let definition = Definition::new(name, description, signature).ok()?;
    let implementation = FileTool { roots: Arc::clone(roots), action };
    Some(Tool::new(definition, Kind::Native, implementation).effect(effect).source("built in"))
}

impl<A: DeserializeOwned + Send + 'static> Implementation for FileTool<A> {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let arguments = serde_json::from_value(arguments)
                .map_err(|error| Failure::new(format!("the arguments cannot be read: {error}")))?;
            let given_up = CancellationToken::new();
            let scene = Scene { roots: Arc::clone(&self.roots), context: context.clone(), given_up: given_up.clone() };
            let _guard = given_up.drop_guard();
            let action = self.action;
            tokio::task::spawn_blocking(move || action(&scene, &arguments)).await?
        })
    }

    fn seen_by_rules(&self, arguments: &Map<String, Json>) -> Option<Map<String, Json>> {
        let seen = self.roots.seen(arguments.get("path")?.as_str()?)?;
        let mut arguments = arguments.clone();
        arguments.insert("path".to_owned(), seen.into());
        Some(arguments)
    }
}
