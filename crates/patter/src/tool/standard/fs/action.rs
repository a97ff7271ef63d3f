//! What the tools for files share.

use super::root::{Roots, real_path};
use crate::tool::{Access, ToolContext, ToolFailure};
use serde_json::{Map, Value as Json};
use std::cell::{Cell, OnceCell};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The constants that define a tool.
pub(super) struct ToolText {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) signature: &'static str,
}

/// The context of an action.
pub(super) struct ActionContext {
    pub(super) roots: Arc<Roots>,
    pub(super) call: ToolContext,
    /// The arguments as given.
    pub(super) arguments: Map<String, Json>,
    /// Cancelled when the future of the call is dropped.
    pub(super) cancellation: CancellationToken,
    /// The paths of the roots without links, once they are needed.
    pub(super) real_roots: OnceCell<Vec<PathBuf>>,
    /// The number of files and folders that rules exclude.
    pub(super) excluded: Cell<usize>,
}

impl ActionContext {
    /// Returns whether permission rules let the call access a file or folder, by its absolute path without links.
    pub(super) fn permits(&self, path: &Path, access: Access) -> bool {
        let mut arguments = self.arguments.clone();
        let real_roots = self.real_roots.get_or_init(|| self.roots.real_paths());
        arguments.insert("path".to_owned(), self.roots.canonical_form(path, real_roots).into());
        self.call.permits(&arguments, access)
    }

    /// Returns whether permission rules let the call access an opened file or folder, wherever it really is.
    pub(super) fn permits_opened(&self, opened: impl AsFd, access: Access) -> bool {
        // Without the path, the decision about the call remains.
        !self.call.has_rules() || real_path(opened).is_none_or(|path| self.permits(&path, access))
    }

    /// Returns whether permission rules exclude an entry of a folder from what the call returns.
    pub(super) fn excludes(&self, folder: Option<&Path>, name: impl AsRef<Path>) -> bool {
        let is_excluded = folder.is_some_and(|folder| !self.permits(&folder.join(name), Access::Within));
        self.excluded.set(self.excluded.get() + usize::from(is_excluded));
        is_excluded
    }

    /// Returns the path of a folder whose entries rules may exclude.
    pub(super) fn ruled_path(&self, folder: impl AsFd) -> Option<PathBuf> {
        if self.call.has_rules() { real_path(folder) } else { None }
    }

    /// Reports that permission rules exclude something.
    pub(super) fn report_excluded(&self) {
        match self.excluded.get() {
            0 => {}
            1 => self.call.progress(None, "permission rules exclude 1 entry"),
            count => self.call.progress(None, format!("permission rules exclude {count} entries")),
        }
    }
}

/// A function that performs a call, with its deserialised arguments.
pub(super) type Action<A> = fn(&ActionContext, &A) -> Result<Json, ToolFailure>;
