//! The report of an experiment as one page: what it says, how sure that is, and every run to look at.
//!
//! The page is a single file that needs nothing else and asks for nothing: no fonts, scripts or images from elsewhere, and
//! a policy in it forbids them. What models and tools wrote is text in it and never markup. Without JavaScript all of it
//! can be read; a small script filters and sorts the cases. The same report gives the same page.

mod breakdown;
mod cases;
mod html;
mod method;
mod metric;
mod number;
mod summary;
mod svg;
mod transcript;
mod view;

use crate::experiment::Report;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use html::{Html, html};
use sha2::{Digest, Sha256};
use view::View;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the report as a page of HTML.
///
/// ```
/// use patter::experiment::{Report, ReportKind};
/// let page = patter::report::html(&Report::new("Fish & chips", ReportKind::Eval));
/// assert!(page.contains("<h1>Fish &amp; chips</h1>"));
/// ```
pub fn html(report: &Report) -> String {
    let view = View::new(report);
    let (arms, figures) = match report.arms.len() {
        0 | 1 => ("What was run", "In figures"),
        _ => ("Arms", "Each arm by itself"),
    };
    let sections = [
        ("arms", arms, summary::arms(&view, arms)),
        ("gates", "Gates", method::gates(&view)),
        ("metrics", "Differences", metric::contrasts(&view)),
        ("totals", figures, metric::totals(&view, figures)),
        ("latency", "Latency", breakdown::latency(&view)),
        ("tags", "Tags", breakdown::tags(&view)),
        ("tools", "Tools", breakdown::tools(&view)),
        ("cases", "Cases", cases::cases(&view)),
        ("judge", "Judges", method::judges(&view)),
        ("method", "How it was run", method::method(&view)),
    ];
    let present = || sections.iter().filter(|(_, _, section)| !section.is_empty());
    let contents: Html = present().map(|(id, name, _)| html!("<li><a href=\"#{}\">{}</a></li>", id, name)).collect();
    let body: Html = present().map(|(_, _, section)| section.clone()).collect();
    let page = html!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src '{}'; \
         script-src '{}'; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
         <meta name=\"generator\" content=\"patter {}\"><meta name=\"referrer\" content=\"no-referrer\">\
         <title>{}</title><link rel=\"icon\" href=\"data:,\"><style>{}</style></head>\n\
         <body><a class=\"skip\" href=\"#main\">Skip to the report</a>{}<nav aria-label=\"Contents\"><ul>{}</ul></nav>\
         <main id=\"main\">{}</main>{}<script>{}</script></body></html>\n",
        digest(STYLE),
        digest(SCRIPT),
        report.version,
        report.title,
        // They are files of the program, and end in no tag of their own.
        Html::written(STYLE.to_owned()),
        summary::header(&view),
        contents,
        body,
        method::footer(&view),
        Html::written(SCRIPT.to_owned())
    );
    page.into_page()
}

/// Returns what the policy of the page knows a text by.
fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}
