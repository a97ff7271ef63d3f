//! Macros of Patter, beside the crate `patter`, which re-exports them and documents them.

mod describe;
mod expand;
mod options;
mod parameter;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes a tool of a function. `patter::tool` documents it.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
