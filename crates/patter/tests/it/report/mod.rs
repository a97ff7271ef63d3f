//! The HTML report of an experiment.

mod browser;
mod gallery;
mod sample;

use patter::experiment::{Report, ReportKind};
use patter::report::html;
use sample::HOSTILE;
use serde_json::Value as Json;

/// Returns a page without its style and script, one tag per line.
fn markup(page: &str) -> String {
    let (head, rest) = page.split_once("<meta http-equiv").unwrap();
    let (_, rest) = rest.split_once("<meta name=\"viewport\"").unwrap();
    let (before, rest) = rest.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, _) = rest.split_once("<script>").unwrap();
    format!("{head}<meta name=\"viewport\"{before}{body}").replace("><", ">\n<")
}

#[test]
fn comparison_page() {
    let report = sample::comparison(3, 2);
    let page = html(&report);
    assert_eq!(page, html(&report.clone()), "the page is a function of the report");
    insta::assert_snapshot!(markup(&page));
}

#[test]
fn evaluation_page() {
    insta::assert_snapshot!(markup(&html(&sample::evaluation(3))));
}

/// The first line of each kind of page says what to do.
#[test]
fn first_screen_decides() {
    let between = |page: &str, start: &str, end: &str| {
        let parts = page.split(start).skip(1).map(|rest| rest.split(end).next().unwrap().to_owned());
        parts.collect::<Vec<String>>()
    };
    let summaries = gallery::reports().into_iter().map(|(name, report)| {
        let page = html(&report);
        let (header, _) = page.split_once("</header>").unwrap();
        let parts = [
            ("banner", "banner"),
            ("verdict", "verdict"),
            ("because", "because"),
            ("caution", "caution"),
            ("rates", "rates"),
        ];
        let lines = parts.into_iter().flat_map(|(class, label)| {
            let found = between(header, &format!("<p class=\"{class}\">"), "</p>");
            found.into_iter().map(move |line| format!("  {label}: {}\n", plain(&line)))
        });
        let counts = between(header, "<ul><li class=\"won\">", "</ul>");
        let counts = counts.iter().map(|counts| format!("  counts: {}\n", plain(&counts.replace("</li>", " "))));
        format!("{name}\n{}", lines.chain(counts).collect::<String>())
    });
    insta::assert_snapshot!(summaries.collect::<String>());
}

/// Returns the text of markup.
fn plain(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for character in markup.chars() {
        match character {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => text.push(character),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Columns have the same width under each arm: every row has the same cells.
#[test]
fn rows_of_cases_have_the_same_columns() {
    let page = html(&sample::comparison(40, 1));
    let rows: Vec<&str> = page.split("<tbody role=\"rowgroup\" id=\"case-").skip(1).collect();
    assert_eq!(rows.len(), 40);
    for row in rows {
        let (first, _) = row.split_once("</tr>").unwrap();
        assert_eq!((first.matches("class=\"r\"").count(), first.matches("class=\"n\"").count()), (2, 6), "{first}");
    }
}

#[test]
fn empty_report_is_a_page() {
    for kind in [ReportKind::Eval, ReportKind::Ab] {
        let mut report = Report::new("Nothing", kind);
        assert!(html(&report).contains("<h1>Nothing</h1>"));
        report.arms = sample::comparison(1, 1).arms;
        assert!(html(&report).contains("Nothing was run"));
        report.cases = sample::comparison(1, 1).cases;
        assert!(html(&report).contains("2\u{a0}planned runs without a result"));
    }
}

#[test]
fn data_is_never_markup() {
    // Every text is hostile: titles, names, hashes, tags, answers, results, reasons and verdicts.
    fn poison(value: &mut Json, key: &str) {
        match value {
            Json::String(_)
                if ["role", "kind", "blocks", "completion", "better", "stopping", "finding", "matters", "method"]
                    .contains(&key) => {}
            Json::String(text) => *text = format!("{HOSTILE}` onload='{text}"),
            Json::Array(items) => items.iter_mut().for_each(|item| poison(item, key)),
            Json::Object(fields) => fields.iter_mut().for_each(|(key, value)| poison(value, key)),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }
    for report in [sample::comparison(8, 1), sample::evaluation(8)] {
        let tags = |page: &str| page.matches('<').count();
        let plain = html(&report);
        let mut json = serde_json::to_value(&report).unwrap();
        poison(&mut json, "");
        let page = html(&serde_json::from_value::<Report>(json).unwrap());
        let (_, body) = page.split_once("</style>").unwrap();
        assert!(body.contains("&lt;script&gt;alert(&#39;2&#39;)"));
        for (tag, times) in
            [("<script", 3), ("</script", 3), ("<style", 0), ("</style", 0), ("<img", 0), ("</textarea", 0)]
        {
            assert_eq!(body.matches(tag).count(), times, "{tag}");
        }
        assert!(!page.contains("onload='") && !page.contains("onerror=\""));
        // The number of change marks and code tags may differ a little; nothing else may be added.
        assert!(tags(&page).abs_diff(tags(&plain)) < tags(&plain) / 4);
    }
}

#[test]
fn transcripts_mark_differences() {
    let page = html(&sample::comparison(3, 1));
    for marked in [
        "within <del>five</del> working",
        "within <ins>three</ins> working",
        "<b>calls mail/send</b> <i>only here</i>",
        "<b>orders/find returns</b> <i>only here</i>",
    ] {
        assert!(page.contains(marked), "{marked}");
    }
}

#[test]
fn page_of_a_thousand_cases_is_a_few_megabytes() {
    let mut report = sample::comparison(1_000, 1);
    for trial in &mut report.trials {
        trial.content = "long ".repeat(20_000);
        trial.conversation.push(patter::message::conversation::Message::assistant(trial.content.clone(), Vec::new()));
    }
    let page = html(&report);
    assert!(page.len() < 8_000_000, "{}", page.len());
    assert!(page.contains(" more characters]"));
    assert_eq!(page.matches("<details>").count(), 1_000);
}
