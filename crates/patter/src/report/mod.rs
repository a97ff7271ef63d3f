//! The report of an experiment as an HTML page: the findings, their confidence, and every run.
//!
//! The page is a single file without external fonts, scripts or images; its content security policy forbids them. The
//! output of models and tools is text in it, never markup. The page can be read without JavaScript, except that of many
//! cases only the most telling ones are listed; a small script pages, filters and sorts them. The page is a function of
//! the report, takes time in proportion to it, and has a limited size.

mod number;
mod svg;
mod view;
mod changes;
mod transcript;
mod decision;
mod forest;
mod summary;
mod metric;
mod breakdown;
mod cases;
mod method;

pub use changes::{Version, mark_changes};

use crate::experiment::Report;
use crate::html::{Html, THEME, html};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use view::ReportView;

/// The styles of reports, which add to those of the [theme](THEME).
pub const STYLE: &str = include_str!("page.css");
/// The script of reports, which pages, filters and sorts cases.
pub const SCRIPT: &str = include_str!("page.js");

/// Renders a report as an HTML page.
///
/// ```
/// use patter::experiment::{Report, ReportKind};
/// let page = patter::report::html(&Report::new("Fish & chips", ReportKind::Eval));
/// assert!(page.contains("<h1>Fish &amp; chips</h1>"));
/// ```
pub fn html(report: &Report) -> String {
    let parts = Parts::new(report);
    let style = [THEME, STYLE].concat();
    let page = html!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src '{}'; \
         script-src '{}'; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <meta name=\"generator\" content=\"patter {}\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>{}</title><link rel=\"icon\" href=\"data:,\"><style>{}</style></head>\n\
         <body class=\"report\"><a class=\"skip\" href=\"#main\">Skip to the report</a>{}<nav aria-label=\"Contents\"><ul>{}</ul></nav>\
         <main id=\"main\">{}</main>{}<script>{}</script></body></html>\n",
        digest(&style),
        digest(SCRIPT),
        report.version,
        report.title,
        // These are files of the program, and contain no closing tag.
        Html::from_markup(style.clone()),
        parts.header,
        parts.contents,
        parts.body,
        method::footer(report),
        Html::from_markup(SCRIPT.to_owned())
    );
    page.into_page()
}

/// Renders a report as a part of a page that has [`THEME`], [`STYLE`] and [`SCRIPT`].
///
/// ```
/// use patter::experiment::{Report, ReportKind};
/// let part = patter::report::fragment(&Report::new("Fish & chips", ReportKind::Eval));
/// assert!(part.into_page().starts_with("<div class=\"report\"><header>"));
/// ```
pub fn fragment(report: &Report) -> Html {
    let Parts { header, contents, body } = Parts::new(report);
    html!("<div class=\"report\">{}<nav aria-label=\"Contents\"><ul>{}</ul></nav>{}</div>", header, contents, body)
}

/// The parts of a report.
struct Parts {
    header: Html,
    contents: Html,
    body: Html,
}

impl Parts {
    fn new(report: &Report) -> Self {
        let view = ReportView::new(report);
        let sections = [
            ("totals", "Results", metric::totals(&view)),
            ("cases", "Cases", cases::cases(&view)),
            ("metrics", "Details", metric::contrasts(&view)),
            ("latency", "Latency", breakdown::latency(&view)),
            ("tags", "Tags", breakdown::tags(&view)),
            ("tools", "Tools", breakdown::tools(&view)),
            ("judge", "Judges", method::judges(&view)),
            ("method", "Method", method::method(&view)),
        ];
        let present = || sections.iter().filter(|(_, _, section)| !section.is_empty());
        let link = |id: &str, name: &str| html!("<li><a href=\"#{}\">{}</a></li>", id, name);
        Self {
            header: summary::header(&view),
            contents: present().map(|(id, name, _)| link(id, name)).collect(),
            body: present().map(|(_, _, section)| section.clone()).collect(),
        }
    }
}

/// Returns the hash by which the content security policy allows a text.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
