//! Expansion of a function to the function and its tool.

use crate::describe::{camel_case, description};
use crate::options::Options;
use crate::parameter::{Parameter, check_unique, last_segment};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, ItemFn, Result, ReturnType, Safety, Signature, parse_quote};

/// Returns the unchanged function, and a type of the same name with a method `tool`. A type and a function may share a
/// name, so one `use` imports both.
pub(crate) fn expand(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(options)?;
    let mut function: ItemFn = syn::parse2(function)?;
    let mut errors = Errors::default();
    errors.collect(check_signature(&function.sig));
    let parameters = function.sig.inputs.iter_mut().enumerate();
    let parameters: Vec<_> =
        parameters.filter_map(|(position, argument)| errors.collect(Parameter::parse(position, argument))).collect();
    errors.collect(check_unique(&parameters));
    if let (Some(option), Some(_)) = (&options.blocking, function.sig.asyncness) {
        let message = "an async function must not block: remove `async` or `blocking`";
        errors.collect::<()>(Err(Error::new_spanned(option, message)));
    }
    let description = description(&function.attrs);
    if description.is_none() {
        let message = "a tool needs a doc comment that describes it to the model, such as \
                       `/// Returns the population of a city`";
        errors.collect::<()>(Err(Error::new_spanned(&function.sig.ident, message)));
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
    let type_doc = format!("The tool `{name}`: see the function of the same name.");
    let method_doc = format!("Returns the tool `{name}`.");
    let source = ident.to_string();
    // Arguments are deserialised from JSON, so a tool owns them even if it does not need to.
    function.attrs.push(parse_quote! {
        #[allow(clippy::needless_pass_by_value, clippy::unused_async, reason = "tools own their arguments")]
    });

    Ok(quote! {
        #function

        #(#conditions)*
        #[doc = #type_doc]
        #[allow(non_camel_case_types, reason = "named after the function")]
        #vis enum #ident {}

        #(#conditions)*
        impl #ident {
            #[doc = #method_doc]
            #vis fn tool() -> ::patter::tool::Tool {
                struct Function;

                impl ::patter::tool::Implementation for Function {
                    fn call<'a>(
                        &'a self,
                        arguments: ::patter::__private::Json,
                        context: &'a ::patter::tool::ToolContext,
                    ) -> ::patter::tool::BoxFuture<'a, ::std::result::Result<::patter::__private::Json, ::patter::tool::ToolFailure>>
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
                    ::patter::tool::Tool::new(definition, ::patter::tool::ToolKind::Native, Function)
                        #calls
                        .source(::std::concat!(::std::module_path!(), "::", #source))
                })
                .clone()
            }
        }
    })
}

/// Returns an error for each property that a tool function cannot have.
fn check_signature(signature: &Signature) -> Result<()> {
    let mut errors = Errors::default();
    let mut refuse = |tokens: &dyn ToTokens, message: &str| {
        errors.collect::<()>(Err(Error::new_spanned(tokens.to_token_stream(), message)));
    };
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let generics = &signature.generics;
        let where_clause = &generics.where_clause;
        refuse(&quote!(#generics #where_clause), "a tool has one signature, so its function cannot be generic");
    }
    if !matches!(signature.safety, Safety::Default) {
        refuse(&signature.safety, "models may call a tool with any arguments, so its function cannot be unsafe");
    }
    if let Some(abi) = &signature.abi {
        refuse(abi, "the function of a tool must have the Rust ABI");
    }
    if let Some(variadic) = &signature.variadic {
        refuse(variadic, "a tool has one signature, so its function cannot be variadic");
    }
    errors.finish()
}

/// Returns the path of the function that returns the schema of the result.
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

/// Returns the body of a call. A function that is not async may block, unless it is quick.
fn body(signature: &Signature, parameters: &[Parameter], is_quick: bool) -> TokenStream {
    let ident = &signature.ident;
    let extracted = parameters.iter().map(Parameter::extract);
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
        #(#extracted)*
        ::patter::__private::#answer(#awaited)
    }
}

/// Collects errors, to report all of them at once.
#[derive(Default)]
struct Errors {
    first: Option<Error>,
}

impl Errors {
    fn collect<T>(&mut self, result: Result<T>) -> Option<T> {
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
