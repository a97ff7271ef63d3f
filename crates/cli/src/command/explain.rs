//! `patter explain`: documents a rule.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::ui;
use clap::Args;
use patter::rule::{self, Rule};
use serde_json::{Value as Json, json};

/// Explain a rule of `patter check`
#[derive(Args)]
#[command(after_help = "Examples:\n  patter explain P020\n  patter explain          list all rules")]
pub(crate) struct Explain {
    /// Code of the rule, such as P020; by default all rules are listed
    code: Option<String>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

impl Command for Explain {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let Some(code) = &self.code else {
            self.list()?;
            return Ok(Outcome::Success);
        };
        let wanted = code.to_ascii_uppercase();
        let Some((page, rule)) = rule::page(&wanted).zip(rule::rule(&wanted)) else {
            let hint = match patter::text::nearest(&wanted, rule::all().map(|rule| rule.code)) {
                Some(near) => format!("did you mean {near}? `patter explain` lists all rules"),
                None => "`patter explain` lists all rules".to_owned(),
            };
            return Err(CommandError::failure(format!("unknown rule `{code}`")).with_hint(hint));
        };
        match self.format.format {
            DataFormat::Text => ui::print(page)?,
            DataFormat::Json => {
                let mut document = rule_json(rule);
                if let Json::Object(fields) = &mut document {
                    fields.insert("page".to_owned(), json!(page));
                }
                ui::print(&format!("{document:#}\n"))?;
            }
        }
        Ok(Outcome::Success)
    }
}

impl Explain {
    fn list(&self) -> std::io::Result<()> {
        match self.format.format {
            DataFormat::Text => {
                let line = |rule: &Rule| format!("{}  {:<8} {}\n", rule.code, rule.level.to_string(), rule.title);
                ui::print(&rule::all().map(line).collect::<String>())
            }
            DataFormat::Json => {
                let rules: Vec<_> = rule::all().map(rule_json).collect();
                ui::print(&format!("{:#}\n", json!({"version": 1, "rules": rules})))
            }
        }
    }
}

fn rule_json(rule: &Rule) -> Json {
    json!({"code": rule.code, "level": rule.level.to_string(), "title": rule.title})
}
