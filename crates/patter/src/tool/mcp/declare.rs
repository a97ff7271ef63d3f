//! The tools of an MCP server as a file of declarations.

use super::tools::ToolWarning;
use indexmap::IndexMap;
use patter_core::gram;
use patter_core::types::definition::Definition;
use patter_core::types::signature::Record;

/// Writes declarations, with where they come from.
pub(super) fn file<'d>(server: &str, tools: impl Iterator<Item = &'d Definition>, warnings: &[ToolWarning]) -> String {
    let mut records: IndexMap<&str, &Record> = IndexMap::new();
    let mut declared = Vec::new();
    let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    for tool in tools {
        let clash = tool.records.iter().find(|(name, record)| records.get(name).is_some_and(|known| known != record));
        match clash {
            Some((record, _)) => notes.push(format!(
                "the tool `{}` is left out: its record type `{record}` is another than that of a tool before",
                tool.name
            )),
            None => {
                records.extend(tool.records.iter());
                declared.push(tool.to_string());
            }
        }
    }
    let mut text = format!(
        "// The tools of the MCP server `{server}`, as it told them. Written by `patter import mcp {server}`;\n\
         // run that again after the server changed, and review what it changed here.\n"
    );
    for note in notes {
        let note = note.replace(char::is_control, " ");
        text.push_str(&format!("// Note: {note}\n"));
    }
    text.push('\n');
    for (name, record) in records {
        text.push_str(&record.declaration(name));
        text.push_str("\n\n");
    }
    text.push_str(&declared.join("\n\n"));
    // What is written from views has no mistakes; if it had, it would be shown as it is.
    gram::format(&text).unwrap_or(text)
}
