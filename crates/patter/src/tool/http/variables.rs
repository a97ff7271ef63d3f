//! The environment variables of a request, which are secret.

use crate::tool::ToolFailure;
use crate::tool::redact::Redactor;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use indexmap::IndexMap;

/// The values of the environment variables that a request uses, and a redactor for them.
#[derive(Default)]
pub(super) struct RequestVariables {
    values: IndexMap<String, String>,
    pub(super) redactor: Redactor,
}

impl RequestVariables {
    /// Looks up variables. Only the operator learns which ones are missing.
    pub(super) fn look_up<'a>(
        names: impl Iterator<Item = &'a str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ToolFailure> {
        let mut variables = Self::default();
        let mut missing = Vec::new();
        for name in names {
            if variables.values.contains_key(name) || missing.contains(&name) {
                continue;
            }
            match variable(name).filter(|value| !value.is_empty()) {
                Some(value) => {
                    variables.hide(name, &value);
                    variables.values.insert(name.to_owned(), value);
                }
                None => missing.push(name),
            }
        }
        if missing.is_empty() {
            return Ok(variables);
        }
        let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        Err(not_configured().with_detail(format!("{} {verb} not set in the environment", names.join(", "))))
    }

    /// Returns the value of a variable.
    pub(super) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Returns the credentials of `Basic` authentication as they are sent, and hides the password in either form.
    pub(super) fn basic_credentials(&mut self, name: &str, credentials: &str) -> String {
        let is_plain = credentials.contains(':');
        let plain = if is_plain {
            credentials.to_owned()
        } else {
            let decoded = BASE64_STANDARD.decode(credentials).ok();
            decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        };
        if let Some((_, password)) = plain.split_once(':') {
            self.hide(name, &plain);
            self.hide(name, password);
        }
        if is_plain { BASE64_STANDARD.encode(credentials) } else { credentials.to_owned() }
    }

    /// Hides a value in every encoding in which a server may return it.
    fn hide(&mut self, name: &str, value: &str) {
        self.redactor.add_forms(value, &format!("[secret {name}]"));
    }
}

/// Returns the failure of a tool whose settings are missing.
pub(super) fn not_configured() -> ToolFailure {
    ToolFailure::new("this tool is not configured; ask the operator to configure it")
}
