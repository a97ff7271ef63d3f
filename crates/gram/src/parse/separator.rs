//! Parsing the separators of a list: commas, and what people write instead.

use super::Parser;
use crate::{Diagnostic, code};

/// What follows an item of a list.
#[derive(PartialEq, Eq)]
pub(super) enum AfterItem {
    /// Another item.
    NextItem,
    /// The end of the list.
    ListEnd,
}

/// How a list treats a token that is neither a separator nor its closing bracket.
#[derive(PartialEq, Eq)]
pub(super) enum UnexpectedToken {
    /// The token starts an item: only the comma is missing.
    StartsItem,
    /// The token belongs to an enclosing construct, so the list ends here.
    EndsList,
    /// The token was written instead of a comma.
    WrongSeparator,
    /// The token is unexpected and skipped.
    Junk,
}

impl Parser<'_> {
    /// Parses what follows an item: a comma, the end of the list, or an error.
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
                        // The unterminated text has swallowed the comma.
                        return AfterItem::NextItem;
                    }
                    UnexpectedToken::StartsItem => {
                        let at = self.span(self.token_end, self.token_end);
                        let message = format!("missing `,` between {items}");
                        let is_between_nodes =
                            self.peek() == b'(' && self.byte(self.token_end.saturating_sub(1)) == b')';
                        let hint = if is_between_nodes { "add a `,` or an arrow here" } else { "add a `,` here" };
                        self.report(Diagnostic::error(code::MISSING_COMMA, at, message).with_hint(hint));
                        return AfterItem::NextItem;
                    }
                },
            }
        }
    }

    /// Parses a comma and returns what follows it.
    fn comma(&mut self, closer: u8, items: &'static str) -> AfterItem {
        let at = self.pos;
        self.bump(1);
        self.trivia();
        if self.peek() == closer {
            let message = format!("trailing `,` after the {items}");
            self.report(
                Diagnostic::error(code::EXTRA_COMMA, self.span(at, at + 1), message).with_hint("remove this `,`"),
            );
            return AfterItem::ListEnd;
        }
        self.extra_commas(items);
        if self.at_end() || self.peek() == closer { AfterItem::ListEnd } else { AfterItem::NextItem }
    }

    /// Parses a token written instead of a comma, and returns what follows it.
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

    /// Consumes and reports commas where an item should be.
    #[inline]
    pub(super) fn extra_commas(&mut self, items: &'static str) {
        if self.peek() == b',' {
            self.skip_commas(items);
        }
    }

    #[cold]
    fn skip_commas(&mut self, items: &'static str) {
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

    /// Consumes and reports an unmatched closing bracket.
    pub(super) fn unmatched_closer(&mut self) {
        let start = self.pos;
        let message = format!("unmatched {}", self.describe_next_token());
        self.bump(1);
        let error = Diagnostic::error(code::UNMATCHED, self.span(start, self.pos), message)
            .with_hint("remove it, or add the opening bracket");
        self.report_junk(error);
        self.junk_node(start, self.pos);
    }
}
