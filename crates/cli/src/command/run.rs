//! `patter run`: asks an agent.

use crate::setup::{Rules, Setup, ToolSources, Toolset, confirmed, split_agent};
use crate::{Outcome, diagnostics, print, unsent};
use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use patter::agent::CompileError;
use patter::conversation;
use patter::drive::{Answer, Approver, Driver, Happened, RunEvent, Tally, now};
use patter::model::models_with;
use patter::name::ModelRef;
use patter::price::Cost;
use patter::project::Servers;
use patter::run::{self, FailureKind, PendingCall, Run as AgentRun};
use patter::tool::BoxFuture;
use serde_json::{Value as Json, json};
use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

/// Run an agent: it answers a prompt, and calls its tools on the way
///
/// The answer streams to stdout; tool calls and a summary go to stderr. Before a token is spent, the tools are bound and
/// the key is looked for. `--model demo` runs without a key and without a network: it is no language model, but picks
/// tools by the words of the prompt.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter run examples/hello.gram \"Hello! My name is Alice.\" --model demo\n  \
                        git diff | patter run review.gram - --output-format json\n  \
                        patter run shop.gram#clerk \"Refund order 7\" --ask 'shop/refund'")]
pub(crate) struct Run {
    /// File with the agent; without a name the one that no other of the file calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// What to say to it; - reads stdin
    #[arg(default_value = "-")]
    prompt: String,

    /// Model to use, whatever the file says: Provider/name, or demo
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelRef>,

    /// Call the model at most this often
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Approve all calls that are asked about
    #[arg(long, short)]
    yes: bool,

    /// How to show what happens
    #[arg(long, value_enum, default_value_t = Format::Text)]
    output_format: Format,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    sources: ToolSources,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The answer as it comes
    Text,
    /// One JSON document at the end
    Json,
    /// A JSON document for each event, one a line
    StreamJson,
}

const TOOL: Style = AnsiColor::Cyan.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

impl Run {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let prompt = match self.prompt.as_str() {
            "-" => {
                let mut text = String::new();
                io::stdin().lock().take(16 * 1024 * 1024).read_to_string(&mut text)?;
                text
            }
            prompt => prompt.to_owned(),
        };
        let (file, name) = split_agent(&self.agent);
        let Some(setup) = Setup::read(&[file], &self.sources, &Servers::All)? else { return Ok(Outcome::Failure) };
        let Some(agent) = setup.agent(name)? else { return Ok(Outcome::Failure) };
        let Some(rules) = self.rules.all(&setup.config)? else { return Ok(Outcome::Usage) };
        let (project, library) = (Arc::new(setup.loaded.project), Arc::clone(&setup.toolset.library));
        let settings = (&setup.toolset.environment, &setup.config.models);
        unsent::warn(vec![agent.clone()], (&project, &library), self.model.as_ref(), settings)?;
        let models = models_with(&setup.toolset.environment, &setup.config.models);
        let mut driver = Driver::new(project, library, Arc::clone(&models)).with_rules(rules);
        if let Some(model) = &self.model {
            driver = driver.with_model(model.clone());
        }
        let tally = Arc::new(Tally::new(setup.config.prices()));
        let (heard, show) = (Arc::clone(&tally), listener(self.output_format));
        driver = driver.with_approver(Terminal { yes: self.yes }).with_listener(move |event| {
            heard.hear(event);
            show(event);
        });
        let compiled = match driver.compile(&agent) {
            Ok(compiled) => compiled,
            Err(CompileError::Bind(error)) => {
                for failure in &error.failures {
                    diagnostics::error(&failure.to_string(), failure.hint().as_deref())?;
                }
                return Ok(Outcome::Failure);
            }
            Err(error) => return fail(&error.to_string(), Some("`patter check` says more")),
        };
        let mut spec = compiled.spec().clone();
        spec.limits.max_model_calls = self.max_turns.unwrap_or(spec.limits.max_model_calls);
        if let Some(timeout) = self.timeout {
            spec.limits.deadline_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        }
        let model = match models(compiled.model()) {
            Ok(model) => model,
            Err(error) => return fail(&format!("ConfigurationError: {error}"), error.hint()),
        };
        let run = match AgentRun::start(spec, Vec::new(), &prompt, now()) {
            Ok(run) => run,
            Err(error) => return fail(&format!("{}: {error}", error.name()), Some("say something to the agent")),
        };
        if let Some(notice) = model.notice() {
            diagnostics::say(&format!("{DIM}{notice}{DIM:#}"))?;
        }
        let Toolset { runtime, stop, .. } = &setup.toolset;
        let run = runtime.block_on(driver.drive(&compiled, run, stop, &mut |_| {}));
        self.end(&run, compiled.bindings_hash(), tally.cost())
    }

    fn end(&self, run: &AgentRun, bindings: &str, cost: Option<Cost>) -> io::Result<Outcome> {
        let (usage, response) = (run.usage(), run.response());
        match self.output_format {
            Format::Text => {
                print("\n")?;
                let seconds = f64::from(u32::try_from(run.elapsed_ms()).unwrap_or(u32::MAX)) / 1000.0;
                let counts = [
                    diagnostics::counted(run.model_calls() as usize, "model call"),
                    diagnostics::counted(response.tools_used.len(), "tool call"),
                    diagnostics::counted((usage.input_tokens + usage.output_tokens) as usize, "token"),
                    Some(format!("{seconds:.1} s")),
                    Some(cost.map_or_else(|| "cost unknown".to_owned(), |cost| cost.to_string())),
                ];
                let counts: Vec<_> = counts.into_iter().flatten().collect();
                diagnostics::say(&format!("{DIM}{}{DIM:#}", counts.join(", ")))?;
            }
            Format::Json => {
                let error = match run.outcome() {
                    Some(run::Outcome::Failed(failure)) => {
                        json!({"kind": failure.kind.name(), "message": failure.message})
                    }
                    Some(run::Outcome::Cancelled) => json!({"kind": "Cancelled", "message": "the run was stopped"}),
                    _ => Json::Null,
                };
                let mut document = json!(response);
                if let Json::Object(document) = &mut document {
                    document.insert("usage".to_owned(), json!(usage));
                    document.insert("cost_usd".to_owned(), json!(cost.map(Cost::dollars)));
                    document.insert("model_calls".to_owned(), json!(run.model_calls()));
                    document.insert("bindings".to_owned(), json!(bindings));
                    document.insert("conversation".to_owned(), json!(run.conversation()));
                    if !error.is_null() {
                        document.insert("error".to_owned(), error);
                    }
                }
                print(&format!("{document:#}\n"))?;
            }
            Format::StreamJson => {}
        }
        match run.outcome() {
            Some(run::Outcome::Answer { .. }) => Ok(Outcome::Success),
            Some(run::Outcome::Failed(failure)) => {
                let hint = match failure.kind {
                    FailureKind::ModelCalls => Some("--max-turns allows more"),
                    _ => None,
                };
                fail(&format!("{}: {failure}", failure.kind.name()), hint)
            }
            Some(run::Outcome::Cancelled) | None => {
                diagnostics::say("the run was stopped")?;
                Ok(Outcome::Code(130))
            }
        }
    }
}

fn fail(message: &str, hint: Option<&str>) -> io::Result<Outcome> {
    diagnostics::error(message, hint)?;
    Ok(Outcome::Failure)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.trim_end_matches('s').parse().map_err(|_| "write seconds, as in 30".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Asks at the terminal, where there is one.
struct Terminal {
    yes: bool,
}

impl Approver for Terminal {
    fn ask<'a>(&'a self, _: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            if self.yes {
                return Answer::Approve;
            }
            if !io::stdin().is_terminal() {
                return Answer::Refuse("it needs an approval, and there is nobody to ask".to_owned());
            }
            let arguments = diagnostics::visible(&call.arguments.to_string());
            let question = format!("call {} with {arguments} ({because})?", call.tool);
            if confirmed(question).await {
                Answer::Approve
            } else {
                Answer::Refuse("the person at the terminal refused it".to_owned())
            }
        })
    }
}

/// Shows what happens. That it cannot be shown is no reason to stop.
fn listener(format: Format) -> impl Fn(&RunEvent) + Send + Sync {
    move |event| {
        let _ = match format {
            Format::Text => show(event),
            Format::StreamJson => print(&format!("{}\n", json!(event))),
            Format::Json => Ok(()),
        };
    }
}

fn show(event: &RunEvent) -> io::Result<()> {
    let indent = "  ".repeat(event.depth as usize);
    match &event.happened {
        // What other agents say is for the one that called them.
        Happened::Text { text } if event.depth == 0 => {
            // A terminal obeys what it is sent; a file or a pipe gets the answer as it is.
            if io::stdout().is_terminal() { print(&diagnostics::visible(text)) } else { print(text) }
        }
        Happened::ToolStarted { tool, arguments, .. } => {
            diagnostics::say(&format!("{indent}{DIM}→{DIM:#} {TOOL}{tool}{TOOL:#} {}", short(&arguments.to_string())))
        }
        Happened::Waiting { seconds, because } => {
            diagnostics::say(&format!("{indent}{DIM}waiting {seconds:.1} s: {}{DIM:#}", short(because)))
        }
        Happened::ToolProgress { message, .. } => diagnostics::say(&format!("{indent}  {DIM}{message}{DIM:#}")),
        Happened::ToolFinished { tool, outcome, duration_ms, .. } => {
            let text = short(&outcome.text());
            let style = if matches!(outcome, conversation::Outcome::Value { .. }) { Style::new() } else { BAD };
            let line = format!("{indent}{DIM}←{DIM:#} {TOOL}{tool}{TOOL:#} {style}{text}{style:#}");
            diagnostics::say(&format!("{line} {DIM}{duration_ms} ms{DIM:#}"))
        }
        _ => Ok(()),
    }
}

/// Cuts a text to one line of a terminal.
fn short(text: &str) -> String {
    let line = diagnostics::visible(text).replace('\n', " ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
