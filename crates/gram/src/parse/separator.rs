//! What stands between the items of a list: commas, and what people write in their place.

use super::Parser;
use crate::{Diagnostic, code};

/// What comes after an item of a list.
#[derive(PartialEq, Eq)]
pub(super) enum AfterItem {
    /// Another item.
    NextItem,
    /// The end of the list.
    ListEnd,
}

/// What a list does with a token that is neither a separator nor its end.
#[derive(PartialEq, Eq)]
pub(super) enum UnexpectedToken {
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
    pub(super) fn after_item(
        &mut self,
        closer: u8,
        items: &'static str,
        classify: impl Fn(&Self) -> UnexpectedToken,
    ) -> AfterItem {
        loop {
            self.trivia();
            match self.peek() {
                b',' => return self.comma(closer, items),
                byte if byte == closer => return AfterItem::ListEnd,
                0 if self.at_end() => return AfterItem::ListEnd,
                byte @ (b')' | b']' | b'}') => {
                    if self.closes_outer(byte) {
                        return AfterItem::ListEnd;
                    }
                    self.unmatched_closer();
                }
                _ => match classify(self) {
                    UnexpectedToken::EndsList => return AfterItem::ListEnd,
                    UnexpectedToken::Junk => self.junk(),
                    UnexpectedToken::WrongSeparator => return self.wrong_separator(closer, items),
                    UnexpectedToken::StartsItem if self.unterminated_end == Some(self.token_end) => {
                        // The text that does not end has taken the comma with it.
                        return AfterItem::NextItem;
                    }
                    UnexpectedToken::StartsItem => {
                        let at = self.span(self.token_end, self.token_end);
                        let message = format!("missing `,` between {items}");
                        self.report(Diagnostic::error(code::MISSING_COMMA, at, message).with_hint("add a `,` here"));
                        return AfterItem::NextItem;
                    }
                },
            }
        }
    }

    /// Reads a comma and tells what follows it.
    fn comma(&mut self, closer: u8, items: &'static str) -> AfterItem {
        let at = self.pos;
        self.bump(1);
        self.trivia();
        if self.peek() == closer {
            let message = format!("trailing `,` after the last of the {items}");
            self.report(
                Diagnostic::error(code::EXTRA_COMMA, self.span(at, at + 1), message).with_hint("remove this `,`"),
            );
            return AfterItem::ListEnd;
        }
        self.extra_commas(items);
        if self.at_end() || self.peek() == closer { AfterItem::ListEnd } else { AfterItem::NextItem }
    }

    /// Reads what somebody wrote for a comma, and tells what follows it.
    fn wrong_separator(&mut self, closer: u8, items: &'static str) -> AfterItem {
        let start = self.pos;
        let message = format!("expected `,` between {items}, found {}", self.describe_next_token());
        self.bump(1);
        let error = Diagnostic::error(code::MISSING_COMMA, self.span(start, self.pos), message);
        self.report(error.with_hint("write `,`"));
        self.junk_node(start, self.pos);
        self.trivia();
        if self.at_end() || self.peek() == closer { AfterItem::ListEnd } else { AfterItem::NextItem }
    }

    /// Reports commas that stand where an item should.
    pub(super) fn extra_commas(&mut self, items: &'static str) {
        while self.peek() == b',' {
            let start = self.pos;
            self.bump(1);
            let message = format!("extra `,` between {items}");
            let error =
                Diagnostic::error(code::EXTRA_COMMA, self.span(start, self.pos), message).with_hint("remove this `,`");
            self.report_junk(error);
            self.trivia();
        }
    }

    /// Consumes a closing bracket that nothing opened.
    pub(super) fn unmatched_closer(&mut self) {
        let start = self.pos;
        let message = format!("unmatched {}", self.describe_next_token());
        self.bump(1);
        let error = Diagnostic::error(code::UNMATCHED, self.span(start, self.pos), message)
            .with_hint("remove it, or open it before");
        self.report_junk(error);
        self.junk_node(start, self.pos);
    }
}
