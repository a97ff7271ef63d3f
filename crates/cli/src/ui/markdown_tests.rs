#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "tests")]

use super::Markdown;
use crate::ui::output::for_stream;
use crate::ui::plain;
use crate::ui::text::escape;
use proptest::prelude::*;

/// Renders a whole text, with styles as `<b>` and `<>`.
fn render(text: &str, width: usize) -> String {
    let mut markdown = Markdown::new(width);
    let mut out = markdown.push(text);
    out.push_str(&markdown.end());
    let out = for_stream(&out, true, false).into_owned();
    let names = [
        ("\u{1b}[0m", "<>"),
        ("\u{1b}[1m", "<b>"),
        ("\u{1b}[2m", "<dim>"),
        ("\u{1b}[3m", "<i>"),
        ("\u{1b}[4m", "<u>"),
        ("\u{1b}[9m", "<s>"),
        ("\u{1b}[34m", "<link>"),
        ("\u{1b}[36m", "<code>"),
    ];
    names.iter().fold(out, |out, (code, name)| out.replace(code, name))
}

#[test]
fn inline_markup() {
    let table = [
        ("a **bold** and *it* and `x*y`.", "a <b>bold<> and <i>it<> and <code>x*y<>."),
        ("**bold *both* bold**", "<b>bold<> <b><i>both<> <b>bold<>"),
        ("***all*** __b__ _i_ ~~gone~~", "<b><i>all<> <b>b<> <i>i<> <s>gone<>"),
        // Text that is not emphasis is literal.
        ("2*3*4 = 24, snake_case_name, a * b * c", "2*3*4 = 24, snake_case_name, a * b * c"),
        ("def f(*args, **kwargs)", "def f(*args, **kwargs)"),
        ("**never closed", "**never closed"),
        ("a `b", "a `b"),
        ("``a ` b``, \\*as is\\*, C:\\dir", "<code>a<> <code>`<> <code>b<>, *as is*, C:\\dir"),
        ("**a `**` b** c", "<b>a<> <b><code>**<> <b>b<> c"),
        ("see [the docs](https://a.b/c) now", "see <link>the<> <link>docs<> <dim>(https://a.b/c)<> now"),
        ("[https://a.b](https://a.b) ![alt](u)", "<link>https://a.b<> <link>alt<> <dim>(u)<>"),
        ("[1] and [x] (y) [never", "[1] and [x] (y) [never"),
        ("中文**粗体**。", "中文<b>粗<><b>体<>。"),
    ];
    for (text, expected) in table {
        assert_eq!(render(text, 80), format!("{expected}\n"), "{text}");
    }
}

#[test]
fn block_markup() {
    let table = [
        ("# A\n## B\n#c\n", "<b><u>A<>\n<b>B<>\n#c\n"),
        ("- a\n* b\n  + c\n10. d\n1) e", "<dim>•<> a\n<dim>•<> b\n  <dim>•<> c\n<dim>10.<> d\n<dim>1)<> e\n"),
        ("> a\n>> b\n> - c", "<dim>│<> a\n<dim>│<> <dim>│<> b\n<dim>│<> <dim>•<> c\n"),
        ("a\n\n\n\n\n\nb\n\n", "a\n\n\nb\n"),
        ("---\n* * *\n--\n-", &format!("<dim>{0}<>\n<dim>{0}<>\n--\n-\n", "─".repeat(40))),
        ("```rust\nlet a = **b;\n\n  c\n```\nd", "    <dim>rust<>\n    let a = **b;\n\n      c\nd\n"),
        ("~~~\n``` \n~~\n~~~~\nx", "    ``` \n    ~~\nx\n"),
        ("```\nnever closed\n``", "    never closed\n    ``\n"),
        ("```a``` b", "<code>a<> b\n"),
        ("| a | b |\n|1|2|\nx", "| a | b |\n|1|2|\nx\n"),
        ("| only", "| only\n"),
        ("\u{1b}]0;x\u{7} a\r\nb", "\\u{1b}]0;x\\u{7} a\nb\n"),
        ("", ""),
        ("\n\n", ""),
    ];
    for (text, expected) in table {
        assert_eq!(render(text, 80), expected, "{text}");
    }
}

#[test]
fn lines_are_filled() {
    let table = [
        ("one two three four five six", "one two three four\nfive six\n"),
        ("- one two three four five", "<dim>•<> one two three four\n  five\n"),
        ("> one two three four five", "<dim>│<> one two three four\n<dim>│<> five\n"),
        ("a https://example.org/a/long/address b", "a\nhttps://example.org/a/long/address b\n"),
        ("中文中文中文中文中文中文", "中文中文中文中文中文\n中文\n"),
        (
            "👩\u{200d}👩\u{200d}👧👩🏽👩\u{200d}👩\u{200d}👧 👩🏽 ❤\u{fe0f} می\u{200c}خواهم",
            "👩\u{200d}👩\u{200d}👧👩🏽👩\u{200d}👩\u{200d}👧 👩🏽 ❤\u{fe0f} می\u{200c}خواهم\n",
        ),
        ("中文中文中文中文中👩\u{200d}👩\u{200d}👧👩🏽!", "中文中文中文中文中👩\u{200d}👩\u{200d}👧\n👩🏽!\n"),
        ("```\na line of code that is not broken\n```", "    a line of code that is not broken\n"),
    ];
    for (text, expected) in table {
        assert_eq!(render(text, 20), expected, "{text}");
    }
}

#[test]
fn tables_are_aligned() {
    let table = [
        (
            "before\n| a | long | r |\n|---|:-:|--:|\n| 1 | **b** | 2 |\n| `x\\|y` | | 10 |\nafter",
            "before\n<b>a<>  <dim> │ <><b>long<><dim> │ <> <b>r<>\n<dim>────┼──────┼───<>\n1  <dim> │ <> <b>b<>  <dim> │ <> 2\n",
        ),
        ("|a|\n|-|", "<b>a<>\n<dim>─<>\n"),
        (
            "> |a|b|\n> |-|-|\n> |1|2|\nx",
            "<dim>│<> <b>a<><dim> │ <><b>b<>\n<dim>│<> <dim>──┼──<>\n<dim>│<> 1<dim> │ <>2\nx\n",
        ),
        // Rows may be shorter or longer than the header.
        ("|a|b|\n|-|-|\n|1|\n|1|2|3|", "<b>a<><dim> │ <><b>b<><dim> │ <>\n"),
    ];
    for (text, expected) in table {
        let rendered = render(text, 80);
        assert!(rendered.starts_with(expected) || rendered == expected, "{rendered}");
    }
    let wide = format!("|name|text|\n|-|-|\n|a|{}|\n|中文|👩\u{200d}👧|", "one two ".repeat(10));
    let rendered = stripped(&render(&wide, 40));
    insta::assert_snapshot!(rendered);
    let many = "|a|b|c|d|e|f|g|h|i|j|\n|-|-|-|-|-|-|-|-|-|-|\n|1|2|3|4|5|6|7|8|9|10|";
    assert_eq!(render(many, 20), format!("{many}\n"), "no room for ten columns");
}

#[test]
fn words_are_written_when_they_are_complete() {
    let mut markdown = Markdown::new(80);
    let pieces = [
        ("Hel", ""),
        ("lo ", "Hello"),
        ("you ", " you"),
        ("**ve", ""),
        ("ry** ", " \u{1b}[1mvery\u{1b}[0m"),
        ("good\n", " good"),
        ("-", ""),
        (" it", "\n\u{1b}[2m•\u{1b}[0m "),
        ("em\n```\nco", "item\n    co"),
        ("de", "de"),
    ];
    for (piece, expected) in pieces {
        assert_eq!(for_stream(&markdown.push(piece), true, false), expected, "{piece}");
    }
    assert_eq!(markdown.end(), "\n");
}

/// Returns a text without styles.
fn stripped(text: &str) -> String {
    plain(text).into_owned()
}

/// Returns the characters that are neither markup nor white space.
fn content(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"#*_`~[]()!>-+|\\•│─┼".contains(*c)).collect()
}

fn markdown_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "[a-z]{1,8}",
        2 => prop::sample::select(vec![" ", "\n", "\n\n", "  "]).prop_map(str::to_owned),
        3 => prop::sample::select(vec![
            "*", "**", "***", "_", "__", "`", "``", "```", "~~~", "~~", "[", "](", ")", "![", "# ", "- ", "* ", "1. ", "> ", "|",
            "---", "\\", "\u{1b}[2J", "\r\n", "é", "中", "👩\u{200d}🚀", "\t", "0", "```\n", "\n```",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// The output does not depend on how a text is split, and contains all its text.
    #[test]
    fn nothing_is_lost(text in markdown_text(), cuts in prop::collection::vec(0_usize..200, 0..20), width in 20_usize..120) {
        let mut markdown = Markdown::new(width);
        let mut whole = markdown.push(&text);
        whole.push_str(&markdown.end());
        prop_assert_eq!(content(&stripped(&whole)), content(&escape(&text.replace('\r', " "))));

        let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut) && *cut < text.len()).collect();
        cuts.sort_unstable();
        let mut pieces = String::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push_str(&markdown.push(&text[from..cut]));
            from = cut;
        }
        pieces.push_str(&markdown.end());
        prop_assert_eq!(whole, pieces);
    }

    /// Plain words are unchanged, and lines fit into the width.
    #[test]
    fn plain_words_are_unchanged(text in "([a-z]{1,12}[ \n]{1,2}){0,60}", width in 20_usize..120) {
        let mut markdown = Markdown::new(width);
        let out = markdown.push(&text) + &markdown.end();
        prop_assert_eq!(out.split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
        prop_assert!(out.lines().all(|line| line.len() <= width), "{}", out);
    }
}
