//! What is not the answer of a run: text that may be rejected, and reasoning.

use super::status;
use super::style::DIM;
use patter::drive::{RunEvent, RunEventKind};
use patter::run::unfenced;
use std::io;

/// The text of an agent whose answer must match a schema. It is held back until it is known whether it is the answer.
#[derive(Default)]
pub(crate) struct HeldText {
    is_structured: bool,
    text: String,
    /// Whether the text was a whole reply, and not said before calls.
    is_answer: bool,
}

/// What to do with the text of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TextStep {
    /// It is shown as it arrives.
    Show,
    /// It is held back.
    Hold,
    /// The answer was accepted.
    Accept(String),
}

impl HeldText {
    /// Takes the text of an event of the outermost run. Text that was not accepted is written to stderr.
    pub(crate) fn take(&mut self, event: &RunEvent) -> io::Result<TextStep> {
        if event.depth > 0 {
            return Ok(TextStep::Show);
        }
        match &event.kind {
            RunEventKind::Started { is_structured, .. } => self.is_structured = *is_structured,
            _ if !self.is_structured => {}
            RunEventKind::Text { text } => {
                self.text.push_str(text);
                return Ok(TextStep::Hold);
            }
            RunEventKind::Replied { calls, .. } => self.is_answer = *calls == 0,
            RunEventKind::ModelCalled { .. } => self.reject()?,
            RunEventKind::Finished { error: None, response, .. } => {
                self.text.clear();
                return Ok(TextStep::Accept(format!("{}\n", unfenced(&response.content).trim_end())));
            }
            RunEventKind::Finished { .. } => self.reject()?,
            _ => {}
        }
        Ok(TextStep::Show)
    }

    fn reject(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        if self.is_answer {
            status(&format!("{DIM}this answer does not match the required schema:{DIM:#}"))?;
        }
        text.lines().try_for_each(|line| status(&format!("  {DIM}{line}{DIM:#}")))
    }
}

/// Reasoning, which is written to stderr line by line if somebody asked for it.
#[derive(Default)]
pub(crate) struct ThoughtLines {
    is_shown: bool,
    /// The start of the line that has not ended.
    rest: String,
}

impl ThoughtLines {
    /// Creates lines that are shown or not.
    pub(crate) fn new(is_shown: bool) -> Self {
        Self { is_shown, rest: String::new() }
    }

    /// Returns the lines that are complete after an event of the outermost run.
    pub(crate) fn take(&mut self, event: &RunEvent) -> Vec<String> {
        if !self.is_shown || event.depth > 0 {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if let RunEventKind::Thought { text } = &event.kind {
            self.rest.push_str(text);
            while let Some((line, rest)) = self.rest.split_once('\n') {
                lines.push(line.to_owned());
                self.rest = rest.to_owned();
            }
        } else if !self.rest.is_empty() {
            lines.push(std::mem::take(&mut self.rest));
        }
        lines.into_iter().map(|line| format!("  {DIM}{line}{DIM:#}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: RunEventKind) -> RunEvent {
        RunEvent::new("a", &Vec::new(), kind)
    }

    #[test]
    fn reasoning_is_shown_line_by_line() {
        let thought = |text: &str| event(RunEventKind::Thought { text: text.into() });
        let mut lines = ThoughtLines::new(true);
        assert!(lines.take(&thought("One")).is_empty());
        assert_eq!(lines.take(&thought(" line\nTwo\nTh")).len(), 2);
        let last = lines.take(&event(RunEventKind::Text { text: "Hi".into() }));
        assert_eq!(last.len(), 1);
        assert!(last[0].contains("Th"), "{last:?}");
        assert!(ThoughtLines::new(false).take(&thought("One\n")).is_empty());
    }

    #[test]
    fn text_is_held_back_only_if_it_may_be_rejected() {
        let text = || event(RunEventKind::Text { text: "{}".into() });
        for (is_structured, expected) in [(false, TextStep::Show), (true, TextStep::Hold)] {
            let mut held = HeldText::default();
            let started = RunEventKind::Started { model: "demo".into(), bindings: String::new(), is_structured };
            assert_eq!(held.take(&event(started)).unwrap(), TextStep::Show);
            assert_eq!(held.take(&text()).unwrap(), expected);
        }
    }
}
