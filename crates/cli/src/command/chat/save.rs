//! Saving the conversation to a file.

use super::Conversation;
use crate::error::CommandError;
use crate::file::{Existing, unwritable, write_private};
use crate::session::markdown;
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;

impl Conversation {
    /// Writes the conversation to a file. An existing file is replaced only after confirmation.
    pub(super) fn save(&mut self, file: &str) -> Result<(), CommandError> {
        let path = Path::new(file);
        let conversation = self.open.session.conversation();
        let agent = self.open.session.prepare(None).map(|(_, compiled)| compiled.name().to_owned());
        let agent = agent.unwrap_or_else(|_| "agent".to_owned());
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = match is_json {
            true => {
                let session = self.open.session.id().map(|id| id.to_string());
                format!("{:#}\n", json!({"agent": agent, "session": session, "conversation": conversation}))
            }
            false => markdown(&agent, &conversation),
        };
        let mut written = write_private(path, &text, Existing::Keep);
        let exists = matches!(&written, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        if exists && self.is_interactive {
            self.note(&format!("`{file}` already exists. Replace it?"))?;
            if self.ask(&[('y', "yes"), ('n', "no")]) != Some('y') {
                return Ok(());
            }
            written = write_private(path, &text, Existing::Replace);
        }
        match written {
            Ok(()) => Ok(self.note(&format!("saved to `{file}`"))?),
            Err(error) if exists => Err(unwritable(path, &error).with_hint("name another file")),
            Err(error) => Err(unwritable(path, &error)),
        }
    }
}
