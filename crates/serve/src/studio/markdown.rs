//! Markdown as HTML. Text of models is data: markup in it stays text, and links lead only where people expect it.

use patter::html::{Html, html};
use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};

/// Texts that are longer are shown as they are.
const MAX_RENDERED: usize = 256 << 10;

/// Renders a text.
pub(super) fn render(text: &str) -> Html {
    if text.len() > MAX_RENDERED {
        return html!("<pre class=\"long\" tabindex=\"0\">{}</pre>", text);
    }
    let shown = visible(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut hidden_links = 0_usize;
    let events = Parser::new_ext(&shown, options).filter_map(|event| match event {
        // Markup in the text is text.
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::HtmlBlock) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::HtmlBlock) => Some(Event::End(TagEnd::Paragraph)),
        Event::Start(Tag::Link { dest_url, .. }) if !is_safe(&dest_url) => {
            hidden_links += 1;
            None
        }
        Event::Start(Tag::Link { dest_url, .. }) => Some(Event::Start(Tag::Link {
            link_type: LinkType::Inline,
            dest_url,
            title: CowStr::Borrowed(""),
            id: CowStr::Borrowed(""),
        })),
        Event::End(TagEnd::Link) if hidden_links > 0 => {
            hidden_links -= 1;
            None
        }
        // Images are loaded from nowhere: their description stays.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        // The page has its own headings.
        Event::Start(Tag::Heading { .. }) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::Heading(_)) => Some(Event::End(TagEnd::Paragraph)),
        Event::TaskListMarker(done) => Some(Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " }))),
        other => Some(other),
    });
    let mut markup = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut markup, events);
    // Wide tables and code scroll inside of the message, also by keyboard.
    let markup = markup.replace("<pre>", "<pre tabindex=\"0\">").replace("<a href", "<a rel=\"noreferrer\" href");
    html!(
        "<div class=\"prose\">{}</div>",
        Html::from_markup(
            markup
                .replace(" style=\"text-align: right\"", "")
                .replace(" style=\"text-align: center\"", "")
                .replace(" style=\"text-align: left\"", "")
        )
    )
}

/// Returns whether a link leads to a page or to a mail program.
fn is_safe(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

/// Replaces the characters that could disguise text, as the HTML writer does.
fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        control if control.is_control() => '\u{fffd}',
        other => other,
    };
    text.replace('\r', "").chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::render;

    fn page(text: &str) -> String {
        render(text).into_page()
    }

    #[test]
    fn markup_stays_text() {
        let shown = page("Hi <b>there</b>\n\n<script>alert(1)</script>\n\n</script>");
        assert!(!shown.contains("<script") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("&lt;b&gt;there&lt;/b&gt;") && shown.contains("&lt;/script&gt;"), "{shown}");
    }

    #[test]
    fn links_lead_where_people_expect_it() {
        let shown = page(
            "[a](javascript:alert(1)) [b](https://example.com/?a=1&b=2) [c](/studio) ![d](https://example.com/x.png)",
        );
        assert!(!shown.contains("javascript:") && !shown.contains("<img") && !shown.contains("/studio\""), "{shown}");
        assert!(shown.contains("<a rel=\"noreferrer\" href=\"https://example.com/?a=1&amp;b=2\">b</a>"), "{shown}");
        assert!(page("<javascript:alert(1)>").find("href").is_none());
    }

    #[test]
    fn text_cannot_be_disguised() {
        assert!(!page("a\u{202e}b").contains('\u{202e}'));
        assert!(!page("| a |\n|:-:|\n| b |").contains("style"));
    }
}
