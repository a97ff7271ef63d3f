//! What belongs to a message besides its text: files, and what is piped in beside a prompt.

mod mention;
mod piped;

pub(crate) use mention::mentions;
pub(crate) use piped::piped_input;

use crate::error::CommandError;
use crate::file::{Input, unreadable};
use patter::file::read_attachment;
use patter::message::attachment::{AttachmentContents, AttachmentError, UserInput};
use patter::run::StartError;
use patter::session::SessionError;
use std::io::ErrorKind;
use std::path::Path;

/// A message, with the contents of its attachments.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) input: UserInput,
    pub(crate) contents: AttachmentContents,
}

impl Message {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { input: text.into().into(), contents: AttachmentContents::default() }
    }

    /// Attaches a file.
    pub(crate) fn attach_file(&mut self, path: &Path) -> Result<(), CommandError> {
        let content = read_attachment(path).map_err(|error| {
            let input = Input::Path(path.to_owned());
            match error.kind() {
                ErrorKind::IsADirectory => unreadable(&input, &error).with_hint("name a file in it"),
                ErrorKind::InvalidInput => {
                    unreadable(&input, &error).with_hint("write it to a file, or pipe it to stdin")
                }
                _ => unreadable(&input, &error),
            }
        })?;
        self.attach(&path.to_string_lossy(), content)
    }

    /// Attaches a content.
    fn attach(&mut self, name: &str, content: Vec<u8>) -> Result<(), CommandError> {
        let attachment = self.contents.attach(name, content).map_err(|error| refused(&error))?;
        self.input.attachments.push(attachment);
        self.input.check_limits().map_err(|error| refused(&error))
    }
}

/// Returns the error of a file that cannot be attached.
fn refused(error: &AttachmentError) -> CommandError {
    let hint = match error {
        AttachmentError::Unreadable { hint, .. } => Some((*hint).to_owned()),
        _ => None,
    };
    CommandError::from(SessionError::from(StartError::from(error.clone()))).with_hint_if(hint)
}
