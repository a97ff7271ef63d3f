//! Questions of tools to the person and to the model of a run.

use super::account::Account;
use super::driver::Driver;
use super::model_call::most;
use crate::tool::{Answer, BoxFuture, CancellationToken, Question, Respondent, SampledReply, SamplingRequest};
use patter_core::compile::CompiledAgent;
use patter_core::message::attachment::AttachmentContents;
use patter_core::message::conversation::Usage;
use patter_core::message::request::{Request, Settings};
use patter_core::provider::price::Bill;
use patter_core::run::Limits;
use std::sync::{Arc, Mutex, PoisonError};

/// Answers the questions of the tools that a run calls.
pub(super) struct RunHost {
    pub(super) driver: Driver,
    pub(super) compiled: CompiledAgent,
    pub(super) used: UsedBefore,
    pub(super) account: Arc<Account>,
    /// What the tools of the run have sampled.
    pub(super) sampled: SampledTotal,
    /// What this call has sampled.
    pub(super) own: Arc<Mutex<Sampled>>,
    pub(super) cancellation: CancellationToken,
}

/// What a run may use, and what it used before a call.
#[derive(Clone)]
pub(super) struct UsedBefore {
    pub(super) limits: Limits,
    pub(super) model_calls: u32,
    pub(super) tokens: u64,
}

/// What a call asked of models: that of the agent, or those of an agent that it called.
#[derive(Clone, Copy, Default)]
pub(super) struct Sampled {
    /// How often it called the model of the agent.
    pub(super) model_calls: u32,
    pub(super) usage: Usage,
    pub(super) spent: Bill,
}

/// The model calls and tokens that the calls in progress of a run asked for.
#[derive(Clone, Default)]
pub(super) struct SampledTotal(Arc<Mutex<(u32, u64)>>);

impl SampledTotal {
    fn add(&self, calls: u32, tokens: u64) -> (u32, u64) {
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *total = (total.0.saturating_add(calls), total.1.saturating_add(tokens));
        *total
    }

    /// Removes what a call asked for, once the run counts it.
    pub(super) fn remove(&self, sampled: Sampled) {
        let tokens = sampled.usage.input_tokens.saturating_add(sampled.usage.output_tokens);
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *total = (total.0.saturating_sub(sampled.model_calls), total.1.saturating_sub(tokens));
    }
}

impl Respondent for RunHost {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.driver.approver.answer(self.compiled.name(), question)
    }

    fn sample<'a>(
        &'a self,
        question: &'a Question,
        request: SamplingRequest,
    ) -> BoxFuture<'a, Result<SampledReply, String>> {
        Box::pin(async move {
            if self.compiled.is_workflow() {
                return Err("a workflow has no model".to_owned());
            }
            if !matches!(self.ask(question).await, Answer::Accept(_)) {
                return Err("the person did not agree".to_owned());
            }
            let UsedBefore { limits, model_calls, tokens: before } = &self.used;
            let (calls, tokens) = self.sampled.add(1, 0);
            if model_calls.saturating_add(calls) > limits.max_model_calls {
                self.sampled.remove(Sampled { model_calls: 1, ..Sampled::default() });
                return Err(format!("the run may call its model at most {} times", limits.max_model_calls));
            }
            if limits.max_tokens.is_some_and(|limit| before.saturating_add(tokens) >= limit) {
                self.sampled.remove(Sampled { model_calls: 1, ..Sampled::default() });
                return Err("the run has used up its tokens".to_owned());
            }
            let settings = Settings {
                max_tokens: Some(request.max_tokens),
                temperature: request.temperature,
                stop: request.stop,
                ..Settings::default()
            };
            self.own.lock().unwrap_or_else(PoisonError::into_inner).model_calls += 1;
            let model = (self.driver.models)(self.compiled.model()).map_err(|error| error.to_string())?;
            // Neither the instruction nor the conversation nor the tools of the agent: they are not the server's.
            let request = Request {
                model: self.compiled.model(),
                instruction: &request.instruction,
                messages: &request.messages,
                contents: AttachmentContents::NONE,
                tools: &[],
                settings: &settings,
                returns: None,
            };
            let most =
                most(&request, &self.driver.prices, self.account.limits_cost()).map_err(|error| error.message)?;
            let reservation = self.account.reserve(most).await.map_err(|error| error.message)?;
            let reply = model.call(&request, None, &self.cancellation).await.map_err(|error| error.to_string())?;
            self.sampled.add(0, reply.usage.input_tokens.saturating_add(reply.usage.output_tokens));
            let cost = self.driver.prices.cost(self.compiled.model(), reply.usage);
            reservation.settle(&self.compiled.model().to_string(), reply.usage, cost);
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            own.usage += reply.usage;
            own.spent.add(cost);
            drop(own);
            let model = self.compiled.model().to_string();
            Ok(SampledReply { text: reply.text, model, finish: reply.finish, usage: reply.usage })
        })
    }
}
