//! Pages as text.

use html2text::{Handle, config};
use std::io::Read;
use std::time::{Duration, Instant};

/// How deep elements may be nested. The layout of a page follows the nesting, by recursion in places, so a hostile page
/// could exhaust the time or the stack; pages of people stay far below this.
const DEEPEST: usize = 256;

/// How long the reading of a page may take. That of a hostile one takes time by the square of its length.
const LONGEST: Duration = Duration::from_secs(2);

/// Returns the text of a page, laid out in lines of a width, and tells whether the page was read to its end.
pub(super) fn readable(html: &str, width: usize) -> (String, bool) {
    let config = config::plain().allow_width_overflow();
    let mut input = Hurried { rest: html.as_bytes(), until: Instant::now() + LONGEST };
    let text = config.parse_html(&mut input).and_then(|page| {
        flatten(&page.document);
        config.render_to_string(config.dom_to_render_tree(&page)?, width)
    });
    (text.unwrap_or_default(), input.rest.is_empty())
}

/// Returns the title of a page.
pub(super) fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    // A title holds no elements, but characters such as `&amp;`.
    let (title, _) = readable(&html.get(start..end)?.replace('<', "&lt;"), usize::from(u16::MAX));
    Some(title.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|title| !title.is_empty())
}

/// A text that ends when the time is up.
struct Hurried<'h> {
    rest: &'h [u8],
    until: Instant,
}

impl Read for Hurried<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if Instant::now() > self.until { Ok(0) } else { self.rest.read(buffer) }
    }
}

/// Puts what is nested too deep side by side.
fn flatten(document: &Handle) {
    let mut nodes = vec![(document.clone(), 0)];
    while let Some((node, depth)) = nodes.pop() {
        if depth < DEEPEST {
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
