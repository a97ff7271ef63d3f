//! The parameters of the function.

use crate::describe::{camel_case, description, text_of};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, Lit, Meta, Pat, PathArguments, PathSegment};
use syn::{PatType, Result, Type};

/// A parameter of the function.
pub(crate) struct Parameter {
    /// The name in the signature, or for messages if the parameter is not part of it.
    pub(crate) name: String,
    /// The variable with the value before the call.
    variable: Ident,
    ty: Type,
    description: Option<String>,
    pub(crate) role: Role,
}

/// The source of a parameter's value.
pub(crate) enum Role {
    /// A required argument.
    Required,
    /// An optional argument. The type is that of the value.
    Optional(Box<Type>),
    /// An argument with a default.
    Default(Box<Expr>),
    /// The context of the call.
    Context,
    /// The shared state.
    Shared,
}

impl Parameter {
    /// Parses a parameter, and removes the attributes of the macro.
    pub(crate) fn parse(position: usize, argument: &mut FnArg) -> Result<Self> {
        let argument = match argument {
            FnArg::Typed(argument) => argument,
            FnArg::Receiver(receiver) => {
                let message =
                    "a tool is a function, not a method: use a parameter of type `Shared<T>` for shared state";
                return Err(Error::new_spanned(receiver, message));
            }
        };
        let attributes = std::mem::take(&mut argument.attrs);
        let (own, others) = attributes.into_iter().partition(|attribute| {
            ["doc", "default", "description"].iter().any(|name| attribute.path().is_ident(name))
        });
        argument.attrs = others;
        let name = name(argument)?;
        let description = parse_description(&own)?;
        let default = parse_default(&own)?;
        let role = role(&argument.ty, default)?;
        let variable = format_ident!("argument_{position}");
        Ok(Self { name, variable, ty: (*argument.ty).clone(), description, role })
    }

    /// Returns whether the parameter is part of the signature.
    pub(crate) fn is_argument(&self) -> bool {
        match self.role {
            Role::Required | Role::Optional(_) | Role::Default(_) => true,
            Role::Context | Role::Shared => false,
        }
    }

    /// Returns the statement that adds the parameter to the signature.
    pub(crate) fn declare(&self) -> TokenStream {
        let Self { name, ty, .. } = self;
        let description = match &self.description {
            Some(text) => quote!(::std::option::Option::Some(#text)),
            None => quote!(::std::option::Option::None),
        };
        match &self.role {
            Role::Required => quote!(inputs.required::<#ty>(#name, #description);),
            Role::Optional(inner) => quote!(inputs.optional::<#inner>(#name, #description);),
            Role::Default(value) => quote!({
                let default: #ty = #value;
                inputs.defaulted::<#ty>(#name, #description, &default);
            }),
            Role::Context | Role::Shared => TokenStream::new(),
        }
    }

    /// Returns the statement that extracts the value from the call.
    pub(crate) fn extract(&self) -> TokenStream {
        let Self { name, ty, variable, .. } = self;
        let value = match &self.role {
            Role::Required => quote!(arguments.required(#name)?),
            Role::Optional(_) => quote!(arguments.optional(#name)?),
            Role::Default(value) => quote!(match arguments.optional(#name)? {
                ::std::option::Option::Some(value) => value,
                ::std::option::Option::None => #value,
            }),
            Role::Shared => quote!(<#ty>::from_context(context)?),
            Role::Context => return TokenStream::new(),
        };
        quote!(let #variable: #ty = #value;)
    }

    /// Returns the expression that passes the value to the function.
    pub(crate) fn pass(&self) -> TokenStream {
        match self.role {
            Role::Context => quote!(context),
            _ => {
                let variable = &self.variable;
                quote!(#variable)
            }
        }
    }
}

fn name(argument: &PatType) -> Result<String> {
    match &*argument.pat {
        Pat::Ident(pattern) if pattern.subpat.is_none() && pattern.by_ref.is_none() => {
            Ok(camel_case(&pattern.ident.to_string()))
        }
        pattern => Err(Error::new_spanned(
            pattern,
            "a tool parameter must be a plain name: destructure it in the function body",
        )),
    }
}

fn parse_description(attributes: &[Attribute]) -> Result<Option<String>> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("description")) {
        Some(attribute) => match text_of(attribute, "description") {
            Some(text) => Ok(Some(text)),
            None => Err(Error::new_spanned(attribute, "use `#[description = \"…\"]`")),
        },
        None => Ok(description(attributes)),
    }
}

/// Parses `#[default = …]`. Text is converted to the type of the parameter.
fn parse_default(attributes: &[Attribute]) -> Result<Option<(Expr, TokenStream)>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("default")) else {
        return Ok(None);
    };
    let Meta::NameValue(meta) = &attribute.meta else {
        return Err(Error::new_spanned(attribute, "use `#[default = …]` with a value of the parameter's type"));
    };
    let attribute = quote!(#attribute);
    Ok(Some(match &meta.value {
        text @ Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => {
            (syn::parse_quote!(::std::convert::Into::into(#text)), attribute)
        }
        value => (value.clone(), attribute),
    }))
}

fn role(ty: &Type, default: Option<(Expr, TokenStream)>) -> Result<Role> {
    let role = match ty {
        Type::Reference(reference) => match last_segment(&reference.elem) {
            Some(segment) if segment.ident == "ToolContext" && reference.mutability.is_none() => Role::Context,
            Some(segment) if segment.ident == "str" => {
                return Err(Error::new_spanned(ty, "tool arguments are passed by value: use `String`"));
            }
            _ => {
                let message = "tool arguments are passed by value: only the context is a reference, `&ToolContext`";
                return Err(Error::new_spanned(ty, message));
            }
        },
        Type::ImplTrait(_) => {
            return Err(Error::new_spanned(ty, "tool parameters need concrete types, not `impl Trait`"));
        }
        _ => match last_segment(ty) {
            Some(segment) if segment.ident == "Shared" => Role::Shared,
            Some(segment) if segment.ident == "ToolContext" => {
                return Err(Error::new_spanned(ty, "the context is passed by reference: use `&ToolContext`"));
            }
            Some(segment) if segment.ident == "Option" => match inner(segment) {
                Some(inner) => Role::Optional(Box::new(inner.clone())),
                None => Role::Required,
            },
            _ => Role::Required,
        },
    };
    match (role, default) {
        (role, None) => Ok(role),
        (Role::Required, Some((value, _))) => Ok(Role::Default(Box::new(value))),
        (Role::Optional(_), Some((_, attribute))) => Err(Error::new_spanned(
            attribute,
            "a parameter with a default is never missing: use the type without `Option`",
        )),
        (_, Some((_, attribute))) => {
            Err(Error::new_spanned(attribute, "a parameter that is not part of the signature has no default"))
        }
    }
}

/// Returns the last segment of a path, such as `Option<T>` of `std::option::Option<T>`.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

fn inner(segment: &PathSegment) -> Option<&Type> {
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }),
        _ => None,
    }
}

/// Returns an error if two parameters have the same name.
pub(crate) fn check_unique(parameters: &[Parameter]) -> Result<()> {
    let arguments: Vec<_> = parameters.iter().filter(|parameter| parameter.is_argument()).collect();
    for (position, parameter) in arguments.iter().enumerate() {
        if arguments.iter().take(position).any(|other| other.name == parameter.name) {
            let message = format!("two parameters are named `{}` in the signature", parameter.name);
            return Err(Error::new(parameter.ty.span(), message));
        }
    }
    Ok(())
}
