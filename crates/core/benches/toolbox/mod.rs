//! A large toolbox, for the benchmarks of several crates.

use std::fmt::Write;

/// Returns a toolbox whose tools use record types.
pub(crate) fn toolbox(tools: u32) -> String {
    let mut text = String::new();
    for index in 0..tools / 5 {
        let next = (index + 1) % (tools / 5);
        let _ = writeln!(text, "[Record{index}:Object | (id::Int), (next::Record{next} {{ optional: true }})]");
    }
    let _ = write!(text, "[box:Toolbox |");
    for index in 0..tools {
        let separator = if index == 0 { "" } else { "," };
        let record = index / 5;
        let _ = write!(
            text,
            "{separator}\n  [tool_{index}:Http {{ description: \"Tool {index}\", url: \"https://api.example.com/{{id}}\" }} |\n    \
             (id::Int)==>(limit::Int {{ default: 10, range: 1..100 }})==>(::Array {{ elementType: \"Record{record}\" }})]"
        );
    }
    text + "\n]\n"
}
