//! What stands between the items of a list: commas, and what people write in their place.

use super::Parser;
use crate::{Diagnostic, code};

/// What comes after an item of a list.
#[derive(PartialEq, Eq)]
pub(super) enum After {
    /// Another item.
    Item,
    /// The end of the list.
    End,
}

/// What a list does with a token that is neither a separator nor its end.
#[derive(PartialEq, Eq)]
pub(super) enum Unexpected {
    /// It starts an item: only the comma is missing.
    StartsItem,
    /// It belongs to what is around the list, so the list ends here.
    EndsList,
    /// It stands where a comma should.
    WrongSeparator,
    /// It is in the way.
    Junk,
}

impl Parser<'_> {
    /// Reads what follows an item: a comma, the end, or a mistake.
    pub(super) fn after_item(&mut self, closer: u8, items: &'static str, judge: impl Fn(&Self) -> Unexpected) -> After {
        loop {
            self.trivia();
            match self.peek() {
                b',' => return self.comma(closer, items),
                byte if byte == closer => return After::End,
                0 if self.at_end() => return After::End,
                byte @ (b')' | b']' | b'}') => {
                    if self.closes_outer(byte) {
                        return After::End;
                    }
                    self.unmatched_closer();
                }
                _ => match judge(self) {
                    Unexpected::EndsList => return After::End,
                    Unexpected::Junk => self.junk(),
                    Unexpected::WrongSeparator => return self.wrong_separator(closer, items),
                    Unexpected::StartsItem if self.unterminated_end == Some(self.token_end) => {
                        // The text that does not end has taken the comma with it.
                        return After::Item;
                    }
                    Unexpected::StartsItem => {
                        let at = self.span(self.token_end, self.token_end);
                        let message = format!("missing `,` between {items}");
                        self.report(Diagnostic::error(code::MISSING_COMMA, at, message).with_hint("add a `,` here"));
                        return After::Item;
                    }
                },
            }
        }
    }

    /// Reads a comma and tells what follows it.
    fn comma(&mut self, closer: u8, items: &'static str) -> After {
        let at = self.pos;
        self.bump(1);
        self.trivia();
        if self.peek() == closer {
            let message = format!("trailing `,` after the last of the {items}");
            self.report(
                Diagnostic::error(code::EXTRA_COMMA, self.span(at, at + 1), message).with_hint("remove this `,`"),
            );
            return After::End;
        }
        self.extra_commas(items);
        if self.at_end() || self.peek() == closer { After::End } else { After::Item }
    }

    /// Reads what somebody wrote for a comma, and tells what follows it.
    fn wrong_separator(&mut self, closer: u8, items: &'static str) -> After {
        let start = self.pos;
        let message = format!("expected `,` between {items}, found {}", self.found());
        self.bump(1);
        let found = Diagnostic::error(code::MISSING_COMMA, self.span(start, self.pos), message);
        self.report(found.with_hint("write `,`"));
        self.junk_node(start, self.pos);
        self.trivia();
        if self.at_end() || self.peek() == closer { After::End } else { After::Item }
    }

    /// Reports commas that stand where an item should.
    pub(super) fn extra_commas(&mut self, items: &'static str) {
        while self.peek() == b',' {
            let start = self.pos;
            self.bump(1);
            let message = format!("extra `,` between {items}");
            let found =
                Diagnostic::error(code::EXTRA_COMMA, self.span(start, self.pos), message).with_hint("remove this `,`");
            self.report_junk(found);
            self.trivia();
        }
    }

    /// Consumes a closing bracket that nothing opened.
    pub(super) fn unmatched_closer(&mut self) {
        let start = self.pos;
        let message = format!("unmatched {}", self.found());
        self.bump(1);
        let found = Diagnostic::error(code::UNMATCHED, self.span(start, self.pos), message)
            .with_hint("remove it, or open it before");
        self.report_junk(found);
        self.junk_node(start, self.pos);
    }
}
