//! Writing an item on one line.

use super::tokens::{colon, has_brackets, has_comment, name_and_labels, strokes};
use crate::{Kind, Syntax};

/// A writer that puts items on one line and stops at a byte limit or a required line break.
pub(super) struct FlatWriter<'o> {
    pub(super) out: &'o mut String,
    pub(super) limit: usize,
}

impl FlatWriter<'_> {
    fn push(&mut self, text: &str) -> Option<()> {
        if self.out.len() + text.len() > self.limit || text.contains('\n') {
            return None;
        }
        self.out.push_str(text);
        Some(())
    }

    pub(super) fn write(&mut self, item: Syntax<'_>) -> Option<()> {
        match item.kind() {
            Kind::Node => {
                self.push("(")?;
                self.subject(item)?;
                self.push(")")
            }
            Kind::Arrow => {
                let (left, right) = strokes(item);
                self.push(left)?;
                if has_brackets(item) {
                    self.push("[")?;
                    self.subject(item)?;
                    self.push("]")?;
                }
                self.push(right)
            }
            Kind::Path => item.children().try_for_each(|part| self.write(part)),
            Kind::Bracket => {
                self.push("[")?;
                self.subject(item)?;
                let mut is_first = true;
                let has_subject = item.children().next().is_some_and(|first| !first.kind().is_pattern());
                for element in item.children().filter(|child| child.kind().is_pattern()) {
                    let separator = match (is_first, has_subject) {
                        (true, true) => " | ",
                        (true, false) => "| ",
                        (false, _) => ", ",
                    };
                    self.push(separator)?;
                    is_first = false;
                    self.write(element)?;
                }
                self.push("]")
            }
            Kind::Header => {
                self.push("@@")?;
                self.push(&name_and_labels(item))
            }
            Kind::Annotation => {
                self.push("@")?;
                for part in item.children() {
                    self.write(part)?;
                    if part.kind() == Kind::Key {
                        self.push("(")?;
                    }
                }
                self.push(")")
            }
            Kind::Record | Kind::Map => {
                if item.children().next().is_none() {
                    return self.push("{}");
                }
                self.push("{ ")?;
                self.separated(item)?;
                self.push(" }")
            }
            Kind::Array => {
                self.push("[")?;
                self.separated(item)?;
                self.push("]")
            }
            Kind::Property => item.children().try_for_each(|part| {
                self.write(part)?;
                match part.kind() {
                    Kind::Key => {
                        self.push(colon(item))?;
                        self.push(" ")
                    }
                    _ => Some(()),
                }
            }),
            // With a comment inside, these are written verbatim.
            Kind::Range if !has_comment(item) => {
                let text: String = item.text().chars().filter(|c| !c.is_whitespace()).collect();
                self.push(&text)
            }
            Kind::Tagged if !has_comment(item) && !item.text().starts_with("```") => {
                let tag = item.child(Kind::Tag)?;
                self.push(tag.text())?;
                let text = item.text().get(tag.text().len()..)?;
                self.push(text.trim_start())
            }
            _ => self.push(item.text()),
        }
    }

    fn subject(&mut self, item: Syntax<'_>) -> Option<()> {
        let head = name_and_labels(item);
        self.push(&head)?;
        let Some(record) = item.child(Kind::Record) else { return Some(()) };
        if !head.is_empty() {
            self.push(" ")?;
        }
        self.write(record)
    }

    fn separated(&mut self, list: Syntax<'_>) -> Option<()> {
        for (index, item) in list.children().enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.write(item)?;
        }
        Some(())
    }
}
