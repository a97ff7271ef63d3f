//! Checks of tools and toolboxes.

use super::{Checker, describe_declaration};
use crate::declare::project::File;
use crate::declare::property::ValueKind;
use crate::declare::{DeclarationKind, HttpSpec, command, head_span};
use crate::name::{FullName, FullNameError, WireName, check_parameter_name};
use crate::provider::Provider;
use crate::rule;
use crate::text::with_article;
use crate::types::signature::{Field, Presence, Signature, TypeReader};
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, Syntax};
use std::collections::HashMap;

/// The properties of a declared tool.
const PROPERTIES: &[(&str, ValueKind)] =
    &[("description", ValueKind::String), ("exact", ValueKind::Boolean), ("idempotent", ValueKind::Boolean)];

impl<'p> Checker<'p> {
    pub(super) fn check_tool(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "tool");
        self.check_wire_name(pattern, "");
        self.check_required_text(pattern, "tool", "description");
        self.check_properties(pattern, "tool", PROPERTIES);
        self.check_signature(pattern);
        if pattern.has_label("ToolSpecification") {
            let found = rule::DEPRECATED_LABEL.at(head_span(pattern), "`ToolSpecification` is deprecated");
            self.report(found.with_hint("use the label `Tool`"));
        }
    }

    /// Checks a tool with an implementation.
    pub(super) fn check_implementation(&mut self, pattern: Pattern<'p>, namespace: &str) {
        self.check_name(pattern, "tool");
        self.check_wire_name(pattern, namespace);
        self.check_sealed(pattern, namespace);
        self.check_required_text(pattern, "tool", "description");
        self.check_signature(pattern);
        if self.is_broken(pattern.span()) {
            return;
        }
        // The implementation is checked against the signature.
        let path = pattern.elements().next();
        let signature = path.and_then(|path| self.known_signature(self.file, path));
        let found = match signature {
            Some(signature) if pattern.has_label("Http") => match HttpSpec::read(pattern, signature) {
                Ok(request) => {
                    self.check_keys(pattern, &request);
                    Vec::new()
                }
                Err(found) => found,
            },
            signature if pattern.has_label("Command") => command::read(pattern, signature).1,
            _ => Vec::new(),
        };
        found.into_iter().for_each(|found| self.report(found));
    }

    pub(super) fn check_toolbox(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "toolbox");
        let namespace = pattern.name().unwrap_or_default().into_owned();
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            if !matches!(
                DeclarationKind::from_pattern(element),
                Some(DeclarationKind::Tool | DeclarationKind::Implementation)
            ) {
                let found = rule::MISPLACED.at(head_span(element), "a toolbox can contain only tools");
                self.report(found.with_hint("write `[name:Http {…} | …]` or `[name:Command {…} | …]`"));
                continue;
            }
            self.check_implementation(element, &namespace);
            if DeclarationKind::from_pattern(element) == Some(DeclarationKind::Tool) {
                let tool = describe_declaration("tool", element);
                let found = rule::NO_IMPLEMENTATION.at(head_span(element), format!("{tool} has no implementation"));
                self.report(found.with_hint(
                    "declare how it works with the label `Http` or `Command`, or move it out of the toolbox",
                ));
            }
            let Some(name) = element.name() else { continue };
            if let Some(first) = names.insert(name.into_owned(), element) {
                let span = element.identifier().map_or(element.span(), Syntax::span);
                let first = first.identifier().map_or(first.span(), Syntax::span);
                let message =
                    format!("the toolbox `{namespace}` has two tools named `{}`", element.name().unwrap_or_default());
                let found = rule::DUPLICATE_TOOL.at(span, message).with_related(first, "first declared here");
                self.report(found.with_hint("rename or remove one of them"));
            }
        }
    }

    /// Reports a tool that would override a sealed one.
    fn check_sealed(&mut self, pattern: Pattern<'p>, namespace: &str) {
        let Some(identifier) = pattern.identifier() else { return };
        let Ok(full) = FullName::join(namespace, &identifier.unquoted()) else { return };
        if self.library.is_sealed(full.as_str()) {
            let message = format!("`{full}` overrides a sealed tool, so no tool of the project can be used");
            let found = rule::SEALED_OVERRIDE.at(identifier.span(), message);
            self.report(found.with_hint("rename the tool"));
            return;
        }
        let own = full.tool_name();
        let sealed = self.options.sealed.iter().find(|sealed| sealed.rsplit('/').next() == Some(own));
        if let Some(sealed) = sealed {
            let message = format!("the name `{own}` refers to the sealed tool `{sealed}`, not to this one");
            let found = rule::HIDDEN_BY_SEALED.at(identifier.span(), message);
            let hint = if namespace.is_empty() {
                "rename it".to_owned()
            } else {
                format!("use its full name `{full}`, or rename it")
            };
            self.report(found.with_hint(hint));
        }
    }

    /// Reports a request that sends the key of a provider of models to another server.
    fn check_keys(&mut self, pattern: Pattern<'p>, request: &HttpSpec) {
        let origin = &request.url.origin;
        // The server that a variable names is the choice of whoever sets it.
        if origin.variables().next().is_some() {
            return;
        }
        let address = origin.to_string();
        let variables = request.variables().into_iter();
        let found = variables.filter_map(|name| Some((name, Provider::with_key_variable(name)?)));
        if let Some((name, provider)) = found.into_iter().find(|(_, provider)| !provider.is_at(&address)) {
            let message = format!("`{name}` is the key of {}, but the request goes to `{address}`", provider.name());
            let found = rule::FOREIGN_KEY.at(head_span(pattern), message);
            self.report(found.with_hint("use another variable for the key of this server"));
        }
    }

    pub(super) fn check_wire_name(&mut self, pattern: Pattern<'p>, namespace: &str) {
        let Some(identifier) = pattern.identifier() else { return };
        let name = identifier.unquoted();
        let full = if namespace.is_empty() { name.into_owned() } else { format!("{namespace}/{name}") };
        if let Err(error @ (FullNameError::TooManyParts | FullNameError::EmptyPart)) = FullName::parse(&full) {
            let found = rule::BAD_FULL_NAME.at(identifier.span(), format!("`{full}`: {error}"));
            self.report(found.with_hint("write `tool`, `toolbox/tool` or `organisation/toolbox/tool`"));
        } else if let Err(error) = WireName::from_full_name(&full) {
            let found = rule::BAD_WIRE_NAME.at(identifier.span(), error.to_string());
            let near = WireName::suggest(&identifier.unquoted());
            self.report(found.with_hint(match near.filter(|_| namespace.is_empty()) {
                Some(near) => format!("rename it, for example to `{near}`"),
                None => "rename it".to_owned(),
            }));
        }
    }

    /// Checks that there is exactly one signature, and that it is valid.
    fn check_signature(&mut self, pattern: Pattern<'p>) {
        let is_broken = self.is_broken(pattern.span());
        let mut elements = pattern.elements();
        let Some(first) = elements.next() else {
            if !is_broken {
                self.report(crate::declare::no_signature(head_span(pattern)));
            }
            return;
        };
        // A signature with a syntax error may be incomplete.
        if is_broken && first.kind() != PatternKind::Path {
            return;
        }
        for extra in elements.filter(|_| !is_broken) {
            let found = rule::SEVERAL_SIGNATURES.at(extra.span(), "a tool can have only one signature");
            let found = found.with_related(first.span(), "the first signature");
            self.report(found.with_hint("connect all parameters with arrows: `(a::Text)==>(b::Int)==>(::Text)`"));
        }
        self.read_signature(first);
    }

    /// Reads a signature, and reports everything that is wrong with it.
    fn read_signature(&mut self, path: Pattern<'p>) {
        let records = self.project.records();
        let is_record = |name: &str| records.get(name).is_some();
        let mut reader = TypeReader::new(&is_record);
        let signature = reader.signature(path);
        let is_valid = !reader.diagnostics.iter().any(Diagnostic::is_error);
        for diagnostic in reader.diagnostics {
            self.report(diagnostic);
        }
        if let Some(signature) = signature.filter(|_| is_valid) {
            self.check_parameter_names(path, &signature.parameters);
            self.check_record_defaults(path, &signature.parameters);
            self.check_parameter_descriptions(path, &signature.parameters);
            self.signatures.entry(self.file).or_default().insert(path.syntax().id(), signature);
        }
    }

    /// Returns a valid signature that was read already.
    pub(super) fn known_signature(&self, file: usize, path: Pattern<'p>) -> Option<&Signature> {
        self.signatures.get(&file)?.get(&path.syntax().id())
    }

    /// Reports parameters with names that providers do not accept.
    fn check_parameter_names(&mut self, path: Pattern<'p>, parameters: &[Field]) {
        for parameter in parameters {
            let Err(error) = check_parameter_name(&parameter.name) else { continue };
            let node = find_node(path, &parameter.name);
            let name = node.and_then(|node| node.identifier().or_else(|| node.get("paramName")));
            let found = rule::BAD_PARAMETER_NAME.at(name.map_or(path.span(), Syntax::span), error.to_string());
            self.report(found.with_hint(match WireName::suggest(&parameter.name) {
                Some(near) => format!("rename it, for example to `{near}`"),
                None => "rename it".to_owned(),
            }));
        }
    }

    /// Reports parameters without a description, if such lints are wanted.
    fn check_parameter_descriptions(&mut self, path: Pattern<'p>, parameters: &[Field]) {
        let is_undescribed =
            |parameter: &&Field| parameter.ty.facets.description.as_ref().is_none_or(|text| text.trim().is_empty());
        let mut undescribed = parameters.iter().filter(|_| self.options.pedantic).filter(is_undescribed);
        let span = |name: &str| find_node(path, name).map_or(path.span(), Pattern::span);
        let Some(first) = undescribed.next() else { return };
        let message = format!("the parameter `{}` has no description", first.name);
        let found = rule::UNDESCRIBED_PARAMETER.at(span(&first.name), message);
        let found = undescribed.fold(found, |found, other| found.with_related(span(&other.name), "nor does this one"));
        self.report(found.with_hint("say what to pass: `(name::Text {description: \"…\"})`"));
    }

    /// Reports defaults that do not match their record type, now that all record types are known.
    pub(super) fn check_record_defaults(&mut self, pattern: Pattern<'p>, fields: &[Field]) {
        for field in fields.iter().filter(|field| field.ty.mentions_record()) {
            let Presence::Default(default) = &field.presence else { continue };
            let Err(mismatches) = field.ty.check(default, self.project.records()) else { continue };
            let reason = mismatches.first().map_or_else(String::new, ToString::to_string);
            let node = find_node(pattern, &field.name).unwrap_or(pattern);
            let span = node.get("default").map_or(node.span(), Syntax::span);
            let found = rule::BAD_DEFAULT.at(span, format!("the default does not match its type: {reason}"));
            self.report(found.with_hint("change the default or the type"));
        }
    }

    /// Collects the parameters of the tools in the current file.
    pub(super) fn collect_parameters(&mut self, source: &'p File) {
        let Some(known) = self.signatures.get(&self.file) else { return };
        let is_tool = |pattern: &Pattern<'p>| DeclarationKind::from_pattern(*pattern) == Some(DeclarationKind::Tool);
        for tool in source.tree.walk().filter(is_tool) {
            let Some(path) = tool.elements().next().filter(|path| path.kind() == PatternKind::Path) else { continue };
            let Some(signature) = known.get(&path.syntax().id()) else { continue };
            self.parameters.extend(signature.parameters.iter().map(|parameter| ParameterUse {
                name: parameter.name.clone(),
                ty: parameter.ty.to_string(),
                file: self.file,
                path,
            }));
        }
    }

    /// Reports parameters that have the same name but different types across the project.
    pub(super) fn check_parameter_types(&mut self) {
        let parameters = std::mem::take(&mut self.parameters);
        let mut first: HashMap<&str, &ParameterUse<'p>> = HashMap::new();
        for parameter in &parameters {
            let ParameterUse { name, ty, file, .. } = parameter;
            let earlier = *first.entry(name).or_insert(parameter);
            if earlier.ty != *ty {
                let location = self.project.location(earlier.file, earlier.span());
                let here = with_article(ty);
                let there = with_article(&earlier.ty);
                let message = format!("`{name}` is {here} here, but {there} in {location}");
                let found = rule::INCONSISTENT_TYPE.at(parameter.span(), message);
                self.file = *file;
                self.report(
                    found.with_hint("models work better if a name always has the same meaning; rename one of them"),
                );
            }
        }
    }
}

/// A parameter of a tool.
#[derive(Clone)]
pub(super) struct ParameterUse<'p> {
    name: String,
    ty: String,
    file: usize,
    path: Pattern<'p>,
}

impl ParameterUse<'_> {
    fn span(&self) -> Span {
        find_node(self.path, &self.name).map_or(self.path.span(), Pattern::span)
    }
}

/// Returns the node with a name, which may be in `paramName`.
fn find_node<'p>(path: Pattern<'p>, name: &str) -> Option<Pattern<'p>> {
    let name_of = |node: Pattern<'p>| node.name().or_else(|| node.get("paramName")?.read_text());
    path.elements().find(|node| name_of(*node).as_deref() == Some(name))
}
