//! Calls of the model: what they may use, what they cost, and what happens if the model is not available.

use super::account::{Amount, Reservation};
use super::call::ruling;
use super::clock::{milliseconds, now_ms};
use super::interrupt::interruptible;
use super::journal::JournalError;
use super::pieces::ReplyPieces;
use super::run_task::RunTask;
use crate::model::{DeltaSink, ModelError};
use crate::trace::with_model_parent;
use patter_core::compile::CompiledAgent;
use patter_core::message::attachment::{AttachmentContents, attachments};
use patter_core::message::context::{estimate_text, message_bytes};
use patter_core::message::conversation::{Conversation, Usage};
use patter_core::message::request::{Reply, Request};
use patter_core::provider::ModelRef;
use patter_core::provider::price::{Bill, Price, Prices};
use patter_core::run::{CallTiming, FailureKind, PendingCall, Ruling, RunFailure, RunInput};
use std::cell::RefCell;
use std::time::Instant;

impl RunTask<'_> {
    /// Calls the model, or the one that replaces it since it is not available.
    pub(super) async fn call_model(&mut self) {
        let compiled = self.current_agent().clone();
        let model = match (self.driver.models)(compiled.model()) {
            Ok(model) => model,
            Err(error) => return self.fail_model(&error, CallTiming::default()),
        };
        let sent = self.run.sent_messages().into_owned();
        let contents = match self.attachments(&sent).await {
            Ok(contents) => contents,
            Err(error) => return self.fail_unsaved(&error),
        };
        let request = Request { contents: &contents, ..compiled.request(&sent) };
        let reservation = match self.reserve(&request).await {
            Ok(reservation) => reservation,
            Err(refused) => return self.apply(refused),
        };
        let agent = compiled.name();
        let pieces = ReplyPieces::new(self.driver, &self.event_log, agent, self.run.depth(), &self.path);
        let sink = pieces.is_wanted().then_some(&pieces as &DeltaSink<'_>);
        let provider = model.provider().name();
        tracing::debug!(agent, provider, model = %compiled.model(), messages = request.messages.len(), "calling model");
        let start = Instant::now();
        let parent = self.driver.tracer.as_ref().and_then(|tracer| tracer.model_parent(&self.path));
        let call = with_model_parent(parent, model.call(&request, sink, self.cancellation));
        let result = interruptible(self.cancellation, self.time_left(), call).await;
        let duration_ms = milliseconds(start.elapsed());
        let can_repeat = pieces.can_repeat();
        let (shown, timing) = pieces.end();
        if matches!(&result, Ok(Err(error)) if error.may_be_charged() || timing.first_piece_ms.is_some())
            || result.is_err()
        {
            self.charge_interrupted(reservation, compiled.model(), &request);
        } else if let Ok(Ok(reply)) = &result {
            let spent = self.settle(reservation, compiled.model(), reply.usage);
            self.charge(spent);
        }
        if !matches!(result, Ok(Ok(_))) && !shown.is_empty() {
            self.apply(RunInput::ReplyInterrupted { text: shown });
        }
        match result {
            Err(interruption) => {
                tracing::debug!(agent, provider, duration_ms, ?interruption, "model call interrupted");
                self.interrupt(interruption);
            }
            Ok(Ok(reply)) => {
                tracing::debug!(
                    agent,
                    provider,
                    model = %compiled.model(),
                    input_tokens = reply.usage.input_tokens,
                    output_tokens = reply.usage.output_tokens,
                    tool_calls = reply.calls.len(),
                    duration_ms,
                    "model replied"
                );
                self.apply_reply(reply, timing);
            }
            Ok(Err(ModelError::Cancelled)) => self.cancel(),
            Ok(Err(ModelError::TooLong { message })) => {
                tracing::debug!(agent, provider, duration_ms, message, "the request is too long");
                self.apply(RunInput::ContextExceeded { message, at: now_ms() });
            }
            Ok(Err(error)) => {
                tracing::debug!(agent, provider, model = %compiled.model(), duration_ms, %error, "model call failed");
                self.fall_back_or_fail(&compiled, &error, can_repeat, timing);
            }
        }
    }

    /// Returns the contents of the attachments of messages.
    async fn attachments(&self, messages: &Conversation) -> Result<AttachmentContents, JournalError> {
        if attachments(messages).is_empty() {
            return Ok(AttachmentContents::default());
        }
        let mut contents = self.driver.attachments.of_messages(messages);
        if let Some(journal) = &self.driver.journal {
            contents.extend(&self.unless_stopped(journal.attachments(messages)).await?);
        }
        Ok(contents)
    }

    /// Returns the agent with the model that is called now. A fallback that the agent no longer has is not called.
    pub(super) fn current_agent(&self) -> &CompiledAgent {
        let is_current = |fallback: &&CompiledAgent| Some(fallback.model().to_string().as_str()) == self.run.fallback();
        self.compiled.fallbacks().iter().find(is_current).unwrap_or(self.compiled)
    }

    /// Calls the next model, if this one is not available and nobody saw a part of its reply.
    pub(super) fn fall_back_or_fail(
        &mut self,
        failed: &CompiledAgent,
        error: &ModelError,
        can_repeat: bool,
        timing: CallTiming,
    ) {
        let fallbacks = self.compiled.fallbacks();
        if fallbacks.is_empty() || !error.is_transient() {
            return self.fail_model(error, timing);
        }
        let tried =
            fallbacks.iter().position(|fallback| fallback.model() == failed.model()).map_or(0, |index| index + 1);
        let rest = fallbacks.get(tried..).unwrap_or_default();
        let Some(next) = rest.first() else {
            return self.fail_with(error, "no fallback is left", timing);
        };
        if !can_repeat {
            let why = format!("a part of the reply was shown, so `{}` is not asked instead", next.model());
            return self.fail_with(error, &why, timing);
        }
        let mut unusable = Vec::new();
        let usable = rest.iter().find(|fallback| match (self.driver.models)(fallback.model()) {
            Ok(_) => true,
            Err(error) => {
                unusable.push(format!("the fallback `{}` cannot be used: {error}", fallback.model()));
                false
            }
        });
        let Some(next) = usable else { return self.fail_with(error, &unusable.join("; "), timing) };
        let from = failed.model().to_string();
        let because = std::iter::once(error.to_string()).chain(unusable).collect::<Vec<_>>().join("; ");
        let to = next.model().to_string();
        let context = Some(next.spec().context);
        self.apply(RunInput::FellBack { from, to, because, context, timing, at: now_ms() });
    }

    /// Waits until the request may be sent. Returns the input that ends the run if it may not.
    pub(super) async fn reserve(&self, request: &Request<'_>) -> Result<Option<Reservation>, RunInput> {
        if !self.account.is_limited() {
            return Ok(None);
        }
        let most = match most(request, &self.driver.prices, self.account.limits_cost()) {
            Ok(most) => most,
            Err(failure) => return Err(RunInput::LimitReached { failure, at: now_ms() }),
        };
        match interruptible(self.cancellation, self.time_left(), self.account.reserve(most)).await {
            Ok(Ok(reservation)) => Ok(Some(reservation)),
            Ok(Err(failure)) => Err(RunInput::LimitReached { failure, at: now_ms() }),
            Err(interruption) => Err(interruption.into_input()),
        }
    }

    /// Counts what a reply used, and returns what it cost.
    pub(super) fn settle(&self, reservation: Option<Reservation>, model: &ModelRef, usage: Usage) -> Bill {
        let cost = self.driver.prices.cost(model, usage);
        if let Some(reservation) = reservation {
            reservation.settle(&model.to_string(), usage, cost);
        }
        cost.into()
    }

    /// Notes what was spent, if anything was.
    pub(super) fn charge(&mut self, spent: Bill) {
        if !spent.is_empty() {
            self.apply(RunInput::Charged { spent, interrupted: false });
        }
    }

    /// Notes that a request was given up. Nobody knows what it cost, unless the model is free; limits count an estimate.
    pub(super) fn charge_interrupted(
        &mut self,
        reservation: Option<Reservation>,
        model: &ModelRef,
        request: &Request<'_>,
    ) {
        let input_tokens = estimate_text(request_bytes(request));
        let price = self.driver.prices.price(model);
        if let Some(reservation) = reservation {
            let usage = Usage { input_tokens, ..Usage::default() };
            reservation.settle(&model.to_string(), usage, price.map(|price| price.most(input_tokens, 0)));
        }
        if price != Some(Price::FREE) {
            self.apply(RunInput::Charged { spent: Bill::UNKNOWN, interrupted: true });
        }
    }

    fn apply_reply(&mut self, reply: Reply, timing: CallTiming) {
        let copy = self.is_observed().then(|| reply.clone());
        let at = now_ms();
        let executor = &self.executor;
        let rulings = RefCell::new(Vec::<Ruling>::new());
        let decide = |call: &PendingCall| {
            let ruling = ruling(executor, call);
            if copy.is_some() {
                rulings.borrow_mut().push(ruling.clone());
            }
            ruling
        };
        if let Err(error) = self.run.model_replied(reply, at, &decide) {
            return tracing::error!(%error, "the run did not expect a reply");
        }
        if let Some(reply) = copy {
            self.publish(RunInput::ModelReplied { reply, rulings: rulings.into_inner(), timing, at });
        }
    }

    pub(super) fn fail_model(&mut self, error: &ModelError, timing: CallTiming) {
        self.fail_with(error, error.hint().unwrap_or_default(), timing);
    }

    fn fail_with(&mut self, error: &ModelError, remark: &str, timing: CallTiming) {
        let kind = match error {
            ModelError::Configuration { .. } => FailureKind::Configuration,
            _ => FailureKind::Model,
        };
        let remark = if remark.is_empty() { String::new() } else { format!("; {remark}") };
        let failure = RunFailure { kind, message: format!("{error}{remark}") };
        self.apply(RunInput::ModelFailed { failure, timing, at: now_ms() });
    }
}

/// Returns the most that a request can use. A model without a price cannot be called if the cost is limited.
pub(super) fn most(request: &Request<'_>, prices: &Prices, limits_cost: bool) -> Result<Amount, RunFailure> {
    let price = prices.price(request.model);
    if limits_cost && price.is_none() {
        let model = request.model;
        let message = format!(
            "the cost is limited, but the price of `{model}` is not known; set it in `[prices.\"{model}\"]` of patter.toml"
        );
        return Err(RunFailure { kind: FailureKind::Configuration, message });
    }
    // No token is shorter than a byte.
    Ok(Amount::most(request_bytes(request), request.settings.max_tokens, price))
}

/// Returns at least how many bytes the texts of a request have, with something for what surrounds them.
fn request_bytes(request: &Request<'_>) -> u64 {
    const AROUND: usize = 64;
    // Providers add instructions of their own on how to call tools.
    const ABOUT_TOOLS: usize = 1024;
    let about_tools = if request.tools.is_empty() { 0 } else { ABOUT_TOOLS };
    let tools = request.tools.iter().map(|tool| tool.description.len() + tool.schema.text().len() + AROUND);
    let messages = request.messages.iter().map(|message| message_bytes(message) + AROUND as u64);
    (AROUND + about_tools + request.instruction.len() + tools.sum::<usize>()) as u64 + messages.sum::<u64>()
}
