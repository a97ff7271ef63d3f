//! From the function to the function and its tool.

use crate::describe::{camel_case, description};
use crate::options::Options;
use crate::parameter::{Parameter, last_segment, unique};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, ItemFn, Result, ReturnType, Safety, Signature, parse_quote};

/// Returns the function as it was written, and a type of the same name, whose `tool` makes the tool. A type and a
/// function may share a name, so both are imported, exported and hidden together.
pub(crate) fn expand(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(options)?;
    let mut function: ItemFn = syn::parse2(function)?;
    let mut errors = Errors::default();
    errors.note(plain(&function.sig));
    let parameters = function.sig.inputs.iter_mut().enumerate();
    let parameters: Vec<_> =
        parameters.filter_map(|(position, argument)| errors.note(Parameter::read(position, argument))).collect();
    errors.note(unique(&parameters));
    if let (Some(option), Some(_)) = (&options.blocking, function.sig.asyncness) {
        let message = "an async function does not block: leave out `async`, or this";
        errors.note::<()>(Err(Error::new_spanned(option, message)));
    }
    let description = description(&function.attrs);
    if description.is_none() {
        let message = "a tool needs a doc comment: it tells the model what the tool does, as in \
                       `/// Returns the population of a city`";
        errors.note::<()>(Err(Error::new_spanned(&function.sig.ident, message)));
    }
    errors.finish()?;

    let conditions: Vec<_> = function.attrs.iter().filter(|one| one.path().is_ident("cfg")).cloned().collect();
    let ident = &function.sig.ident;
    let vis = &function.vis;
    let name = options.name.as_ref().map_or_else(|| camel_case(&ident.to_string()), syn::LitStr::value);
    let declared = parameters.iter().map(Parameter::declare);
    let returns = returns(&function.sig.output);
    let is_quick = options.is_pure && options.blocking.is_none();
    let body = body(&function.sig, &parameters, is_quick);
    let calls = &options.calls;
    let about = format!("The tool `{name}`: see the function of the same name.");
    let about_tool = format!("Returns the tool `{name}`.");
    let source = ident.to_string();
    // Arguments are taken out of JSON, so a tool owns them whether it needs to or not.
    function.attrs.push(parse_quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async, reason = "this is how tools take arguments")]
    });

    Ok(quote! {
        #function

        #(#conditions)*
        #[doc = #about]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #vis enum #ident {}

        #(#conditions)*
        impl #ident {
            #[doc = #about_tool]
            #vis fn tool() -> ::patter::tool::Tool {
                struct Call;

                impl ::patter::tool::Implementation for Call {
                    fn call<'a>(
                        &'a self,
                        arguments: ::patter::__private::Json,
                        context: &'a ::patter::tool::ToolContext,
                    ) -> ::patter::tool::BoxFuture<'a, ::std::result::Result<::patter::__private::Json, ::patter::tool::Failure>>
                    {
                        ::std::boxed::Box::pin(async move {
                            let _ = context;
                            #body
                        })
                    }
                }

                static TOOL: ::std::sync::OnceLock<::patter::tool::Tool> = ::std::sync::OnceLock::new();
                TOOL.get_or_init(|| {
                    let definition = ::patter::__private::definition(
                        #name,
                        #description,
                        |inputs| { let _ = &inputs; #(#declared)* },
                        #returns,
                    );
                    ::patter::tool::Tool::new(definition, ::patter::tool::Kind::Native, Call)
                        #calls
                        .source(::std::concat!(::std::module_path!(), "::", #source))
                })
                .clone()
            }
        }
    })
}

/// Returns an error for what a tool cannot be.
fn plain(signature: &Signature) -> Result<()> {
    let mut errors = Errors::default();
    let mut refuse = |tokens: &dyn ToTokens, message: &str| {
        errors.note::<()>(Err(Error::new_spanned(tokens.to_token_stream(), message)));
    };
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let generics = &signature.generics;
        let where_clause = &generics.where_clause;
        refuse(&quote!(#generics #where_clause), "a tool has one signature, so its function cannot be generic");
    }
    if !matches!(signature.safety, Safety::Default) {
        refuse(&signature.safety, "a model may call a tool in any way, so its function cannot be unsafe");
    }
    if let Some(abi) = &signature.abi {
        refuse(abi, "a tool is a Rust function");
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic, "a tool has one signature");
    }
    errors.finish()
}

/// Returns the function that gives the schema of the result.
fn returns(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(::patter::__private::returns::<()>),
        ReturnType::Type(_, ty) if is_result(output) => {
            quote!(::patter::__private::returns::<<#ty as ::patter::__private::Fallible>::Value>)
        }
        ReturnType::Type(_, ty) => quote!(::patter::__private::returns::<#ty>),
    }
}

fn is_result(output: &ReturnType) -> bool {
    match output {
        ReturnType::Default => false,
        ReturnType::Type(_, ty) => last_segment(ty).is_some_and(|segment| segment.ident == "Result"),
    }
}

/// Returns what a call does. A plain function may block, unless it is quick.
fn body(signature: &Signature, parameters: &[Parameter], is_quick: bool) -> TokenStream {
    let ident = &signature.ident;
    let taken = parameters.iter().map(Parameter::take);
    let passed = parameters.iter().map(Parameter::pass);
    let call = quote!(#ident(#(#passed),*));
    let awaited = match signature.asyncness {
        Some(_) => quote!(#call.await),
        None if is_quick => call,
        None => quote! {{
            let context = ::std::clone::Clone::clone(context);
            ::patter::__private::blocking(move || { let context = &context; let _ = context; #call }).await?
        }},
    };
    let answer = if is_result(&signature.output) { quote!(answer_or_failure) } else { quote!(answer) };
    quote! {
        let mut arguments = ::patter::__private::Arguments::new(arguments);
        let _ = &mut arguments;
        #(#taken)*
        ::patter::__private::#answer(#awaited)
    }
}

/// All that is wrong, to be told at once.
#[derive(Default)]
struct Errors {
    first: Option<Error>,
}

impl Errors {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.first) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(first)) => first.combine(error),
            (Err(error), None) => self.first = Some(error),
        }
        None
    }

    fn finish(self) -> Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}
