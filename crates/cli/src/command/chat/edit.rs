//! Writing a message in an editor.

use super::Conversation;
use crate::error::CommandError;
use patter::os_error::describe;
use std::io::Write;
use std::process::Command;

/// The variables that name the editor. They are those of the person, so a `.env` of the project does not count.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];

impl Conversation {
    /// Opens a text in the editor, and offers the result as the next message.
    pub(super) fn edit(&mut self, text: &str) -> Result<(), CommandError> {
        if !self.is_interactive {
            return Err(CommandError::usage("/edit needs a terminal").with_hint("write the message itself"));
        }
        let set = VARIABLES.iter().find_map(|name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty()));
        let Some(editor) = set else {
            let error = CommandError::failure("no editor is set");
            return Err(error.with_hint("set the variable EDITOR, for example to `nano`; Alt-Enter adds a line here"));
        };
        let failed = |reason: String| {
            CommandError::failure(format!("cannot edit with `{editor}`: {reason}"))
                .with_hint("set the variable EDITOR to a program that waits until you close the file")
        };
        let mut file = tempfile::Builder::new().prefix("patter-").suffix(".md").tempfile()?;
        file.write_all(text.as_bytes())?;
        // The variable may contain arguments, so the shell splits it, as git does.
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file.path());
        let status = command.status().map_err(|error| failed(describe(&error)))?;
        // Ctrl-C in the editor stops nothing here.
        self.begin_turn();
        if !status.success() {
            return Err(failed(status.to_string()));
        }
        let written = std::fs::read_to_string(file.path()).map_err(|error| failed(describe(&error)))?;
        match written.trim_end() {
            "" => self.note("the message is empty")?,
            written => written.clone_into(&mut self.draft),
        }
        Ok(())
    }
}
