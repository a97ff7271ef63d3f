//! Where a report goes, and in which form.

use super::{Detail, say_keep_error};
use crate::source::{Existing, write_whole};
use crate::{Outcome, diagnostics, print, print_as_is};
use clap::{Args, ValueEnum};
use patter::experiment::{Report, StoredTrials, junit, summary};
use patter::report::html;
use patter::store::{self, Store};
use serde_json::{Value as Json, json};
use std::io;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// What becomes of a report.
#[derive(Args, Clone)]
pub(crate) struct OutputOptions {
    /// In which form
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub(crate) format: Form,

    /// Into this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write a page to look at and to share into this file too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A summary for people
    Text,
    /// All of it, with the conversations
    Json,
    /// JUnit XML, for systems of continuous integration
    Junit,
    /// A page to look at and to share
    Html,
}

impl OutputOptions {
    /// Returns how much of the runs is wanted.
    pub(crate) fn detail(&self) -> Detail {
        match self.format {
            Form::Text if self.report.is_none() => Detail::Brief,
            Form::Text | Form::Json | Form::Junit | Form::Html => Detail::Full,
        }
    }

    /// Writes a report, which as text is what is given.
    pub(crate) fn write(&self, report: &Report, text: &str) -> io::Result<Outcome> {
        let text = match self.format {
            Form::Text => text.to_owned(),
            Form::Json => format!("{:#}\n", document(report)),
            Form::Junit => junit(report),
            Form::Html => html(report),
        };
        if let Some(path) = &self.report
            && write_file(path, &html(report))? == Outcome::Failure
        {
            return Ok(Outcome::Failure);
        }
        match &self.output {
            None if self.format == Form::Text => print(&text).map(|()| Outcome::Success),
            None => print_as_is(&text).map(|()| Outcome::Success),
            Some(path) => write_file(path, &text),
        }
    }
}

/// Writes a file, whatever was there. Says why where it cannot.
pub(crate) fn write_file(path: &Path, text: &str) -> io::Result<Outcome> {
    if let Err(error) = write_whole(path, text, Existing::Replaced) {
        diagnostics::error(&format!("cannot write `{}`: {error}", path.display()), None)?;
        return Ok(Outcome::Failure);
    }
    Ok(Outcome::Success)
}

/// Returns a report as JSON, with a summary of each arm.
pub(crate) fn document(report: &Report) -> Json {
    let summaries = report.arms.iter().map(|arm| {
        let mut of_arm = json!(summary(report.of_arm(&arm.name)));
        if let Json::Object(fields) = &mut of_arm {
            fields.insert("arm".to_owned(), json!(arm.name));
        }
        of_arm
    });
    let summaries: Vec<_> = summaries.collect();
    let mut document = json!(report);
    if let Json::Object(fields) = &mut document {
        fields.insert("summaries".to_owned(), Json::Array(summaries));
    }
    document
}

/// Reads an earlier report: a file, or an experiment of the store. Says why where it cannot.
pub(crate) fn read_report(named: &str, store: &dyn Store, runtime: &Runtime) -> io::Result<Option<Report>> {
    if Path::new(named).is_file() {
        let read = std::fs::read(named).map_err(|error| error.to_string());
        let report = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        return match report {
            Ok(report) => Ok(Some(report)),
            Err(message) => {
                let hint = "--save-baseline and --format json write reports";
                diagnostics::error(&format!("`{named}` is no report: {message}"), Some(hint))?;
                Ok(None)
            }
        };
    }
    let read = runtime.block_on(async {
        let id = store::find(store, named).await?;
        StoredTrials::read(store, &id).await
    });
    match read {
        Ok(report) => Ok(Some(report)),
        Err(error) => {
            say_keep_error(&error)?;
            Ok(None)
        }
    }
}
