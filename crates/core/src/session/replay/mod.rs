//! Recorded runs, compared with what agents as they are now would have done.
//!
//! The recorded replies and results are told again to runs of the agents as they are now. At each call of the model, what
//! it would be asked is compared with what it was asked; after each reply, what is decided about its calls. Where
//! something differs, nobody knows what the model would have said next.

mod difference;

pub use difference::{Difference, differences};

use crate::message::conversation::Message;
use crate::message::request::{Frame, Reply};
use crate::permission::Decision;
use crate::run::{Beginning, PendingCall, Ruling, Run, RunError, RunInput, RunSpec, Target};
use crate::session::{Entry, Log, LogError, RunPath};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Finds agents as they are now.
pub trait CurrentAgents {
    /// Returns an agent as it is now, for a run: by its path, and the name that the agent had. Nothing if there is none.
    fn actor(&self, run: &[String], agent: &str) -> Option<CurrentAgent<'_>>;
}

/// An agent as it is now.
pub struct CurrentAgent<'c> {
    /// What its model is given.
    pub frame: Arc<Frame>,
    /// What a run knows of it.
    pub spec: RunSpec,
    /// Decides about calls.
    pub decide: Box<dyn Fn(&PendingCall) -> Ruling + 'c>,
}

/// What is done after a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing more: what the model would have said is not known.
    Stop,
    /// What was recorded is told all the same, as long as it fits, to find all that differs.
    GoOn,
}

/// How recorded runs compare with agents as they are now.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// How many runs of a person were compared.
    pub turns: usize,
    /// Whether what was recorded ends before the last of them does.
    pub is_cut: bool,
    /// How many calls of models were compared, and found to be the same.
    pub same: usize,
    /// Where something differs.
    pub divergences: Vec<Divergence>,
}

/// A place where something differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// Where.
    pub place: Place,
    /// What.
    pub differences: Vec<Difference>,
}

/// A call of a model in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Which run of a person, counted from 1.
    pub turn: usize,
    /// The agents that called one another until there, by the names that they had.
    pub agents: Vec<String>,
    /// Which call of the model in the run of the last of them, counted from 1.
    pub model_call: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<_> = self.agents.iter().map(|agent| format!("`{agent}`")).collect();
        write!(f, "turn {}, model call {} of {}", self.turn, self.model_call, agents.join(" → "))
    }
}

/// Compares what was recorded with agents as they are now.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::permission::Decision;
/// use patter_core::session::replay::{CurrentAgent, After, CurrentAgents, compare};
/// use patter_core::message::request::{Finish, Frame, Reply, Settings};
/// use patter_core::run::{Ruling, Run, RunSpec, RunInput};
/// use patter_core::session::Entry;
///
/// struct Now(&'static str);
/// fn frame(instruction: &str) -> Frame {
///     let (model, tools, settings) = ("demo".to_owned(), Vec::new(), Settings::default());
///     Frame { model, instruction: instruction.to_owned(), tools, settings, returns: None }
/// }
/// impl CurrentAgents for Now {
///     fn actor(&self, _: &[String], agent: &str) -> Option<CurrentAgent<'_>> {
///         let decide = Box::new(|_: &_| Ruling { decision: Decision::Allow, because: String::new() });
///         let spec = RunSpec { agent: agent.to_owned(), ..RunSpec::default() };
///         Some(CurrentAgent { frame: frame(self.0).into(), spec, decide })
///     }
/// }
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let frame = Some(frame("Greet.").into());
/// let reply = Reply { text: "Hi!".into(), calls: vec![], finish: Finish::Stop, usage: Usage::default(), opaque: None };
/// let entries = [
///     Entry::Began { run: vec![], frame, bindings: String::new(), beginning: run.beginning() },
///     Entry::Input { run: vec![], input: RunInput::Reply { reply, rulings: vec![], at: 5 } },
/// ];
/// let same = compare(entries.clone(), &Now("Greet."), After::Stop).unwrap();
/// assert_eq!((same.same, same.divergences.len()), (1, 0));
/// let edited = compare(entries, &Now("Greet kindly."), After::Stop).unwrap();
/// assert_eq!(edited.divergences[0].place.to_string(), "turn 1, model call 1 of `hi`");
/// assert_eq!(edited.divergences[0].differences[0].to_string(), "the instruction is another");
/// ```
pub fn compare(
    entries: impl IntoIterator<Item = Entry>,
    cast: &dyn CurrentAgents,
    after: After,
) -> Result<Comparison, LogError> {
    let found = Comparison::default();
    let mut comparing = Comparing { cast, after, log: Log::default(), now: HashMap::new(), found };
    for entry in entries {
        comparing.entry(entry)?;
        if after == After::Stop && !comparing.found.divergences.is_empty() {
            return Ok(comparing.found);
        }
    }
    comparing.found.is_cut = comparing.log.run().is_some();
    Ok(comparing.found)
}

struct Comparing<'c> {
    cast: &'c dyn CurrentAgents,
    after: After,
    /// What was recorded.
    log: Log,
    /// The runs as they are now, as long as they are comparable.
    now: HashMap<RunPath, ReplayedRun<'c>>,
    found: Comparison,
}

struct ReplayedRun<'c> {
    actor: CurrentAgent<'c>,
    run: Run,
    agents: Vec<String>,
    /// What differs in what the model is given, until it is told.
    pending: Vec<Difference>,
    /// Whether the model is given the same.
    is_same: bool,
    /// How much of the conversation was compared.
    compared: usize,
}

/// A call as it was decided on.
struct Decided {
    id: String,
    tool: String,
    served: String,
    ruling: Ruling,
}

impl<'c> Comparing<'c> {
    fn entry(&mut self, entry: Entry) -> Result<(), LogError> {
        match entry {
            Entry::Began { run: path, frame, bindings, beginning } => {
                let before = self.log.conversation().to_vec();
                let begun = beginning.clone();
                self.log.apply(Entry::Began { run: path.clone(), frame, bindings, beginning })?;
                if path.is_empty() {
                    self.found.turns += 1;
                    self.now.clear();
                }
                self.begin(&path, begun, before);
                self.compare_ends(&path);
            }
            Entry::Input { run: path, input } => {
                let then = self.then(&path).cloned();
                self.log.apply(Entry::Input { run: path.clone(), input: input.clone() })?;
                if let Some(then) = then {
                    self.tell(&path, &then, input);
                    self.compare_ends(&path);
                }
            }
            other => {
                if let Entry::Restored { run, .. } = &other {
                    self.now.remove(run);
                }
                self.log.apply(other)?;
            }
        }
        Ok(())
    }

    /// Returns a run as it was recorded.
    fn then(&self, path: &RunPath) -> Option<&Run> {
        if path.is_empty() { self.log.run().or(self.log.last()) } else { self.log.inner(path) }
    }

    fn begin(&mut self, path: &RunPath, beginning: Beginning, before: Vec<Message>) {
        let agent = beginning.spec.agent.clone();
        let parent = path.split_last().map(|(call, above)| (call, self.now.get(above)));
        let mut agents = match &parent {
            // The run that called it is not comparable any more.
            Some((_, None)) => return,
            Some((_, Some(parent))) => parent.agents.clone(),
            None => Vec::new(),
        };
        agents.push(agent.clone());
        let cast: &'c dyn CurrentAgents = self.cast;
        let Some(actor) = cast.actor(path, &agent) else {
            return self.diverge(agents, 1, vec![Difference::AgentGone { agent }]);
        };
        let mut spec = actor.spec.clone();
        let Beginning { spec: was, depth, input, at } = beginning;
        let begun = match parent {
            // Limits may have been given apart from the text.
            _ if spec.hash == was.hash => {
                spec.limits = was.limits;
                Run::begin(Beginning { spec, depth, input, at }, before_of(path, before))
                    .map_err(|error| error.to_string())
            }
            Some((call, Some(parent))) => match (parent.run.child(call, spec.clone(), at), self.after) {
                (Ok(run), _) => Ok(run),
                // The call has another result by now, or none yet.
                (Err(_), After::GoOn) => {
                    Run::begin(Beginning { spec, depth, input, at }, Vec::new()).map_err(|error| error.to_string())
                }
                (Err(error), After::Stop) => Err(error.to_string()),
            },
            _ => Run::begin(Beginning { spec, depth, input, at }, before).map_err(|error| error.to_string()),
        };
        match begun {
            Ok(run) => {
                let frame = self.log.frame(&agent);
                let pending = frame.map(|frame| differences(frame, &actor.frame)).unwrap_or_default();
                let (is_same, compared) = (pending.is_empty(), 0);
                self.now.insert(path.clone(), ReplayedRun { actor, run, agents, pending, is_same, compared });
            }
            Err(message) => self.diverge(agents, 1, vec![Difference::Impossible { message }]),
        }
    }

    fn tell(&mut self, path: &RunPath, then: &Run, input: RunInput) {
        let Some(playing) = self.now.get_mut(path) else { return };
        let mut found = std::mem::take(&mut playing.pending);
        let number = then.model_calls() + 1;
        let result = match input {
            RunInput::Reply { reply, rulings, at } => {
                if self.after == After::GoOn {
                    playing.catch_up(then.conversation(), at);
                }
                found.extend(playing.conversation(then.conversation()));
                let was = decided_then(then, &reply, rulings, at);
                let (is, result) = playing.reply(reply, at, if self.after == After::GoOn { &was } else { &[] });
                found.extend(decisions(&was, &is, then.spec(), playing.run.spec()));
                if found.is_empty() && playing.is_same {
                    self.found.same += 1;
                }
                result
            }
            input => {
                // What the model is given counts once it is called.
                if !matches!(input, RunInput::ModelFailed { .. }) {
                    playing.pending = std::mem::take(&mut found);
                }
                match (playing.run.apply(input), self.after) {
                    // The call of a tool that is gone has its result, which the model reads next.
                    (Err(RunError::Finished { .. } | RunError::NotAsked { .. }), After::GoOn) | (Ok(()), _) => Ok(()),
                    (Err(error), _) => Err(error.to_string()),
                }
            }
        };
        let agents = playing.agents.clone();
        if let Err(message) = result {
            self.now.remove(path);
            found.push(Difference::Impossible { message });
        }
        if !found.is_empty() {
            self.diverge(agents, number, found);
        }
    }

    /// Compares whether, and how, a run has ended.
    fn compare_ends(&mut self, path: &RunPath) {
        let Some((then, playing)) = self.then(path).zip(self.now.get(path)) else { return };
        let difference = match (then.outcome(), playing.run.outcome()) {
            (None, Some(now)) => Difference::Ends { now: now.clone() },
            (Some(then), None) => Difference::GoesOn { then: then.clone() },
            (Some(then), Some(now)) if then != now => Difference::Outcome { then: then.clone(), now: now.clone() },
            (Some(_), Some(_)) | (None, None) => return,
        };
        let (agents, number) = (playing.agents.clone(), then.model_calls().max(1));
        // Nothing more can be compared.
        self.now.remove(path);
        self.diverge(agents, number, vec![difference]);
    }

    fn diverge(&mut self, agents: Vec<String>, model_call: u32, differences: Vec<Difference>) {
        let place = Place { turn: self.found.turns, agents, model_call };
        match self.found.divergences.last_mut() {
            Some(last) if last.place == place => last.differences.extend(differences),
            _ => self.found.divergences.push(Divergence { place, differences }),
        }
    }
}

/// Returns the conversation that a run begins with: that of a called agent is its own.
fn before_of(path: &RunPath, before: Vec<Message>) -> Vec<Message> {
    if path.is_empty() { before } else { Vec::new() }
}

/// Returns what was decided about the calls of a reply.
fn decided_then(then: &Run, reply: &Reply, rulings: Vec<Ruling>, at: u64) -> Vec<Decided> {
    let (rulings, decided) = (RefCell::new(rulings.into_iter()), RefCell::new(Vec::new()));
    let unknown = || Ruling { decision: Decision::Deny, because: String::new() };
    let decide = |call: &PendingCall| {
        let ruling = rulings.borrow_mut().next().unwrap_or_else(unknown);
        decided.borrow_mut().push(Decided::new(call, &ruling));
        ruling
    };
    // The log took the same reply, so this run does.
    let _ = then.clone().reply(reply.clone(), at, &decide);
    decided.into_inner()
}

impl ReplayedRun<'_> {
    /// Returns the first message that differs, of those that were not compared before.
    fn conversation(&mut self, then: &[Message]) -> Option<Difference> {
        let now = self.run.conversation();
        let end = then.len().max(now.len());
        let index = (self.compared..end).find(|index| then.get(*index) != now.get(*index));
        self.compared = end;
        let index = index?;
        let (then, now) = (then.get(index).cloned(), now.get(index).cloned());
        Some(Difference::Conversation { number: index + 1, then, now })
    }

    /// Tells the run the results that calls had at once, such as those of a tool that was none, where it still waits for
    /// them. What is wrong with a result that it does not wait for is told already.
    fn catch_up(&mut self, then: &[Message], at: u64) {
        let is_result = |message: &&Message| matches!(message, Message::Tool { .. });
        let results = then.len() - then.iter().rev().take_while(is_result).count();
        for message in then.iter().skip(results) {
            if let Message::Tool { call_id, outcome, .. } = message {
                let _ = self.run.approved(call_id);
                let _ = self.run.finished(call_id, outcome.clone(), 0, at);
            }
        }
    }

    /// Tells the run a reply, and returns what is decided about its calls. What was decided before takes the place of
    /// that, so that what was recorded fits.
    fn reply(&mut self, reply: Reply, at: u64, before: &[Decided]) -> (Vec<Decided>, Result<(), String>) {
        let decided = RefCell::new(Vec::new());
        let decide = |call: &PendingCall| {
            let ruling = (self.actor.decide)(call);
            decided.borrow_mut().push(Decided::new(call, &ruling));
            before.iter().find(|was| was.id == call.id).map_or(ruling, |was| was.ruling.clone())
        };
        let result = self.run.reply(reply, at, &decide).map_err(|error| error.to_string());
        (decided.into_inner(), result)
    }
}

fn decisions(then: &[Decided], now: &[Decided], had: &RunSpec, has: &RunSpec) -> Vec<Difference> {
    fn knows(spec: &RunSpec, tool: &str) -> bool {
        spec.tools.iter().any(|callable| callable.name == tool)
    }
    fn same<'d>(all: &'d [Decided], one: &Decided) -> Option<&'d Decided> {
        all.iter().find(|other| other.id == one.id)
    }
    let mut found = Vec::new();
    for was in then {
        let Some(is) = same(now, was) else {
            // Calls that a limit forbids end the run, which is told as such.
            if !knows(has, &was.tool) {
                found.push(Difference::NoSuchTool { tool: was.tool.clone() });
            }
            continue;
        };
        if was.served != is.served {
            let (tool, then, now) = (was.tool.clone(), was.served.clone(), is.served.clone());
            found.push(Difference::Served { tool, then, now });
        }
        // Why a call is refused is for the model to read.
        let is_other = was.ruling.decision != is.ruling.decision
            || (is.ruling.decision == Decision::Deny && was.ruling.because != is.ruling.because);
        if is_other {
            let (tool, then, now) = (was.tool.clone(), was.ruling.clone(), is.ruling.clone());
            found.push(Difference::Ruling { tool, then, now });
        }
    }
    let new = now.iter().filter(|is| same(then, is).is_none() && !knows(had, &is.tool));
    found.extend(new.map(|is| Difference::NewTool { tool: is.tool.clone() }));
    found
}

impl Decided {
    fn new(call: &PendingCall, ruling: &Ruling) -> Self {
        let served = match &call.target {
            Target::Tool { name, .. } => name.to_string(),
            Target::Agent { name } => name.clone(),
        };
        Self { id: call.id.clone(), tool: call.tool.clone(), served, ruling: ruling.clone() }
    }
}
