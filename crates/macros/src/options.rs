//! What is said in the parentheses of `#[tool(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use std::collections::HashSet;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{LitInt, LitStr, Path, Result};

/// The options of a tool.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    /// Whether it is said that a call only computes, so that it may run where it is called.
    pub(crate) is_pure: bool,
    /// Whether it is said that a call may take long all the same.
    pub(crate) blocking: Option<Path>,
    /// Calls of the methods of `Tool`.
    pub(crate) calls: TokenStream,
}

const KNOWN: &str = "`name`, `effect`, `idempotent`, `timeout`, `concurrency`, `sealed` and `blocking`";

impl Options {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Options::default();
        let mut seen = HashSet::new();
        let parser = syn::meta::parser(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if !seen.insert(name.clone()) {
                return Err(meta.error(format!("`{name}` is said twice")));
            }
            options.read(&name, &meta)
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn read(&mut self, name: &str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let call = match name {
            "name" => {
                let name: LitStr = meta.value()?.parse()?;
                if !is_tool_name(&name.value()) {
                    let message = "a tool's name begins with a letter and goes on with letters, digits, `_` and `-`";
                    return Err(syn::Error::new(name.span(), message));
                }
                self.name = Some(name);
                return Ok(());
            }
            "effect" => {
                let effect: LitStr = meta.value()?.parse()?;
                let variant = match effect.value().as_str() {
                    "pure" => quote!(Pure),
                    "reads" => quote!(Reads),
                    "network" => quote!(Network),
                    "writes" => quote!(Writes),
                    other => {
                        let message = format!(
                            "`{other}` is not an effect: write \"pure\" for a tool that only computes, \"reads\", \
                             \"network\", or \"writes\" for one that changes something"
                        );
                        return Err(syn::Error::new(effect.span(), message));
                    }
                };
                self.is_pure = effect.value() == "pure";
                quote!(.effect(::patter::tool::Effect::#variant))
            }
            "blocking" => {
                self.blocking = Some(meta.path.clone());
                return Ok(());
            }
            "idempotent" => quote!(.idempotent(true)),
            "sealed" => quote!(.sealed()),
            "timeout" => {
                let text: LitStr = meta.value()?.parse()?;
                let Some(milliseconds) = milliseconds(&text.value()) else {
                    let message = "a time limit is a whole number with a unit: \"500ms\", \"10s\", \"2m\" or \"1h\"";
                    return Err(syn::Error::new(text.span(), message));
                };
                quote!(.timeout(::std::time::Duration::from_millis(#milliseconds)))
            }
            "concurrency" => {
                let number: LitInt = meta.value()?.parse()?;
                match number.base10_parse::<usize>()? {
                    0 => return Err(syn::Error::new(number.span(), "at least one call must be able to run")),
                    calls => quote!(.concurrency(#calls)),
                }
            }
            other => return Err(meta.error(format!("`{other}` is not an option of a tool; there are {KNOWN}"))),
        };
        self.calls.extend(call);
        Ok(())
    }
}

fn is_tool_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits)? {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|time| *time > 0)
}
