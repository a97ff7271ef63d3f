//! `patter explain`: says more about a rule.

use crate::{Outcome, diagnostics, print};
use clap::Args;
use patter::rule;
use std::io;

/// Explain a rule of `patter check`, by its code
#[derive(Args)]
#[command(after_help = "Examples:\n  patter explain P020\n  patter explain          lists all rules")]
pub(crate) struct Explain {
    /// The code, such as P020; without one all rules are listed
    code: Option<String>,
}

impl Explain {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(code) = self.code else {
            let lines =
                rule::all().map(|rule| format!("{}  {:<8} {}\n", rule.code, rule.level.to_string(), rule.title));
            print(&lines.collect::<String>())?;
            return Ok(Outcome::Success);
        };
        let wanted = code.to_ascii_uppercase();
        if let Some(page) = rule::page(&wanted) {
            print(page)?;
            return Ok(Outcome::Success);
        }
        let near = patter::text::nearest(&wanted, rule::all().map(|rule| rule.code));
        let hint = match near {
            Some(near) => format!("did you mean {near}? `patter explain` lists all rules"),
            None => "`patter explain` lists all rules".to_owned(),
        };
        diagnostics::error(&format!("there is no rule `{code}`"), Some(&hint))?;
        Ok(Outcome::Failure)
    }
}
