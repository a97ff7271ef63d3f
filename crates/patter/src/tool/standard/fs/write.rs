//! `writeFile`: creating, replacing and extending files.

use super::action::{ActionContext, ToolText};
use super::target::{MAX_BYTES, WriteTarget};
use crate::tool::ToolFailure;
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub(super) const DEFINITION: ToolText = ToolText {
    name: "writeFile",
    description: "Writes a text file. Missing folders are created",
    signature: "(path::Text {description: 'A path in the project'})\
     ==>(content::Text)\
     ==>(mode::Text {description: 'create fails if the file exists; overwrite replaces its content; append adds to it', \
         enum: ['create', 'overwrite', 'append'], default: 'create'})\
     ==>(::Object {fields: {path: 'Text', bytes: 'Int'}})",
};

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    content: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Create,
    Overwrite,
    Append,
}

pub(super) fn write(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let Arguments { path, content, mode } = arguments;
    if content.len() > MAX_BYTES {
        return Err(ToolFailure::new(format!(
            "the content has {} bytes; at most {MAX_BYTES} are allowed",
            content.len()
        )));
    }
    let target = WriteTarget::open(context, path)?;
    match mode {
        Mode::Create if target.exists() => {
            return Err(ToolFailure::new(format!(
                "`{path}` already exists; use the mode `overwrite` to replace it, or `append` to add to it"
            )));
        }
        Mode::Create => target.create(content.as_bytes())?,
        Mode::Overwrite => target.replace(content.as_bytes(), None)?,
        Mode::Append => target.append(content.as_bytes())?,
    }
    Ok(json!({"path": path, "bytes": content.len()}))
}
