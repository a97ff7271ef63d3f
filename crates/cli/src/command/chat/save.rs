//! Conversations as files.

use super::Conversation;
use crate::command::sessions::markdown;
use crate::source::{Existing, write_whole};
use serde_json::json;
use std::io::{self, ErrorKind};
use std::path::Path;

impl Conversation {
    /// Writes the conversation to a file. One that is there is replaced only by who says so.
    pub(super) fn save(&mut self, file: &str) -> io::Result<()> {
        let path = Path::new(file);
        let conversation = self.talk.session.conversation();
        let agent = self.talk.session.ready(None).map(|(_, compiled)| compiled.name().to_owned());
        let agent = agent.unwrap_or_else(|_| "the agent".to_owned());
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let text = match is_json {
            true => {
                let session = self.talk.session.id().map(|id| id.to_string());
                format!("{:#}\n", json!({"agent": agent, "session": session, "conversation": conversation}))
            }
            false => markdown(&agent, &conversation),
        };
        let mut written = write_whole(path, &text, Existing::Kept);
        let is_there = matches!(&written, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        if is_there && self.is_interactive {
            self.note(&format!("`{file}` is there already"))?;
            if self.asked(&[('r', "replace it"), ('k', "keep it")]) != Some('r') {
                return Ok(());
            }
            written = write_whole(path, &text, Existing::Replaced);
        }
        match written {
            Ok(()) => self.note(&format!("written to `{file}`")),
            Err(_) if is_there && !self.is_interactive => {
                self.fail(&format!("`{file}` is there already"), Some("name another file"))
            }
            Err(error) => self.fail(&format!("cannot write `{file}`: {error}"), None),
        }
    }
}
