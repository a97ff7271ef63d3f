//! What the commands that run cases share: options, arms, order of work, and reports.

mod arm;
mod cases;
mod baseline;
mod output;
mod plot;
mod process;
mod revision;
mod text;

pub(crate) use arm::ArmSpec;
pub(crate) use baseline::{Baseline, FailOn, describe_regressions, regressions_since};
pub(crate) use cases::read as read_cases;
pub(crate) use output::{OutputOptions, ReportFormat, document, write_report};
pub(crate) use process::ExperimentProcesses;
pub(crate) use text::{ab_text, comparison_text, eval_text};

use crate::argument::{ModelArgument, parse_count, parse_model, parse_number, parse_rate};
use crate::error::{CommandError, CommandResult, Outcome};
use crate::session::{RECENT_SESSIONS, StoreOption, TerminalApprover, TurnLimits};
use crate::setup::{
    Intent, LockOption, Rules, Setup, ToolSources, Toolset, max_runs, refuse_broken_policies, refuse_unused,
    require_trust, split_agent, until_stopped,
};
use crate::ui;
use crate::ui::Progress;
use crate::ui::style::DIM;
use arm::Bench;
use clap::Args;
use patter::drive::{Driver, RefusingApprover};
use patter::experiment::{
    Arm, ArmErrors, BlockOrder, CommandChecks, Completion, Plan, Report, ReportKind, Series, SeriesEnd, SeriesProgress,
    StoredTrials, StoredTrialsError, Throttle, Trial, compare_arms, is_conclusive, leading_blocks,
};
use patter::permission::UnusedRule;
use patter::project::{ServerSelection, check_definitions};
use patter::stats::{CompareOptions, Stopping};
use patter::store::{self, SessionState, Store, StoreError, StoreLocation};
use patter::text::nearest;
use serde_json::Value as Json;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How cases are run.
#[derive(Args, Clone)]
pub(crate) struct ExperimentOptions {
    /// File with cases: *.gram, *.jsonl or *.csv; may be repeated
    #[arg(long, short, value_name = "FILE", required = true)]
    pub(crate) cases: Vec<PathBuf>,

    /// Run only cases with this tag; may be repeated, to run cases with any of the tags
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    /// Number of runs per case
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count, allow_negative_numbers = true)]
    repeats: NonZeroU32,

    /// Number of runs at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = parse_count, allow_negative_numbers = true)]
    concurrency: NonZeroU32,

    /// Start at most N runs per unit of time: 60/min, 2/s, 500/h
    #[arg(long, value_name = "N/TIME", value_parser = parse_rate)]
    rate: Option<Duration>,

    /// Seed of the random order of runs
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse_number::<u64>, allow_negative_numbers = true)]
    seed: u64,

    /// Resume this experiment: its id, the start of it, or latest
    #[arg(long, value_name = "ID")]
    resume: Option<String>,

    /// Start anew, even if the same experiment was interrupted
    #[arg(long, conflicts_with = "resume")]
    new: bool,

    /// Model to use instead of the agents': Provider/name, or demo
    #[arg(long, value_name = "MODEL", value_parser = parse_model)]
    model: Option<ModelArgument>,

    #[command(flatten)]
    limits: TurnLimits,

    /// Print the id to stdout as soon as the experiment is stored
    #[arg(long, hide = true)]
    print_id: bool,

    /// Store this with the experiment, as what was asked for
    #[arg(long, value_name = "JSON", hide = true, value_parser = |text: &str| Json::from_str(text))]
    request: Option<Json>,

    /// Record each run in a file of this folder, for arms that are recordings
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,

    /// Approve all calls that need an approval; by default they are refused
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    lock: LockOption,

    #[command(flatten)]
    sources: ToolSources,
}

/// What an experiment asks.
pub(crate) struct Question<'q> {
    pub(crate) kind: ReportKind,
    /// `FILE#AGENT`.
    pub(crate) agent: &'q str,
    pub(crate) arms: &'q [ArmSpec],
    /// Whether it ends as soon as the result is clear.
    pub(crate) stopping: Stopping,
}

/// An experiment that is about to start.
pub(crate) struct Prepared<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) store: &'p dyn Store,
    pub(crate) runtime: &'p Runtime,
}

/// The result of an experiment.
pub(crate) struct Answer {
    pub(crate) report: Report,
    pub(crate) end: SeriesEnd,
    stored: StoredTrials,
    /// The folder of the store, if it is not kept.
    temporary: Option<TempDir>,
    setup: Setup,
}

impl ExperimentOptions {
    /// Runs an experiment. `check` may prevent that, before anything is spent.
    pub(crate) fn run(
        &self,
        question: &Question<'_>,
        detail: Detail,
        check: impl FnOnce(&Prepared<'_>) -> Result<(), CommandError>,
    ) -> Result<Answer, CommandError> {
        let cases = cases::read(&self.cases, &self.tag)?;
        let (file, name) = split_agent(question.agent);
        let toolboxes: Vec<_> = question.arms.iter().flat_map(|arm| arm.toolboxes.iter().cloned()).collect();
        let files = [file.clone()];
        let servers = ServerSelection::ForAgents;
        let setup = Setup::read_locked(&files, &self.sources, &servers, Intent::Call, &toolboxes, self.lock)?;
        let Toolset { runtime, stop, .. } = &setup.toolset;
        require_trust(runtime, stop, setup.root.as_deref(), &check_definitions(&cases))?;
        let rules = self.rules.all(&setup.config)?;
        refuse_broken_policies(&setup, &rules)?;
        let configure = |driver: Driver| {
            let driver = driver.with_rules(rules.clone());
            if self.yes {
                driver.with_approver(TerminalApprover { yes: true, ..TerminalApprover::default() })
            } else {
                driver.with_approver(RefusingApprover)
            }
        };
        let bench = Bench {
            setup: &setup,
            sources: &self.sources,
            file: &file,
            agent: name,
            toolboxes: &toolboxes,
            configure: &configure,
            budget: setup.config.budget(setup.root.as_deref()),
        };
        let mut arms = Vec::new();
        // The folders of revisions are removed when this is dropped.
        let mut revisions = Vec::new();
        for spec in question.arms {
            let (arm, revision) = bench.arm(spec, self.model.as_ref())?;
            arms.push(self.limited(arm));
            revisions.extend(revision);
        }
        refuse_unused(setup.root.as_deref(), &unused_everywhere(&arms))?;
        let judges = bench.judges(&cases, &self.cases)?;
        let root = setup.root.clone().unwrap_or_else(|| PathBuf::from("."));
        let command_checks = CommandChecks::new(&root, setup.toolset.environment.clone());
        let tracer = setup.toolset.runtime.tracer();
        let series = Arc::new(Series { arms, cases, judges, command_checks, tracer });
        let plan = self.plan(question, &series);
        let (store, temporary) = self.open_store(&setup)?;
        let concurrency = self.possible_concurrency()?;
        let runtime = &setup.toolset.runtime;
        check(&Prepared { plan: &plan, store: &*store, runtime })?;
        let (stored, end) =
            runtime.block_on(self.perform(&series, plan, Arc::clone(&store), &setup, question, concurrency))?;
        if temporary.is_none() {
            ui::status(&format!("{DIM}experiment {}{DIM:#}", stored.id()))?;
        }
        let mut report = match detail {
            Detail::Brief => stored.brief_report(),
            Detail::Full => runtime.block_on(stored.report())?,
        };
        report.completion = match end {
            SeriesEnd::Complete => Completion::Complete,
            SeriesEnd::Enough => Completion::StoppedEarly,
            SeriesEnd::Stopped => Completion::Interrupted,
        };
        drop(revisions);
        Ok(Answer { report, end, stored, temporary, setup })
    }

    fn limited(&self, arm: Arm) -> Arm {
        let arm = match &self.record {
            Some(folder) => arm.with_recordings(folder),
            None => arm,
        };
        let approvals = if self.yes { "approves all calls" } else { "refuses calls that need an approval" };
        arm.with_limits(|limits| self.limits.apply(limits)).with_setup(approvals.to_owned())
    }

    fn plan(&self, question: &Question<'_>, series: &Series) -> Plan {
        let arms: Vec<_> = series.arms.iter().map(Arm::info).collect();
        let names: Vec<_> = arms.iter().map(|arm| arm.name.as_str()).collect();
        let agent = arms.first().map(|arm| arm.agent.clone()).unwrap_or_default();
        let title = match question.kind {
            ReportKind::Eval => agent,
            ReportKind::Ab => format!("{agent}: {}", names.join(" and ")),
        };
        let (cases, cases_hash) = series.case_infos();
        let judges = series.judges.iter().map(patter::experiment::Judge::info).collect();
        let blocks = match question.stopping {
            Stopping::Fixed => BlockOrder::Mixed,
            Stopping::Anytime => BlockOrder::ByCase,
        };
        let repeats = self.repeats.get();
        let seed = self.seed;
        Plan { arms, cases, cases_hash, judges, repeats, seed, blocks, ..Plan::new(&title, question.kind) }
    }

    /// Opens the store. If sessions are disabled it is a temporary one, so that the runs need not fit in memory.
    fn open_store(&self, setup: &Setup) -> Result<OpenedStore, CommandError> {
        let root = setup.root.as_deref();
        let (location, temporary) = match self.store.location(root, &setup.config, &setup.toolset.environment)? {
            Some(location) => (location, None),
            None if self.resume.is_some() => return Err(self.store.disabled()),
            None => {
                let folder = tempfile::tempdir()?;
                (StoreLocation::Sqlite(folder.path().join("sessions.db")), Some(folder))
            }
        };
        let Toolset { runtime, stop, .. } = &setup.toolset;
        let store = until_stopped(runtime, stop, store::open(&location)).ok_or_else(CommandError::interrupted)??;
        Ok((store, temporary))
    }

    /// Returns how many runs are performed at once: as many as asked for, unless the system does not allow so many files.
    fn possible_concurrency(&self) -> io::Result<NonZeroU32> {
        match max_runs() {
            Some((possible, files)) if possible < self.concurrency => {
                ui::warning(&format!(
                    "running {possible} at once instead of {}: only {files} open files are allowed (`ulimit -n`)",
                    self.concurrency
                ))?;
                Ok(possible)
            }
            _ => Ok(self.concurrency),
        }
    }

    async fn perform(
        &self,
        series: &Arc<Series>,
        plan: Plan,
        store: Arc<dyn Store>,
        setup: &Setup,
        question: &Question<'_>,
        concurrency: NonZeroU32,
    ) -> Result<(StoredTrials, SeriesEnd), CommandError> {
        let begun = setup.toolset.stop.run_until_cancelled(self.begin_or_resume(plan, store)).await;
        let mut stored = begun.ok_or_else(CommandError::interrupted)??;
        if self.print_id {
            ui::print(&format!("{}\n", stored.id()))?;
        }
        let pace = Throttle { concurrency, interval: self.rate };
        let mut progress = Progress::new(stored.plan().planned_trials().len(), stored.trials().len());
        let names: Vec<_> = stored.plan().arms.iter().map(|arm| arm.name.clone()).collect();
        let mut compared_at = 0;
        let observe = |trials: &[Trial]| {
            progress.update(trials.len(), || trials.iter().filter(|trial| trial.passed).count());
            // A comparison takes time in proportion to the cases, so it waits for a few more runs.
            let step = (trials.len() / 20).max(names.len() * self.repeats.get() as usize);
            if question.stopping == Stopping::Fixed || trials.len() < compared_at + step {
                return SeriesProgress::Continue;
            }
            compared_at = trials.len();
            let options = self.statistics(question.stopping);
            // Looking only at what has ended would leave out what is slow to fail.
            let leading = leading_blocks(trials, names.len(), self.repeats.get(), BlockOrder::ByCase);
            let compared = compare_arms(&names, leading, &options);
            if compared.is_ok_and(|compared| is_conclusive(&compared)) {
                SeriesProgress::Enough
            } else {
                SeriesProgress::Continue
            }
        };
        let end = series.run(&mut stored, pace, observe, &setup.toolset.stop).await?;
        progress.finish();
        Ok((stored, end))
    }

    /// Returns how arms are compared.
    pub(crate) fn statistics(&self, stopping: Stopping) -> CompareOptions {
        CompareOptions { seed: self.seed, stopping, ..CompareOptions::default() }
    }

    /// Starts the experiment, or resumes it if it was interrupted.
    async fn begin_or_resume(&self, plan: Plan, store: Arc<dyn Store>) -> Result<StoredTrials, StoredTrialsError> {
        if let Some(text) = &self.resume {
            let id = find_experiment(&*store, text).await?;
            return Ok(report_resumed(StoredTrials::resume(store, &id, plan).await?));
        }
        if !self.new
            && let Some(id) = StoredTrials::find_interrupted(&*store, &plan).await?
        {
            match StoredTrials::resume(Arc::clone(&store), &id, plan.clone()).await {
                // It was not interrupted: another process is running it.
                Err(StoredTrialsError::Store(StoreError::Busy { .. })) => {}
                resumed => return Ok(report_resumed(resumed?)),
            }
        }
        StoredTrials::create(store, plan, self.request.as_ref()).await
    }
}

/// A store, with its folder if that is temporary.
type OpenedStore = (Arc<dyn Store>, Option<TempDir>);

/// How much of the runs a report needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What summaries need.
    Brief,
    /// Everything, with the conversations.
    Full,
}

impl Answer {
    /// Ends an experiment whose report is written. Until then, a repeated command resumes it, and has nothing left to run.
    pub(crate) fn finish(&mut self) -> Result<(), CommandError> {
        if self.end != SeriesEnd::Stopped {
            let toolset = &self.setup.toolset;
            toolset.runtime.block_on(Series::finish(&mut self.stored, &toolset.stop))?;
        }
        Ok(())
    }

    /// Reports runs that ended with an error. Returns whether there are too many for a conclusion.
    pub(crate) fn report_errors(&self) -> Result<bool, CommandError> {
        let mut is_undecidable = false;
        for arm in &self.report.arms {
            let Some(errors) = ArmErrors::find(&arm.name, &self.report.trials) else { continue };
            if errors.is_undecidable() {
                is_undecidable = true;
                let error = CommandError::failure(format!("cannot decide: {errors}"));
                error
                    .with_hint("errors say nothing about the answers: fix the cause, and run it again")
                    .print_problem()?;
            } else {
                ui::warning(&format!("{errors}; these runs are left out"))?;
            }
        }
        Ok(is_undecidable)
    }

    /// Reports how far an interrupted experiment is, and how to resume it.
    pub(crate) fn report_stopped(&self) -> CommandResult {
        let done = self.report.trials.len();
        let rest = if self.temporary.is_none() { "; repeat the command to resume" } else { "" };
        ui::status(&format!("stopped after {done} of {} runs{rest}", self.report.planned()))?;
        Ok(Outcome::Interrupted)
    }
}

fn report_resumed(stored: StoredTrials) -> StoredTrials {
    let done = stored.trials().len();
    let total = stored.plan().planned_trials().len();
    // A message that cannot be shown does not stop the experiment.
    let _ = ui::status(&format!("{DIM}resuming {}: {done} of {total} runs are done{DIM:#}", stored.id()));
    stored
}

/// Finds an experiment by its id, by the start of it, or as `latest`.
pub(crate) async fn find_experiment(store: &dyn Store, text: &str) -> Result<store::SessionId, StoreError> {
    if text == "latest" {
        return latest(store).await;
    }
    let unusable = |message: String, hint: String| StoreError::Unusable { message, hint: Some(hint) };
    match store::find(store, text).await {
        Err(StoreError::NotFound { text, .. }) => {
            let recent = store.list(RECENT_SESSIONS).await?;
            let ids = recent.iter().filter(|summary| summary.is_experiment()).map(|summary| summary.id.as_str());
            let hint = match nearest(&text, ids) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`patter experiments` lists them".to_owned(),
            };
            Err(unusable(format!("there is no experiment `{text}`"), hint))
        }
        Err(error @ StoreError::Ambiguous { .. }) => {
            let hint = error.hint().unwrap_or_default();
            Err(unusable(format!("several experiment ids start with `{text}`"), hint))
        }
        found => found,
    }
}

/// Returns the last experiment that was interrupted, or else the last.
async fn latest(store: &dyn Store) -> Result<store::SessionId, StoreError> {
    let mut experiments = store.list(RECENT_SESSIONS).await?;
    experiments.retain(store::SessionSummary::is_experiment);
    let open = experiments.iter().position(|summary| summary.state == SessionState::Running).unwrap_or(0);
    let found = experiments.into_iter().nth(open).map(|summary| summary.id);
    found.ok_or_else(|| StoreError::Unusable {
        message: "no experiments yet".to_owned(),
        hint: Some("start one with `patter eval` or `patter ab`".to_owned()),
    })
}

/// Returns the path of a file that lies beside others, or the path as given.
fn resolve_beside(file: &str, others: &[PathBuf]) -> PathBuf {
    let folders = others.iter().filter_map(|other| other.parent());
    folders.map(|folder| folder.join(file)).find(|path| path.is_file()).unwrap_or_else(|| Path::new(file).to_owned())
}

/// Returns the rules that are about nothing in any arm. A rule may be about a tool that only some of them have.
fn unused_everywhere(arms: &[Arm]) -> Vec<UnusedRule> {
    let mut unused: Vec<Vec<_>> = arms.iter().map(|arm| arm.driver().unused_rules()).collect();
    let Some(first) = unused.pop() else { return Vec::new() };
    let is_everywhere = |one: &UnusedRule| unused.iter().all(|arm| arm.iter().any(|other| other.rule == one.rule));
    first.into_iter().filter(is_everywhere).collect()
}
