//! HTML pages as text.

use html2text::{Handle, config};
use std::io::Read;
use std::time::{Duration, Instant};

/// The nesting limit of elements. Layout recurses into elements in places, so a hostile page could exhaust the time or
/// the stack; ordinary pages stay far below this.
const MAX_DEPTH: usize = 256;

/// The time limit for parsing a page, which takes quadratic time for a hostile one.
const MAX_PARSE_TIME: Duration = Duration::from_secs(2);

/// Returns the text of a page, laid out in lines of a width, and whether the whole page was parsed.
pub(super) fn page_text(html: &str, width: usize) -> (String, bool) {
    let config = config::plain().allow_width_overflow();
    let mut input = DeadlineReader { rest: html.as_bytes(), deadline: Instant::now() + MAX_PARSE_TIME };
    let text = config.parse_html(&mut input).and_then(|page| {
        flatten(&page.document);
        config.render_to_string(config.dom_to_render_tree(&page)?, width)
    });
    (text.unwrap_or_default(), input.rest.is_empty())
}

/// Returns the title of a page.
pub(super) fn page_title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    // A title contains no elements, but character references such as `&amp;`.
    let (title, _) = page_text(&html.get(start..end)?.replace('<', "&lt;"), usize::from(u16::MAX));
    Some(title.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|title| !title.is_empty())
}

/// A reader of a text that reports its end at a deadline.
struct DeadlineReader<'h> {
    rest: &'h [u8],
    deadline: Instant,
}

impl Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if Instant::now() > self.deadline { Ok(0) } else { self.rest.read(buffer) }
    }
}

/// Moves leaves that are nested too deep up to the nesting limit.
fn flatten(document: &Handle) {
    let mut nodes = vec![(document.clone(), 0)];
    while let Some((node, depth)) = nodes.pop() {
        if depth < MAX_DEPTH {
            nodes.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
            continue;
        }
        let mut leaves = Vec::new();
        let mut inside: Vec<Handle> = node.children.take();
        inside.reverse();
        while let Some(node) = inside.pop() {
            let children = node.children.take();
            if children.is_empty() {
                leaves.push(node);
            } else if !matches!(node.element_name().as_deref(), Some("script" | "style")) {
                inside.extend(children.into_iter().rev());
            }
        }
        node.children.replace(leaves);
    }
}
