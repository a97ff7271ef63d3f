//! Tools and toolboxes.

use super::{Checker, Takes};
use crate::declare::head_span;
use crate::declare::{Declares, HttpSpec, command};
use crate::name::WireName;
use crate::rule;
use crate::text::with_article;
use crate::types::signature::{Field, Presence, Reader};
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, Syntax};
use std::collections::HashMap;

/// The properties of a declared tool.
const PROPERTIES: &[(&str, Takes)] =
    &[("description", Takes::Text), ("exact", Takes::Boolean), ("idempotent", Takes::Boolean)];

impl<'p> Checker<'p> {
    pub(super) fn tool(&mut self, pattern: Pattern<'p>) {
        self.name(pattern, "tool");
        self.wire_name(pattern, "");
        self.required_text(pattern, "tool", "description");
        self.properties(pattern, "tool", PROPERTIES);
        self.signature(pattern);
        if pattern.has_label("ToolSpecification") {
            let found = rule::OLD_LABEL.at(head_span(pattern), "`ToolSpecification` is the old label of a tool");
            self.report(found.with_hint("write `Tool`"));
        }
    }

    /// Checks a tool that says how it works.
    pub(super) fn implementation(&mut self, pattern: Pattern<'p>, namespace: &str) {
        self.name(pattern, "tool");
        self.wire_name(pattern, namespace);
        self.required_text(pattern, "tool", "description");
        self.signature(pattern);
        if self.is_broken(pattern.span()) {
            return;
        }
        // What it says is read against its signature.
        let path = pattern.elements().next();
        let signature = path.and_then(|path| self.signatures.get(&(self.file, path.syntax().id())));
        let found = match signature {
            Some(signature) if pattern.has_label("Http") => {
                HttpSpec::read(pattern, signature).err().unwrap_or_default()
            }
            signature if pattern.has_label("Command") => command::read(pattern, signature).1,
            _ => Vec::new(),
        };
        found.into_iter().for_each(|found| self.report(found));
    }

    pub(super) fn toolbox(&mut self, pattern: Pattern<'p>) {
        self.name(pattern, "toolbox");
        let namespace = pattern.name().unwrap_or_default().into_owned();
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            if !matches!(Declares::of(element), Some(Declares::Tool | Declares::Implementation)) {
                let found = rule::MISPLACED.at(head_span(element), "the elements of a toolbox are tools");
                self.report(found.with_hint("write `[name:Http {…} | …]` or `[name:Command {…} | …]`"));
                continue;
            }
            self.implementation(element, &namespace);
            let Some(name) = element.name() else { continue };
            if let Some(first) = names.insert(name.into_owned(), element) {
                let span = element.identifier().map_or(element.span(), Syntax::span);
                let first = first.identifier().map_or(first.span(), Syntax::span);
                let message =
                    format!("the toolbox `{namespace}` has two tools `{}`", element.name().unwrap_or_default());
                let found = rule::DUPLICATE_TOOL.at(span, message).with_related(first, "the first one");
                self.report(found.with_hint("rename one of the two, or remove it"));
            }
        }
    }

    pub(super) fn wire_name(&mut self, pattern: Pattern<'p>, namespace: &str) {
        let Some(identifier) = pattern.identifier() else { return };
        let name = identifier.unquoted();
        let full = if namespace.is_empty() { name.into_owned() } else { format!("{namespace}/{name}") };
        if let Err(error) = WireName::of(&full) {
            let found = rule::NOT_ON_WIRE.at(identifier.span(), error.to_string());
            let near = WireName::near(&identifier.unquoted());
            self.report(found.with_hint(match near.filter(|_| namespace.is_empty()) {
                Some(near) => format!("rename it, for example to `{near}`"),
                None => "rename it".to_owned(),
            }));
        }
    }

    /// Checks the signature, and that there is exactly one.
    fn signature(&mut self, pattern: Pattern<'p>) {
        let is_broken = self.is_broken(pattern.span());
        let mut elements = pattern.elements();
        let Some(first) = elements.next() else {
            if !is_broken {
                self.report(crate::declare::no_signature(head_span(pattern)));
            }
            return;
        };
        // What is left of a signature that cannot be read says little.
        if is_broken && first.kind() != PatternKind::Path {
            return;
        }
        for extra in elements.filter(|_| !is_broken) {
            let found = rule::SEVERAL_SIGNATURES.at(extra.span(), "a tool has only one signature");
            let found = found.with_related(first.span(), "its signature");
            self.report(found.with_hint("join all parameters by arrows: `(a::Text)==>(b::Int)==>(::Text)`"));
        }
        self.read_signature(first);
    }

    /// Reads a signature and reports what is wrong with it.
    fn read_signature(&mut self, path: Pattern<'p>) {
        let records = self.project.records();
        let is_record = |name: &str| records.get(name).is_some();
        let mut reader = Reader::new(&is_record);
        let signature = reader.signature(path);
        let is_right = !reader.diagnostics.iter().any(Diagnostic::is_error);
        for diagnostic in reader.diagnostics {
            self.report(diagnostic);
        }
        if let Some(signature) = signature.filter(|_| is_right) {
            self.record_defaults(path, &signature.parameters);
            self.signatures.insert((self.file, path.syntax().id()), signature);
        }
    }

    /// Reports defaults that a record type does not allow, now that all record types are known.
    pub(super) fn record_defaults(&mut self, pattern: Pattern<'p>, fields: &[Field]) {
        for field in fields.iter().filter(|field| field.ty.mentions_record()) {
            let Presence::Default(default) = &field.presence else { continue };
            let Err(mismatches) = field.ty.check(default, self.project.records()) else { continue };
            let reason = mismatches.first().map_or_else(String::new, ToString::to_string);
            let node = named(pattern, &field.name).unwrap_or(pattern);
            let span = node.get("default").map_or(node.span(), Syntax::span);
            let found = rule::BAD_DEFAULT.at(span, format!("this default does not fit its type: {reason}"));
            self.report(found.with_hint("change the default, or the type"));
        }
    }

    /// Reports parameters that have one name and two types across the project.
    pub(super) fn parameter_types(&mut self) {
        let project = self.project;
        let mut first: HashMap<String, Seen> = HashMap::new();
        for (file, source) in project.files().iter().enumerate() {
            self.file = file;
            for tool in source.tree.walk().filter(|pattern| Declares::of(*pattern) == Some(Declares::Tool)) {
                self.compare_parameters(tool, &mut first);
            }
        }
    }

    fn compare_parameters(&mut self, tool: Pattern<'p>, first: &mut HashMap<String, Seen>) {
        let Some(path) = tool.elements().next().filter(|path| path.kind() == PatternKind::Path) else { return };
        let Some(signature) = self.signatures.remove(&(self.file, path.syntax().id())) else { return };
        for parameter in &signature.parameters {
            let ty = parameter.ty.to_string();
            let span = named(path, &parameter.name).map_or(path.span(), Pattern::span);
            let Some(seen) = first.get(&parameter.name) else {
                first.insert(parameter.name.clone(), Seen { ty, file: self.file, span });
                continue;
            };
            if seen.ty != ty {
                let place = self.project.place(seen.file, seen.span);
                let (here, there) = (with_article(&ty), with_article(&seen.ty));
                let message = format!("`{}` is {here} here, and {there} in {place}", parameter.name);
                let found = rule::TWO_TYPES.at(span, message);
                self.report(found.with_hint("models do better where one name means one thing; rename one of the two"));
            }
        }
    }
}

/// Where a parameter name was first used, and with what type.
struct Seen {
    ty: String,
    file: usize,
    span: Span,
}

/// Returns the parameter with a name.
fn named<'p>(path: Pattern<'p>, name: &str) -> Option<Pattern<'p>> {
    path.elements().find(|node| node.name().as_deref() == Some(name))
}
