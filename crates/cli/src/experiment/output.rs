//! Writing and reading reports.

use super::{Detail, find_experiment};
use crate::error::{CommandError, ErrorFormat};
use crate::file::{Existing, Input, unreadable, unwritable, write_atomically};
use crate::format::{FormatOption, OutputFormat};
use crate::ui;
use clap::{Args, ValueEnum};
use patter::experiment::{Report, StoredTrials, junit, summarize};
use patter::report::html;
use patter::store::Store;
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// Where a report is written.
#[derive(Args, Clone)]
pub(crate) struct OutputOptions {
    #[command(flatten)]
    format: FormatOption<ReportFormat>,

    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Also write an HTML report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A summary for people
    #[default]
    Text,
    /// The full report with the conversations, as one JSON document
    Json,
    /// JUnit XML, for continuous integration
    Junit,
    /// A self-contained HTML page
    Html,
}

impl OutputFormat for ReportFormat {
    fn error_format(self) -> ErrorFormat {
        match self {
            ReportFormat::Text | ReportFormat::Junit | ReportFormat::Html => ErrorFormat::Text,
            ReportFormat::Json => ErrorFormat::Json,
        }
    }
}

impl OutputOptions {
    pub(crate) fn format(&self) -> ReportFormat {
        self.format.format
    }

    pub(crate) fn error_format(&self) -> ErrorFormat {
        self.format().error_format()
    }

    /// Returns how much of the runs the report needs.
    pub(crate) fn detail(&self) -> Detail {
        match self.format() {
            ReportFormat::Text if self.report.is_none() => Detail::Brief,
            ReportFormat::Text | ReportFormat::Json | ReportFormat::Junit | ReportFormat::Html => Detail::Full,
        }
    }

    /// Returns an error for options that do not apply to a list of experiments.
    pub(crate) fn check_list(&self) -> Result<(), CommandError> {
        let is_report = matches!(self.format(), ReportFormat::Junit | ReportFormat::Html);
        if is_report || self.output.is_some() || self.report.is_some() {
            let error = CommandError::usage("a list of experiments can only be printed as text or JSON");
            return Err(error.with_hint("name an experiment, such as `latest`"));
        }
        Ok(())
    }

    /// Writes a report in its format; `text` is the report as text.
    pub(crate) fn write(&self, report: &Report, text: &str) -> Result<(), CommandError> {
        let text = match self.format() {
            ReportFormat::Text => text.to_owned(),
            ReportFormat::Json => format!("{:#}\n", document(report)),
            ReportFormat::Junit => junit(report),
            ReportFormat::Html => html(report),
        };
        if let Some(path) = &self.report {
            write_report(path, &html(report))?;
        }
        match &self.output {
            None => ui::print(&text)?,
            Some(path) => write_report(path, &ui::plain(&text))?,
        }
        Ok(())
    }
}

/// Writes a report to a file, replacing any earlier one.
pub(crate) fn write_report(path: &Path, text: &str) -> Result<(), CommandError> {
    write_atomically(path, text, Existing::Replace).map_err(|error| unwritable(path, &error))
}

/// Returns a report as JSON, with a summary of each arm.
pub(crate) fn document(report: &Report) -> Json {
    let summaries = report.arms.iter().map(|arm| {
        let mut of_arm = json!(summarize(report.arm_trials(&arm.name)));
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

/// Reads an earlier report: a file, or a stored experiment.
pub(crate) fn read_report(named: &str, store: &dyn Store, runtime: &Runtime) -> Result<Report, CommandError> {
    if Path::new(named).is_file() {
        let bytes = std::fs::read(named).map_err(|error| unreadable(&Input::Path(named.into()), &error))?;
        let read = || {
            let mut document: Json = serde_json::from_slice(&bytes)?;
            // Its own comparison is not needed, and other versions may describe it in another way.
            if let Json::Object(fields) = &mut document {
                fields.remove("comparison");
            }
            serde_json::from_value(document)
        };
        return read().map_err(|error: serde_json::Error| {
            let error = CommandError::failure(format!("`{named}` is not a report: {error}"));
            error.with_hint("write reports with --save-baseline or --format json")
        });
    }
    let is_path = named.contains('/') || Path::new(named).extension().is_some();
    if is_path && named != "latest" {
        let error = CommandError::failure(format!("`{named}` is neither a file nor the id of an experiment"));
        return Err(
            error.with_hint("write reports with --save-baseline or --format json; `patter experiments` lists ids")
        );
    }
    let report = runtime.block_on(async {
        let id = find_experiment(store, named).await?;
        StoredTrials::read(store, &id).await
    })?;
    Ok(report)
}
