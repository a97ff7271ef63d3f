//! Traces of what a command does.

use crate::ui;
use patter::trace::{ExportReport, Tracer};
use std::io;
use tracing::info;

/// Returns the tracer that the user's environment asks for. Only that of the process counts: the file `.env` of a project
/// must not decide where conversations are sent. What is wrong is a warning, since agents work without traces.
pub(super) fn new_tracer() -> io::Result<Option<Tracer>> {
    let tracer = match Tracer::from_variables(|name| std::env::var(name).ok()) {
        Ok(tracer) => tracer,
        Err(error) => {
            let hint = error.hint.map_or_else(String::new, |hint| format!("; {hint}"));
            ui::warning(&format!("traces are not exported: {error}{hint}"))?;
            None
        }
    };
    if let Some(tracer) = &tracer {
        tracer.settings().warnings.iter().try_for_each(|warning| ui::warning(warning))?;
        info!(host = tracer.settings().url.host_str(), "exporting traces");
    }
    Ok(tracer)
}

/// Reports how exporting ended.
pub(super) fn report_export(report: &ExportReport) -> io::Result<()> {
    let ExportReport { exported, dropped, error, .. } = report;
    info!(exported, dropped, "traces exported");
    if *dropped == 0 {
        return Ok(());
    }
    let count = ui::plural(usize::try_from(*dropped).unwrap_or(usize::MAX), "span");
    let verb = if *dropped == 1 { "was" } else { "were" };
    let why = error.as_ref().map_or_else(String::new, |error| format!(": {error}"));
    ui::warning(&format!("{count} {verb} not exported{why}"))
}
