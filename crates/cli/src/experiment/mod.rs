//! What commands share that run cases: the options, the arms, and what is kept and shown.

mod arm;
mod cases;
mod output;
mod plot;
mod progress;
mod revision;
mod show;

pub(crate) use arm::ArmSpec;
pub(crate) use output::{OutputOptions, document, read_report, write_file};
pub(crate) use show::{ab_text, comparison_text, eval_text};

use crate::setup::{Rules, Setup, ToolSources, split_agent};
use crate::talk::{DIM, StoreOption, Terminal, say_error, seconds};
use crate::{Outcome, diagnostics};
use arm::Bench;
use clap::Args;
use patter::drive::{Driver, Nobody};
use patter::experiment::{
    Arm, Blocks, Going, KeepError, Pace, Plan, Programs, Report, ReportKind, Series, SeriesEnd, StoredTrials, Trial,
    compare_arms, is_enough,
};
use patter::project::Servers;
use patter::provider::ModelRef;
use patter::run::Limits;
use patter::session::SessionError;
use patter::stats::{Options, Stopping};
use patter::store::{self, Location, SessionState, Store, StoreError};
use progress::Progress;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How cases are run.
#[derive(Args, Clone)]
pub(crate) struct ExperimentOptions {
    /// File with cases: *.gram, *.jsonl or *.csv; may be given several times
    #[arg(long, short, value_name = "FILE", required = true)]
    pub(crate) cases: Vec<PathBuf>,

    /// Run only cases with this tag; with several, those that have any
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,

    /// Run each case this often
    #[arg(long, value_name = "N", default_value = "1")]
    repeats: NonZeroU32,

    /// Run this many cases at a time
    #[arg(long, value_name = "N", default_value = "4")]
    concurrency: NonZeroU32,

    /// Begin at most so many runs in a time: 60/min, 2/s, 500/h
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    rate: Option<Duration>,

    /// Number that the order of runs is drawn from
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Go on with this experiment: its id, the beginning of it, or latest
    #[arg(long, value_name = "ID")]
    resume: Option<String>,

    /// Begin anew, also where the same experiment was interrupted
    #[arg(long, conflicts_with = "resume")]
    new: bool,

    /// Model to use, whatever the files say: Provider/name, or demo
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelRef>,

    /// Call the model at most this often in a turn
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,

    /// Stop a turn after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Record each run in a file of this folder, for arms that are recordings
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,

    /// Approve all calls that are asked about; without it they are refused
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

/// What an experiment is about.
pub(crate) struct Question<'q> {
    pub(crate) kind: ReportKind,
    /// `FILE#AGENT`.
    pub(crate) agent: &'q str,
    pub(crate) arms: &'q [ArmSpec],
    /// Whether it ends as soon as the arms are known to differ, or not to.
    pub(crate) stopping: Stopping,
}

/// How an experiment ended, with all that came of it.
pub(crate) struct Answer {
    pub(crate) report: Report,
    pub(crate) end: SeriesEnd,
    /// Whether it stays in the store, so that it can go on.
    is_kept: bool,
    pub(crate) setup: Setup,
    pub(crate) store: Arc<dyn Store>,
}

impl ExperimentOptions {
    /// Runs an experiment. Says why where it cannot.
    pub(crate) fn run(&self, question: &Question<'_>, detail: Detail) -> io::Result<Option<Answer>> {
        let Some(cases) = cases::read(&self.cases, &self.tag)? else { return Ok(None) };
        let (file, name) = split_agent(question.agent);
        let toolboxes: Vec<_> = question.arms.iter().flat_map(|arm| arm.toolboxes.iter().cloned()).collect();
        let files = [file.clone()];
        let Some(setup) = Setup::read_without(&files, &self.sources, &Servers::All, &toolboxes)? else {
            return Ok(None);
        };
        let Some(rules) = self.rules.all(&setup.config)? else { return Ok(None) };
        let fitting = |driver: Driver| {
            let driver = driver.with_rules(rules.clone());
            if self.yes {
                driver.with_approver(Terminal { yes: true, repeat: false })
            } else {
                driver.with_approver(Nobody)
            }
        };
        let bench = Bench {
            setup: &setup,
            sources: &self.sources,
            file: &file,
            agent: name,
            toolboxes: &toolboxes,
            fitting: &fitting,
        };
        let mut arms = Vec::new();
        // The folders of revisions stay until the end.
        let mut revisions = Vec::new();
        for spec in question.arms {
            let Some((arm, revision)) = bench.arm(spec, self.model.as_ref())? else { return Ok(None) };
            arms.push(self.limited(arm));
            revisions.extend(revision);
        }
        let Some(judges) = bench.judges(&cases, &self.cases)? else { return Ok(None) };
        let root = setup.root.clone().unwrap_or_else(|| PathBuf::from("."));
        let programs = Programs::new(&root, setup.toolset.environment.clone());
        let series = Arc::new(Series { arms, cases, judges, programs });
        let plan = self.plan(question, &series);
        let Some((store, temporary)) = self.open_store(&setup)? else { return Ok(None) };
        let runtime = &setup.toolset.runtime;
        let outcome = runtime.block_on(self.perform(&series, plan, Arc::clone(&store), &setup, question));
        let (kept, end) = match outcome {
            Ok(done) => done,
            Err(error) => {
                say_keep_error(&error)?;
                return Ok(None);
            }
        };
        let is_kept = temporary.is_none();
        if is_kept {
            diagnostics::say(&format!("{DIM}experiment {}{DIM:#}", kept.id()))?;
        }
        let report = match detail {
            Detail::Brief => Ok(kept.brief_report()),
            Detail::Full => runtime.block_on(kept.report()),
        };
        drop((kept, temporary, revisions));
        match report {
            Ok(report) => Ok(Some(Answer { report, end, is_kept, setup, store })),
            Err(error) => {
                say_keep_error(&error)?;
                Ok(None)
            }
        }
    }

    fn limited(&self, arm: Arm) -> Arm {
        let arm = match &self.record {
            Some(folder) => arm.recorded_in(folder),
            None => arm,
        };
        arm.with_limits(|limits: &mut Limits| {
            limits.max_model_calls = self.max_turns.unwrap_or(limits.max_model_calls);
            if let Some(timeout) = self.timeout {
                limits.deadline_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            }
        })
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
            Stopping::Fixed => Blocks::Mixed,
            Stopping::Anytime => Blocks::ByCase,
        };
        let (repeats, seed) = (self.repeats.get(), self.seed);
        Plan { arms, cases, cases_hash, judges, repeats, seed, blocks, ..Plan::new(&title, question.kind) }
    }

    /// Opens the store. Without one there is one for as long as this runs, so that not all of it has to be in memory.
    fn open_store(&self, setup: &Setup) -> io::Result<Option<Opened>> {
        let located = self.store.location(setup.root.as_deref(), &setup.config, &setup.toolset.environment);
        let (location, temporary) = match located {
            Ok(Some(location)) => (Ok(location), None),
            Ok(None) => {
                let folder = tempfile::tempdir()?;
                (Ok(Location::Sqlite(folder.path().join("sessions.db"))), Some(folder))
            }
            Err(error) => (Err(error), None),
        };
        let opened = location.and_then(|location| setup.toolset.runtime.block_on(store::open(&location)));
        match opened {
            Ok(store) => Ok(Some((store, temporary))),
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                Ok(None)
            }
        }
    }

    async fn perform(
        &self,
        series: &Arc<Series>,
        plan: Plan,
        store: Arc<dyn Store>,
        setup: &Setup,
        question: &Question<'_>,
    ) -> Result<(StoredTrials, SeriesEnd), KeepError> {
        let mut kept = self.kept(plan, store).await?;
        let pace = Pace { concurrency: self.concurrency, interval: self.rate };
        let mut progress = Progress::new(kept.plan().jobs().len(), kept.done());
        let names: Vec<_> = kept.plan().arms.iter().map(|arm| arm.name.clone()).collect();
        let mut looked = 0;
        let look = |trials: &[Trial]| {
            progress.show(trials);
            // A case is worth a look once it has a few more runs; every look costs as much as there are cases.
            let step = (trials.len() / 20).max(names.len() * self.repeats.get() as usize);
            if question.stopping == Stopping::Fixed || trials.len() < looked + step {
                return Going::On;
            }
            looked = trials.len();
            let options = self.statistics(question.stopping);
            let compared = compare_arms(&names, trials, &options);
            if compared.is_ok_and(|compared| is_enough(&compared)) { Going::Enough } else { Going::On }
        };
        let end = series.run(&mut kept, pace, look, &setup.toolset.stop).await?;
        progress.end();
        Ok((kept, end))
    }

    /// Returns how arms are compared.
    pub(crate) fn statistics(&self, stopping: Stopping) -> Options {
        Options { seed: self.seed, stopping, ..Options::default() }
    }

    /// Begins the experiment, or goes on with it where it was interrupted.
    async fn kept(&self, plan: Plan, store: Arc<dyn Store>) -> Result<StoredTrials, KeepError> {
        if let Some(text) = &self.resume {
            let id = match text.as_str() {
                "latest" => latest(&*store).await?,
                text => store::find(&*store, text).await?,
            };
            return going_on(StoredTrials::resume(store, &id, plan).await?);
        }
        if !self.new
            && let Some(id) = StoredTrials::interrupted(&*store, &plan).await?
        {
            match StoredTrials::resume(Arc::clone(&store), &id, plan.clone()).await {
                // It is not interrupted, but under way elsewhere.
                Err(KeepError::Store(StoreError::Busy { .. })) => {}
                resumed => return going_on(resumed?),
            }
        }
        StoredTrials::begin(store, plan).await
    }
}

/// A store, with the folder that goes away with it.
type Opened = (Arc<dyn Store>, Option<tempfile::TempDir>);

/// How much of the runs is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What summaries need.
    Brief,
    /// All, with the conversations.
    Full,
}

/// Tells how to go on with an experiment that was stopped.
pub(crate) fn say_stopped(answer: &Answer) -> io::Result<Outcome> {
    let planned = answer.report.arms.len() * answer.report.cases.len() * answer.report.repeats as usize;
    let done = answer.report.trials.len();
    let rest = if answer.is_kept { "; the same command goes on with the others" } else { "" };
    diagnostics::say(&format!("stopped: {done} of {planned} runs are done{rest}"))?;
    Ok(Outcome::Code(130))
}

fn going_on(kept: StoredTrials) -> Result<StoredTrials, KeepError> {
    let (done, all) = (kept.done().len(), kept.plan().jobs().len());
    // That it cannot be said is no reason to stop.
    let _ = diagnostics::say(&format!("{DIM}going on with {}: {done} of {all} runs are done{DIM:#}", kept.id()));
    Ok(kept)
}

/// Returns the last experiment that was interrupted, or else the last.
pub(crate) async fn latest(store: &dyn Store) -> Result<store::SessionId, StoreError> {
    const AMONG: usize = 1000;
    let mut experiments = store.list(AMONG).await?;
    experiments.retain(store::Summary::is_experiment);
    let open = experiments.iter().position(|summary| summary.state == SessionState::Running).unwrap_or(0);
    let found = experiments.into_iter().nth(open).map(|summary| summary.id);
    found.ok_or_else(|| StoreError::Unusable {
        message: "there is no experiment yet".to_owned(),
        hint: Some("without --resume one begins".to_owned()),
    })
}

pub(crate) fn say_keep_error(error: &KeepError) -> io::Result<()> {
    match error {
        KeepError::Store(error) => diagnostics::error(&error.to_string(), error.hint().as_deref()),
        KeepError::Changed { .. } => diagnostics::error(&error.to_string(), Some("without --resume a new one begins")),
        KeepError::NoExperiment { .. } => {
            diagnostics::error(&error.to_string(), Some("`patter experiments` lists them"))
        }
        KeepError::Damaged { .. } | KeepError::Unwritable(_) => diagnostics::error(&error.to_string(), None),
    }
}

/// Says why an agent is not ready.
fn unready<T>(error: impl Into<SessionError>) -> io::Result<Option<T>> {
    say_error(&error.into())?;
    Ok(None)
}

/// Reads how long after one run the next may begin: `60/min`.
fn rate(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and a time, as in 60/min, 2/s or 500/h".to_owned();
    let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.trim().parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let seconds = match unit.trim() {
        "s" | "sec" | "second" => 1,
        "min" | "m" | "minute" => 60,
        "h" | "hour" => 3600,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(seconds) / count)
}

/// Returns a file that stands beside others, or as it is named.
fn beside(file: &str, others: &[PathBuf]) -> PathBuf {
    let folders = others.iter().filter_map(|other| other.parent());
    folders.map(|folder| folder.join(file)).find(|path| path.is_file()).unwrap_or_else(|| Path::new(file).to_owned())
}
