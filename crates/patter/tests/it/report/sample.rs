//! A sample report: two arms, tools, failures, long texts, many scripts, and hostile texts.

use patter::case::CheckResult;
use patter::experiment::{ArmInfo, CaseInfo, Gate, JudgeInfo, Report, ReportKind, ToolUse, Trial, compare_arms};
use patter::message::conversation::{Conversation, Message, ToolCall, ToolOutcome, Usage};
use patter::provider::price::Cost;
use patter::run::{FailureKind, RunFailure};
use patter::stats::CompareOptions;
use serde_json::{Value as Json, json};

/// A text that must stay text wherever it appears.
pub(super) const HOSTILE: &str =
    r#"</script></style></textarea><img src=x onerror="alert(1)"><script>alert('2')</script>"#;

const QUESTIONS: [(&str, &str, &[&str]); 8] = [
    ("refund", "I was charged twice for order 4711. Can I have one of the payments back?", &["billing"]),
    ("password", "I cannot sign in since yesterday, and the mail to reset my password never comes.", &["account"]),
    ("delivery", "Where is my parcel? The number is JJD0099887766.", &["delivery", "tools"]),
    ("unicode", "Pouvez-vous répondre en français ? 日本語でもいいです。 وشكراً 🙏🏽", &["languages"]),
    ("invoice", "Please send me the invoice for March as a PDF.", &["billing", "tools"]),
    ("cancel", "Cancel my subscription at the end of the month, not before.", &["account"]),
    ("policy", "How long do I have to send something back that I do not like?", &["delivery"]),
    ("hostile", HOSTILE, &[]),
];

/// A deterministic pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// How an arm behaves, in percent of its runs.
#[derive(Clone, Copy)]
pub(super) struct ArmShape {
    pub(super) name: &'static str,
    /// The runs that do not pass a check.
    pub(super) missed: u64,
    /// The runs without an answer, of 60.
    pub(super) failed: u64,
    /// The part of the latency and of the tokens that it saves; negative if it needs more.
    pub(super) saved: i64,
}

pub(super) const TODAY: ArmShape = ArmShape { name: "today", missed: 20, failed: 1, saved: 0 };
pub(super) const SHORTER: ArmShape = ArmShape { name: "shorter", missed: 12, failed: 1, saved: 17 };

/// Returns a comparison of two arms.
pub(super) fn comparison(cases: usize, repeats: u32) -> Report {
    compared(cases, repeats, &[TODAY, SHORTER])
}

/// Returns a comparison of arms.
pub(super) fn compared(cases: usize, repeats: u32, arms: &[ArmShape]) -> Report {
    let mut report = without_comparison(cases, repeats, arms);
    compare(&mut report);
    report
}

/// Returns the runs of arms.
pub(super) fn without_comparison(cases: usize, repeats: u32, arms: &[ArmShape]) -> Report {
    let mut report = Report::new("Support agent: a shorter prompt and the new order tool", ReportKind::Ab);
    let infos = arms.iter().enumerate().map(|(index, shape)| match index {
        0 => arm(shape.name, "unchanged", "a0c1f2"),
        _ => arm(shape.name, &format!("agent:agents/{}/support.gram", shape.name), "77e9b0"),
    });
    report.arms = infos.collect();
    report.cases = (0..cases).map(case).collect();
    report.repeats = repeats;
    report.seed = 7;
    let mut dice = Dice(42);
    for number in 0..cases {
        for repeat in 0..repeats {
            for (index, shape) in arms.iter().enumerate() {
                let order = report.trials.len() as u64;
                let arm = (index as u64, *shape);
                report.trials.push(trial(&report.cases[number], number, repeat, arm, order, &mut dice));
            }
        }
    }
    report.judges = vec![JudgeInfo {
        name: "judge.gram".to_owned(),
        agent: "judge".to_owned(),
        agent_hash: "5d41402abc4b2a76".to_owned(),
        model: "Anthropic/claude-sonnet-4-5".to_owned(),
        instruction:
            "You are a strict but fair reader of support answers.\nSay whether the answer meets the criteria, and \
                      why in one sentence."
                .to_owned(),
        ..JudgeInfo::default()
    }];
    report.began_ms = 1_763_200_000_000;
    report.ended_ms = 1_763_200_754_000;
    report.version = "0.1.0".to_owned();
    report
}

/// Compares the arms of a report.
pub(super) fn compare(report: &mut Report) {
    let arms: Vec<String> = report.arms.iter().map(|arm| arm.name.clone()).collect();
    let options = CompareOptions { resamples: 200, seed: 7, ..CompareOptions::default() };
    report.comparison = Some(compare_arms(&arms, &report.trials, &options).unwrap());
}

/// Returns the same report for one arm, with gates.
pub(super) fn evaluation(cases: usize) -> Report {
    let mut report = comparison(cases, 1);
    report.kind = ReportKind::Eval;
    report.title = "Support agent".to_owned();
    report.arms.truncate(1);
    report.trials.retain(|trial| trial.arm == "today");
    report.comparison = None;
    let judge = |gate: &str| gate.parse::<Gate>().unwrap().judge(&report.trials);
    report.gates = ["pass>=0.5", "pass>=0.99", "latency_p95<=30000"].map(judge).to_vec();
    report
}

fn arm(name: &str, description: &str, hash: &str) -> ArmInfo {
    ArmInfo {
        name: name.to_owned(),
        agent: "support".to_owned(),
        agent_hash: format!("{hash}5b7e4d3c2b1a"),
        bindings_hash: format!("{hash}9f8e7d6c5b4a"),
        model: "OpenAI/gpt-4o-mini".to_owned(),
        file: format!("agents/{name}/support.gram"),
        description: description.to_owned(),
        ..ArmInfo::default()
    }
}

fn case(number: usize) -> CaseInfo {
    let (id, question, tags) = QUESTIONS[number % QUESTIONS.len()];
    let mut turns = vec![question.to_owned()];
    if number % 5 == 4 {
        turns.push("Thank you. And can you confirm that by mail?".to_owned());
    }
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    CaseInfo { id: format!("{id}-{}", number + 1), turns, tags, ..CaseInfo::default() }
}

fn trial(
    case: &CaseInfo,
    number: usize,
    repeat: u32,
    (arm, shape): (u64, ArmShape),
    order: u64,
    dice: &mut Dice,
) -> Trial {
    let saved = |whole: u64| (whole as i64 * (100 - shape.saved) / 100) as u64;
    let latency_ms = saved(900 + (number as u64 * 137) % 1_400) + dice.roll(500);
    let input_tokens = saved(700) + dice.roll(200);
    let output_tokens = 90 + dice.roll(80);
    let mut conversation = Conversation::default();
    let mut tools = Vec::new();
    for (turn, text) in case.turns.iter().enumerate() {
        conversation.push(Message::user(text.clone()));
        if turn == 0 && case.tags.iter().any(|tag| tag == "tools") {
            call(&mut conversation, &mut tools, arm, number, order);
        }
        conversation.push(Message::assistant(answer(number, arm, turn), Vec::new()));
    }
    let failed = dice.roll(60) < shape.failed;
    let missed = dice.roll(100) < shape.missed;
    if failed {
        conversation.truncate(1);
        tools.clear();
    }
    let message = "the server of the model answered 529: overloaded".to_owned();
    Trial {
        arm: shape.name.to_owned(),
        case: case.id.clone(),
        repeat,
        order,
        at_ms: 1_763_200_000_000 + order * 4_000,
        passed: !failed && !missed,
        judged: if failed { Vec::new() } else { judged(missed) },
        content: if failed { String::new() } else { answer(number, arm, case.turns.len() - 1) },
        failure: failed.then_some(RunFailure { kind: FailureKind::Model, message }),
        conversation,
        tools,
        latency_ms,
        usage: Usage { input_tokens, output_tokens, ..Usage::default() },
        cost: Some(Cost::from_picodollars(u128::from(input_tokens) * 150_000 + u128::from(output_tokens) * 600_000)),
        model_calls: 1 + case.turns.len() as u32,
    }
}

fn judged(missed: bool) -> Vec<CheckResult> {
    let why = match missed {
        true => "it promises a refund “within days”, but never says how the customer will learn of it or whom to ask",
        false => "it names the next step and when",
    };
    vec![
        CheckResult { check: "contains `please`".to_owned(), passed: true, error: false, why: String::new() },
        CheckResult {
            check: "a judge agrees: it says what happens next".to_owned(),
            passed: !missed,
            error: false,
            why: why.to_owned(),
        },
    ]
}

/// Adds tool calls: sometimes one that fails under the first arm, and one of another tool under the second.
fn call(conversation: &mut Conversation, tools: &mut Vec<ToolUse>, arm: u64, number: usize, order: u64) {
    let mut add = |tool: &str, args: Json, outcome: ToolOutcome| {
        let id = format!("{order}-{}", tools.len());
        let call = ToolCall { id: id.clone(), tool: tool.to_owned(), arguments: args.to_string() };
        conversation.push(Message::assistant("", vec![call]));
        let (result, error) = match &outcome {
            ToolOutcome::Value { value } => (Some(value.clone()), None),
            other => (None, Some(other.text())),
        };
        tools.push(ToolUse { tool: tool.to_owned(), args, result, error, duration_ms: Some(40) });
        conversation.push(Message::Tool { call_id: id, tool: tool.to_owned(), outcome });
    };
    if arm == 0 && number.is_multiple_of(2) {
        let message = "the order number must have four digits".to_owned();
        add("orders/find", json!({"order": "unknown"}), ToolOutcome::Error { message });
    }
    let value = json!({"order": 4711, "status": "on its way", "arrives": "Tuesday"});
    add("orders/find", json!({"order": 4711}), ToolOutcome::Value { value });
    if arm == 1 {
        add("mail/send", json!({"to": "customer"}), ToolOutcome::Value { value: json!("sent") });
    }
}

fn answer(number: usize, arm: u64, turn: usize) -> String {
    let text = match (number % 8, arm, turn) {
        (_, _, 1..) => "Yes. You get a mail within the hour.".to_owned(),
        (3, 0, _) => "Bien sûr : votre demande est chez nous. もちろん、日本語でもお答えします。".to_owned(),
        (3, ..) => "Bien sûr : votre demande est en cours. もちろん、日本語でも。 على الرحب والسعة".to_owned(),
        (7, 0, _) => format!("I cannot run this: {HOSTILE}"),
        (7, ..) => format!("I will not run this: {HOSTILE}"),
        (6, 0, _) => "You have thirty days. ".repeat(80) + "Please keep the receipt.",
        (_, 0, _) => {
            "I am sorry to hear that. I have looked at your order and can see both payments. One of them goes back \
                      to your card within five working days. Please write again if it has not arrived by then."
                .to_owned()
        }
        _ => {
            "I can see both payments. One of them goes back to your card within three working days, and you get a mail \
              when it has. Please write again if it has not arrived by then."
                .to_owned()
        }
    };
    if number == 11 { text + " " + &"averyverylongwordwithoutanyspace".repeat(30) } else { text }
}
