//! The options of `#[tool(…)]`.

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
    /// Whether the effect is `pure`, so that a call may run on the current thread.
    pub(crate) is_pure: bool,
    /// The option `blocking`, if it is given.
    pub(crate) blocking: Option<Path>,
    /// Method calls on `Tool` that apply the options.
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
                return Err(meta.error(format!("`{name}` is given twice")));
            }
            options.parse_option(&name, &meta)
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    fn parse_option(&mut self, name: &str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let call = match name {
            "name" => {
                let name: LitStr = meta.value()?.parse()?;
                if !is_tool_name(&name.value()) {
                    let message = "a tool name starts with a letter and contains only letters, digits, `_` and `-`";
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
                            "unknown effect `{other}`: use \"pure\" for a tool that only computes, \"reads\", \
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
                let Some(nanoseconds) = nanoseconds(&text.value()) else {
                    let message = "invalid duration: use a positive number with a unit, such as \"500ms\", \"10s\", \
                                   \"2m\" or \"1h\"";
                    return Err(syn::Error::new(text.span(), message));
                };
                quote!(.timeout(::std::time::Duration::from_nanos(#nanoseconds)))
            }
            "concurrency" => {
                let number: LitInt = meta.value()?.parse()?;
                match number.base10_parse::<usize>()? {
                    0 => return Err(syn::Error::new(number.span(), "`concurrency` must be at least 1")),
                    calls => quote!(.concurrency(#calls)),
                }
            }
            other => return Err(meta.error(format!("unknown option `{other}`; available options: {KNOWN}"))),
        };
        self.calls.extend(call);
        Ok(())
    }
}

fn is_tool_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Parses a duration in the forms that `patter_core::text::parse_duration` accepts: a number with a unit, or of seconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(number)? {
        "ms" => 1_000_000,
        "s" | "" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_decimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_decimal(whole) || !is_decimal(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    let mut nanoseconds = whole.checked_mul(unit)?;
    let mut place = unit;
    for digit in fraction.chars().filter_map(|digit| digit.to_digit(10)) {
        place /= 10;
        nanoseconds = nanoseconds.checked_add(place.checked_mul(digit.into())?)?;
    }
    (nanoseconds > 0).then_some(nanoseconds)
}
