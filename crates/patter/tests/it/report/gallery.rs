//! Pages of all kinds of reports, to look at and to check.

use super::sample::{ArmShape, SHORTER, TODAY, compare, compared, evaluation};
use patter::experiment::{BaselineCases, Completion, Gate, Report, compare_with_baseline};
use patter::run::{FailureKind, RunFailure};
use patter::stats::{CompareOptions, Stopping};

/// Returns reports of all kinds with their names.
pub(super) fn reports() -> Vec<(&'static str, Report)> {
    let perfect = ArmShape { missed: 0, failed: 0, ..TODAY };
    let loser = ArmShape { name: "shorter", missed: 40, failed: 0, saved: -17 };
    let winner = ArmShape { name: "shorter", missed: 0, failed: 0, saved: -180 };
    let twin = ArmShape { name: "twin", ..perfect };
    let dear = ArmShape { name: "dear", missed: 2, failed: 1, saved: -900 };
    let broken = ArmShape { failed: 25, ..SHORTER };
    let mut stopped = compared(40, 1, &[perfect, loser]);
    stopped.cases.extend(compared(120, 1, &[perfect, loser]).cases.into_iter().skip(40));
    let options = CompareOptions { resamples: 200, stopping: Stopping::Anytime, ..CompareOptions::default() };
    let names: Vec<_> = stopped.arms.iter().map(|arm| arm.name.clone()).collect();
    stopped.comparison = patter::experiment::compare_arms(&names, &stopped.trials, &options).ok();
    stopped.completion = Completion::StoppedEarly;
    let mut interrupted = compared(40, 2, &[TODAY, SHORTER]);
    interrupted.completion = Completion::Interrupted;
    interrupted.trials.truncate(61);
    compare(&mut interrupted);
    let mut regressed = evaluation(40);
    let mut before = regressed.clone();
    before.trials.iter_mut().filter(|trial| trial.failure.is_none()).for_each(|trial| trial.passed = true);
    let options = CompareOptions { resamples: 200, ..CompareOptions::default() };
    let cases = BaselineCases::find(&before.cases, &regressed.cases);
    regressed.comparison = compare_with_baseline(&before, &regressed, &cases, &options).ok();
    // All runs fail: with errors of the model, or because the agent exceeds its limits.
    let failing = |kind: FailureKind| {
        let mut report = evaluation(6);
        for trial in &mut report.trials {
            trial.passed = false;
            trial.judged.clear();
            trial.failure = Some(RunFailure { kind, message: "it did not work".to_owned() });
        }
        report.gates = vec!["pass>=0.5".parse::<Gate>().unwrap().judge(&report.trials)];
        report
    };
    vec![
        ("only-errors", failing(FailureKind::Model)),
        ("no-answers", failing(FailureKind::Deadline)),
        ("loser", compared(30, 1, &[perfect, loser])),
        ("winner", compared(60, 1, &[ArmShape { missed: 45, ..TODAY }, winner])),
        ("tie", compared(150, 1, &[perfect, twin])),
        ("unclear", compared(40, 2, &[TODAY, SHORTER])),
        ("two-cases", compared(2, 1, &[TODAY, dear])),
        ("three-arms", compared(60, 1, &[ArmShape { missed: 40, ..TODAY }, SHORTER, dear])),
        ("five-arms", {
            let arms = ["b", "c", "d", "e"].map(|name| ArmShape { name, ..SHORTER });
            compared(12, 7, &[TODAY, arms[0], arms[1], arms[2], arms[3]])
        }),
        ("errors", compared(40, 1, &[TODAY, broken])),
        ("interrupted", interrupted),
        ("stopped-early", stopped),
        ("evaluation", evaluation(40)),
        ("regressed", regressed),
    ]
}

/// Writes the pages to `target/tmp/report-pages`: `cargo test -p patter --test it report::gallery -- --ignored`.
#[test]
#[ignore = "writes files for people to look at"]
fn pages_to_look_at() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-pages");
    std::fs::create_dir_all(&folder).unwrap();
    let large = ("large", compared(10_000, 1, &[TODAY, SHORTER]));
    for (name, report) in reports().into_iter().chain([large]) {
        let file = folder.join(format!("{name}.html"));
        std::fs::write(&file, patter::report::html(&report)).unwrap();
        println!("{}", file.display());
    }
}
