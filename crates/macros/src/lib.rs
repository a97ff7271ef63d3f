//! The macros of Patter. The crate `patter` re-exports and documents them.

mod expand;
mod options;
mod parameter;
mod describe;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Turns a function into a tool. See the documentation of `patter::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expand::expand(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
