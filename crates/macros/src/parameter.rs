//! The parameters of the function.

use crate::describe::{camel_case, description, text_of};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, Lit, Meta, Pat, PathArguments, PathSegment};
use syn::{PatType, Result, Type};

/// A parameter of the function.
pub(crate) struct Parameter {
    /// The name in the signature; for messages if it is not part of it.
    pub(crate) name: String,
    /// The variable that holds the value before the call.
    variable: Ident,
    ty: Type,
    description: Option<String>,
    pub(crate) role: Role,
}

/// Where the value of a parameter comes from.
pub(crate) enum Role {
    /// The arguments, where it must be.
    Required,
    /// The arguments, where it may be. The type is that of the value.
    Optional(Box<Type>),
    /// The arguments, or this expression.
    Default(Box<Expr>),
    /// It is the context of the call.
    Context,
    /// The state that tools share.
    Shared,
}

impl Parameter {
    /// Reads a parameter, and takes out the attributes that only the macro knows.
    pub(crate) fn read(position: usize, argument: &mut FnArg) -> Result<Self> {
        let argument = match argument {
            FnArg::Typed(argument) => argument,
            FnArg::Receiver(receiver) => {
                let message =
                    "a tool is a function, not a method: take shared state as a parameter of type `Shared<T>`";
                return Err(Error::new_spanned(receiver, message));
            }
        };
        let attributes = std::mem::take(&mut argument.attrs);
        let (ours, others) = attributes.into_iter().partition(|attribute| {
            ["doc", "default", "description"].iter().any(|name| attribute.path().is_ident(name))
        });
        argument.attrs = others;
        let name = name(argument)?;
        let description = described(&ours)?;
        let default = default(&ours)?;
        let role = role(&argument.ty, default)?;
        let variable = format_ident!("argument_{position}");
        Ok(Self { name, variable, ty: (*argument.ty).clone(), description, role })
    }

    /// Tells whether the parameter is part of the signature.
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

    /// Returns the statement that takes the value out of the call.
    pub(crate) fn take(&self) -> TokenStream {
        let Self { name, ty, variable, .. } = self;
        let value = match &self.role {
            Role::Required => quote!(arguments.required(#name)?),
            Role::Optional(_) => quote!(arguments.optional(#name)?),
            Role::Default(value) => quote!(match arguments.optional(#name)? {
                ::std::option::Option::Some(value) => value,
                ::std::option::Option::None => #value,
            }),
            Role::Shared => quote!(<#ty>::of(context)?),
            Role::Context => return TokenStream::new(),
        };
        quote!(let #variable: #ty = #value;)
    }

    /// Returns what stands for the parameter in the call of the function.
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
        pattern => {
            Err(Error::new_spanned(pattern, "a parameter of a tool needs a name: take it apart inside of the function"))
        }
    }
}

fn described(attributes: &[Attribute]) -> Result<Option<String>> {
    match attributes.iter().find(|attribute| attribute.path().is_ident("description")) {
        Some(attribute) => match text_of(attribute, "description") {
            Some(text) => Ok(Some(text)),
            None => Err(Error::new_spanned(attribute, "write `#[description = \"…\"]`")),
        },
        None => Ok(description(attributes)),
    }
}

/// Reads `#[default = …]`. Text becomes whatever type can be made from it.
fn default(attributes: &[Attribute]) -> Result<Option<(Expr, TokenStream)>> {
    let Some(attribute) = attributes.iter().find(|attribute| attribute.path().is_ident("default")) else {
        return Ok(None);
    };
    let Meta::NameValue(meta) = &attribute.meta else {
        return Err(Error::new_spanned(attribute, "write `#[default = …]`, with a value of the parameter's type"));
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
                return Err(Error::new_spanned(ty, "a tool takes its arguments by value: write `String`"));
            }
            _ => {
                let message = "a tool takes its arguments by value; only the context is a reference, `&ToolContext`";
                return Err(Error::new_spanned(ty, message));
            }
        },
        Type::ImplTrait(_) => return Err(Error::new_spanned(ty, "a tool takes values of types that are known")),
        _ => match last_segment(ty) {
            Some(segment) if segment.ident == "Shared" => Role::Shared,
            Some(segment) if segment.ident == "ToolContext" => {
                return Err(Error::new_spanned(ty, "the context is taken by reference: write `&ToolContext`"));
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
        (Role::Optional(_), Some((_, attribute))) => {
            Err(Error::new_spanned(attribute, "what has a default is always there: write the type without `Option`"))
        }
        (_, Some((_, attribute))) => {
            Err(Error::new_spanned(attribute, "what is not part of the signature has no default"))
        }
    }
}

/// Returns the last part of a path, such as `Option<T>` of `std::option::Option<T>`.
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

/// Returns an error for a name that is there twice.
pub(crate) fn unique(parameters: &[Parameter]) -> Result<()> {
    let arguments: Vec<_> = parameters.iter().filter(|parameter| parameter.is_argument()).collect();
    for (position, parameter) in arguments.iter().enumerate() {
        if arguments.iter().take(position).any(|other| other.name == parameter.name) {
            let message = format!("two parameters are called `{}` in the signature", parameter.name);
            return Err(Error::new(parameter.ty.span(), message));
        }
    }
    Ok(())
}
