//! Experiments: the order of trials, resuming, and overhead.

use patter::case::{CaseFormat, read};
use patter::compile::CompiledAgent;
use patter::drive::{Driver, now_ms};
use patter::experiment::{
    Arm, BlockOrder, CommandChecks, Completion, Plan, ReportKind, Series, SeriesEnd, SeriesProgress, StoredTrials,
    StoredTrialsError, Throttle, Trial,
};
use patter::model::{Model, ModelResolver, ScriptedModel};
use patter::project::{Environment, Project};
use patter::provider::price::Prices;
use patter::run::Run;
use patter::store::{self, SessionState, Store, StoreError, StoreLocation};
use patter::tool::CancellationToken;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

fn driver(script: &str) -> (Driver, CompiledAgent) {
    let text = "[hi:Agent {instruction: 'Greet.', model: 'scripted/x.json'}]";
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::parse("x.json", script).unwrap());
    let models: ModelResolver = Arc::new(move |_| Ok(Arc::clone(&model)));
    let driver = Driver::new(Arc::new(Project::read([("hi.gram", text)])), Arc::default(), models);
    let compiled = driver.compile_named("hi").unwrap().unwrap();
    (driver, compiled)
}

fn series(cases: usize, arms: &[&str], script: &str) -> Arc<Series> {
    let line =
        |number| format!("{{\"id\": \"c{number}\", \"input\": \"Hi\", \"checks\": [{{\"contains\": \"Hello\"}}]}}\n");
    let text: String = (0..cases).map(line).collect();
    let (cases, problems) = read("a.jsonl", CaseFormat::JsonLines, text.as_bytes());
    assert_eq!(problems, []);
    let arm = |name: &&str| {
        let (driver, compiled) = driver(script);
        Arm::new(name, driver, compiled, Prices::builtin())
    };
    let command_checks = CommandChecks::new(Path::new("."), Environment::default());
    Arc::new(Series { arms: arms.iter().map(arm).collect(), cases, judges: Vec::new(), command_checks, tracer: None })
}

fn plan(series: &Series, repeats: u32) -> Plan {
    let (cases, cases_hash) = series.case_infos();
    let arms = series.arms.iter().map(Arm::info).collect();
    Plan { arms, cases, cases_hash, repeats, ..Plan::new("test", ReportKind::Ab) }
}

async fn open(folder: &Path) -> Arc<dyn Store> {
    store::open(&StoreLocation::Sqlite(folder.join("x.db"))).await.unwrap()
}

#[test]
fn blocks_have_all_arms_in_random_order() {
    let plan = plan(&series(10, &["a", "b", "c"], "[]"), 4);
    let trials = plan.planned_trials();
    assert_eq!(trials, plan.planned_trials());
    assert_ne!(trials, Plan { seed: 1, ..plan.clone() }.planned_trials());
    let distinct: HashSet<_> = trials.iter().map(|trial| (trial.arm, trial.case, trial.repeat)).collect();
    assert_eq!((trials.len(), distinct.len()), (120, 120));
    for block in trials.chunks(3) {
        let arms: HashSet<_> = block.iter().map(|trial| trial.arm).collect();
        assert!(
            arms.len() == 3 && block.iter().all(|trial| (trial.case, trial.repeat) == (block[0].case, block[0].repeat))
        );
    }
    let first: HashSet<_> = trials.chunks(3).map(|block| block[0].arm).collect();
    assert_eq!(first.len(), 3, "each arm comes first in some block");
    let by_case = Plan { blocks: BlockOrder::ByCase, ..plan }.planned_trials();
    assert!(by_case.chunks(12).all(|case| case.iter().all(|trial| trial.case == case[0].case)));
}

#[tokio::test]
async fn resumed_experiment_runs_only_the_remaining_trials() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let series = series(20, &["a", "b"], r#"[{"text": "Hello!"}]"#);
    let plan = plan(&series, 1);
    let stop = CancellationToken::new();
    let mut stored = StoredTrials::create(Arc::clone(&store), plan.clone(), None).await.unwrap();
    let id = stored.id().clone();
    let look = |trials: &[Trial]| {
        if trials.len() >= 9 {
            stop.cancel();
        }
        SeriesProgress::Continue
    };
    let end = series.run(&mut stored, Throttle::default(), look, &stop).await.unwrap();
    let first: HashSet<_> = stored.trials().iter().map(|trial| trial.order).collect();
    assert!(end == SeriesEnd::Stopped && (9..40).contains(&first.len()), "{end:?} {}", first.len());
    // Nobody else can resume it meanwhile.
    let busy = StoredTrials::resume(Arc::clone(&store), &id, plan.clone()).await;
    assert!(matches!(busy.map(drop), Err(StoredTrialsError::Store(StoreError::Busy { .. }))));
    drop(stored);
    assert_eq!(StoredTrials::find_interrupted(&*store, &plan).await.unwrap().as_ref(), Some(&id));
    let other = Plan { repeats: 2, ..plan.clone() };
    assert_eq!(StoredTrials::find_interrupted(&*store, &other).await.unwrap(), None);
    let changed = StoredTrials::resume(Arc::clone(&store), &id, other).await.map(drop).unwrap_err();
    assert!(changed.to_string().ends_with("the number of repeats changed"), "{changed}");

    let mut stored = StoredTrials::resume(Arc::clone(&store), &id, plan.clone()).await.unwrap();
    assert!(stored.remaining().iter().all(|trial| !first.contains(&trial.order)));
    let end = series
        .run(&mut stored, Throttle::default(), |_| SeriesProgress::Continue, &CancellationToken::new())
        .await
        .unwrap();
    let report = stored.report().await.unwrap();
    let orders: Vec<_> = report.trials.iter().map(|trial| trial.order).collect();
    assert_eq!((end, orders), (SeriesEnd::Complete, (0..40).collect()));
    assert!(report.trials.iter().all(|trial| trial.passed && trial.conversation.len() == 2));
    drop(stored);

    // Killed before its report was written: there is nothing left to run.
    assert_eq!(StoredTrials::find_interrupted(&*store, &plan).await.unwrap().as_ref(), Some(&id));
    let mut stored = StoredTrials::resume(Arc::clone(&store), &id, plan.clone()).await.unwrap();
    assert_eq!(stored.remaining(), []);
    let end = series
        .run(&mut stored, Throttle::default(), |_| SeriesProgress::Continue, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((end, stored.report().await.unwrap()), (SeriesEnd::Complete, report));
    stored.finish().await.unwrap();
    drop(stored);
    let summary = store.read(&id).await.unwrap().summary;
    assert!(summary.state == SessionState::Idle && summary.is_experiment());
    assert_eq!(StoredTrials::find_interrupted(&*store, &plan).await.unwrap(), None);
}

#[tokio::test]
async fn an_experiment_that_has_enough_does_not_continue_when_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let series = series(20, &["a", "b"], r#"[{"text": "Hello!"}]"#);
    let plan = Plan { blocks: BlockOrder::ByCase, ..plan(&series, 1) };
    let enough = |trials: &[Trial]| if trials.len() >= 10 { SeriesProgress::Enough } else { SeriesProgress::Continue };
    let stop = CancellationToken::new();
    let mut stored = StoredTrials::create(Arc::clone(&store), plan.clone(), None).await.unwrap();
    let end = series.run(&mut stored, Throttle::default(), enough, &stop).await.unwrap();
    let id = stored.id().clone();
    let done = stored.trials().len();
    assert!(end == SeriesEnd::Enough && (10..40).contains(&done), "{end:?} {done}");
    drop(stored);
    let interrupted = StoredTrials::read(&*store, &id).await.unwrap();
    assert_eq!(interrupted.completion, Completion::Interrupted);
    let mut stored = StoredTrials::resume(Arc::clone(&store), &id, plan).await.unwrap();
    let end = series.run(&mut stored, Throttle::default(), enough, &stop).await.unwrap();
    assert_eq!((end, stored.trials().len()), (SeriesEnd::Enough, done));
    stored.finish().await.unwrap();
    assert_eq!(StoredTrials::read(&*store, &id).await.unwrap().completion, Completion::StoppedEarly);
}

#[test]
fn what_defines_an_arm_is_part_of_the_plan() {
    let base = series(3, &["a"], r#"[{"text": "Hello!"}]"#);
    let info = base.arms[0].info();
    let mut changed = plan(&base, 1);
    let limited = base.arms[0].clone().with_limits(|limits| limits.deadline_ms = Some(5)).info();
    let expected = |part: &str| Some(format!("{part} of the arm `a` changed"));
    changed.arms = vec![limited];
    assert_eq!(plan(&base, 1).difference(&changed), expected("the limits"));
    changed.arms = vec![base.arms[0].clone().with_limits(|limits| limits.max_model_calls = 3).info()];
    assert_eq!(plan(&base, 1).difference(&changed), expected("the limits"));
    changed.arms = vec![base.arms[0].clone().with_setup("approves all calls".to_owned()).info()];
    assert_eq!(plan(&base, 1).difference(&changed), expected("a rule, a script or a called agent"));
    changed.arms = vec![info];
    assert_eq!(plan(&base, 1).difference(&changed), None);
    assert_eq!(plan(&base, 1).hash(), changed.hash());
}

/// With `--ignored`: the overhead of an experiment over its runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures time"]
async fn overhead_and_memory() {
    const CASES: usize = 1000;
    let script = r#"[{"text": "Hello!", "delayMs": 10}]"#;
    let (driver, compiled) = driver(script);
    let stop = CancellationToken::new();
    let start = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..2 * CASES {
        if running.len() >= 4 {
            running.join_next().await;
        }
        let (driver, compiled, stop) = (driver.clone(), compiled.clone(), stop.clone());
        running.spawn(async move {
            let run = Run::start(compiled.spec().clone(), Vec::new(), "Hi", now_ms()).unwrap();
            driver.drive(&compiled, run, &stop).await
        });
    }
    while running.join_next().await.is_some() {}
    let plain = start.elapsed();

    let folder = tempfile::tempdir().unwrap();
    let series = series(CASES, &["a", "b"], script);
    let mut stored = StoredTrials::create(open(folder.path()).await, plan(&series, 1), None).await.unwrap();
    let mut resident = Vec::new();
    let look = |trials: &[Trial]| {
        if trials.len() / 500 > resident.len() {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            resident.push(statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4);
        }
        SeriesProgress::Continue
    };
    let start = Instant::now();
    series.run(&mut stored, Throttle::default(), look, &stop).await.unwrap();
    let elapsed = start.elapsed();
    println!("plain {plain:?}, experiment {elapsed:?}, resident KiB after every 500 trials {resident:?}");
    assert!(elapsed < plain.mul_f64(1.1), "{elapsed:?}, plain {plain:?}");
    assert!(resident.last().unwrap() - resident[0] < 8 * 1024, "{resident:?}");
}
