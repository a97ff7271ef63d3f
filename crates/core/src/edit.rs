//! Changes of many declarations at once, such as everything that a query finds.

use crate::check::{Options, check};
use crate::declare::project::{File, Finding, Project};
use crate::declare::{DeclarationKind, format_text};
use crate::query::FilePlace;
use patter_gram::{Dialect, EditError, Pattern, Span, Value, parse, quote_name};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Changes that are made to each of some declarations. Everything else stays as it is, comments included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeclarationEdit {
    /// Properties to set.
    pub set: Vec<(String, String)>,
    /// Properties to remove.
    pub unset: Vec<String>,
    /// Elements to add, unless there is one with that name.
    pub add: Vec<String>,
    /// The names of elements to remove.
    pub remove: Vec<String>,
}

/// A file that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The index of the file in [`Project::files`].
    pub file: usize,
    /// The new text.
    pub text: String,
    /// How many declarations in it change.
    pub declarations: usize,
}

/// An error while changing declarations.
#[derive(Debug, Clone, Error)]
pub enum DeclarationEditError {
    /// An option is not of the form that it needs.
    #[error("{0}")]
    Invalid(String),
    /// A file has errors, so that it is not clear what would change.
    #[error("`{0}` has errors, so nothing was changed")]
    Broken(String),
    /// The notation does not allow the change.
    #[error("`{path}` cannot be changed like that: {error}")]
    Rejected {
        /// The file.
        path: String,
        /// The reason.
        error: EditError,
    },
    /// Files would have errors that they do not have now.
    #[error("the files would have errors, so nothing was changed")]
    NewErrors {
        /// The files after the change.
        project: Box<Project>,
        /// The errors.
        findings: Vec<Finding>,
    },
}

impl DeclarationEdit {
    /// Reads `KEY=VALUE`. A value that gram reads as a number, a boolean, a list, a record or a quoted text is one;
    /// everything else is a text.
    ///
    /// ```
    /// use patter_core::edit::DeclarationEdit;
    /// let mut edit = DeclarationEdit::default();
    /// edit.set("model=OpenAI/gpt-5").unwrap();
    /// edit.set("maxCost=0.5").unwrap();
    /// assert_eq!(edit.set, [("model".into(), "\"OpenAI/gpt-5\"".into()), ("maxCost".into(), "0.5".into())]);
    /// assert_eq!(edit.set("model").unwrap_err().to_string(), "`model` is not of the form KEY=VALUE");
    /// ```
    pub fn set(&mut self, assignment: &str) -> Result<(), DeclarationEditError> {
        let invalid = || DeclarationEditError::Invalid(format!("`{assignment}` is not of the form KEY=VALUE"));
        let (key, value) = assignment.split_once('=').ok_or_else(invalid)?;
        let key = key.trim();
        if key.is_empty() {
            return Err(invalid());
        }
        let text = match Value::parse(value.trim()) {
            None | Some(Value::Symbol(_)) => format_text(value.trim(), "  "),
            Some(_) => value.trim().to_owned(),
        };
        self.set.push((key.to_owned(), text));
        Ok(())
    }

    /// Reads an element to add: a pattern such as `[x:Tool {…} | …]`, or a name.
    pub fn add(&mut self, element: &str) -> Result<(), DeclarationEditError> {
        let element = element.trim();
        if !element.starts_with('[') {
            self.add.push(quote_name(element).into_owned());
            return Ok(());
        }
        let (tree, diagnostics) = parse(element);
        if let Some(error) = diagnostics.iter().find(|found| found.is_error()) {
            let message = format!("`{element}` is not a pattern: {}", error.message);
            return Err(DeclarationEditError::Invalid(message));
        }
        if tree.patterns().count() != 1 {
            return Err(DeclarationEditError::Invalid(format!("`{element}` is not one pattern")));
        }
        self.add.push(element.to_owned());
        Ok(())
    }

    /// Returns whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Changes the declarations at some places of a project, and returns the files that change. Nothing changes if a file
    /// has errors, or would have errors afterwards that it does not have now.
    pub fn apply(
        &self,
        project: &Project,
        places: impl IntoIterator<Item = FilePlace>,
        options: &Options<'_>,
    ) -> Result<Vec<ChangedFile>, DeclarationEditError> {
        let mut by_file: BTreeMap<usize, BTreeSet<(u32, u32)>> = BTreeMap::new();
        for place in places {
            by_file.entry(place.file).or_default().insert((place.span.start, place.span.end));
        }
        let mut changed = Vec::new();
        for (index, spans) in by_file {
            let Some(file) = project.files().get(index) else { continue };
            if file.diagnostics.iter().any(patter_gram::Diagnostic::is_error) {
                return Err(DeclarationEditError::Broken(file.path.clone()));
            }
            let (text, declarations) = self.change_file(file, &spans)?;
            if text != file.tree.source() {
                changed.push(ChangedFile { file: index, text, declarations });
            }
        }
        reject_new_errors(project, &changed, options)?;
        Ok(changed)
    }

    fn change_file(&self, file: &File, spans: &BTreeSet<(u32, u32)>) -> Result<(String, usize), DeclarationEditError> {
        let mut edit = file.tree.edit();
        let mut declarations = 0;
        for pattern in file.tree.walk() {
            let Span { start, end } = pattern.span();
            if DeclarationKind::from_pattern(pattern).is_none() || !spans.contains(&(start, end)) {
                continue;
            }
            declarations += 1;
            for (key, value) in &self.set {
                edit.set_property_text(pattern, key, value);
            }
            for key in self.unset.iter().filter(|key| pattern.get(key).is_some()) {
                edit.remove_property(pattern, key);
            }
            let removed =
                |element: &Pattern<'_>| self.remove.iter().any(|name| element.name().as_deref() == Some(name));
            for element in pattern.elements().filter(removed) {
                edit.remove_element(pattern, element);
            }
            for element in &self.add {
                let name = element_name(element);
                let is_there = |other: Pattern<'_>| !removed(&other) && other.name().as_deref() == name.as_deref();
                if !pattern.elements().any(is_there) {
                    edit.push_element(pattern, element);
                }
            }
        }
        if let Some(error) = edit.errors().first() {
            return Err(DeclarationEditError::Rejected { path: file.path.clone(), error: error.clone() });
        }
        let (tree, _) = edit.apply();
        Ok((tree.to_string(), declarations))
    }
}

/// Returns the name of an element to add.
fn element_name(element: &str) -> Option<String> {
    let (tree, _) = parse(&format!("[x | {element}]"));
    let name = tree.patterns().next()?.elements().next()?.name()?.into_owned();
    Some(name)
}

/// Fails if the files would have errors that they do not have now.
fn reject_new_errors(
    project: &Project,
    changed: &[ChangedFile],
    options: &Options<'_>,
) -> Result<(), DeclarationEditError> {
    let replaced = |index: usize, file: &File| match changed.iter().find(|changed| changed.file == index) {
        Some(changed) => File::read(file.path.clone(), &changed.text, Dialect::Patter),
        None => file.clone(),
    };
    let files = project.files().iter().enumerate().map(|(index, file)| replaced(index, file)).collect();
    let after = Project::from_files(files);
    let key = |finding: &Finding| (finding.file, finding.diagnostic.code, finding.diagnostic.message.to_string());
    let before: BTreeSet<_> = check(project, options).iter().map(key).collect();
    let mut findings = check(&after, options);
    findings.retain(|finding| finding.diagnostic.is_error() && !before.contains(&key(finding)));
    if findings.is_empty() {
        return Ok(());
    }
    Err(DeclarationEditError::NewErrors { project: Box::new(after), findings })
}
