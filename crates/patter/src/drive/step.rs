//! Steps of workflows: what starts next, and what people answer.

use super::approve::PersonAnswer;
use super::call::{CallEnd, ruling};
use super::clock::now_ms;
use super::interrupt::interruptible;
use super::run_task::{RunTask, RunningCalls};
use futures_util::StreamExt;
use patter_core::message::conversation::{ToolOutcome, Usage};
use patter_core::run::{PendingCall, Ruling, RunInput};
use std::cell::RefCell;
use std::time::Duration;

/// How often a person is asked again after an answer that does not have the right type.
const MAX_ATTEMPTS: usize = 5;

impl RunTask<'_> {
    /// Adds the calls that a workflow makes next.
    pub(super) fn plan(&mut self) {
        let at = now_ms();
        let calls = self.run.planned_calls(at);
        let rulings = RefCell::new(Vec::new());
        let executor = &self.executor;
        let decide = |call: &PendingCall| {
            let ruling: Ruling = ruling(executor, call);
            rulings.borrow_mut().push(ruling.clone());
            ruling
        };
        let planned = self.run.steps_planned(calls.clone(), at, &decide);
        let rulings = rulings.into_inner();
        match planned {
            Ok(()) if self.is_observed() => self.publish(RunInput::StepsPlanned { calls, rulings, at }),
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(%error, "the run did not expect steps");
                self.cancel();
            }
        }
    }

    /// Ends the questions whose time is up.
    pub(super) fn expire_questions(&mut self) {
        let now = now_ms();
        let is_late = |call: &&PendingCall| call.expires_at.is_some_and(|expires_at| expires_at <= now);
        let late: Vec<_> = self.run.person_calls().filter(is_late).map(|call| call.id.clone()).collect();
        for call_id in late {
            self.expire(call_id);
        }
    }

    fn expire(&mut self, call_id: String) {
        let message = "nobody answered in time".to_owned();
        self.finish_question(call_id, ToolOutcome::Error { message });
    }

    fn finish_question(&mut self, call_id: String, outcome: ToolOutcome) {
        let usage = Usage::default();
        self.apply(RunInput::CallFinished { call_id, outcome, duration_ms: 0, usage, model_calls: 0, at: now_ms() });
    }

    /// Asks a person the question of a step. Other calls continue meanwhile.
    pub(super) async fn ask_person(&mut self, call: &PendingCall, running: &mut RunningCalls<'_>) {
        let driver = self.driver;
        let compiled = self.compiled;
        let text = call.arguments.get("question").and_then(|question| question.as_str()).unwrap_or_default();
        let mut problem: Option<String> = None;
        for _ in 0..MAX_ATTEMPTS {
            let asked = problem.take();
            let mut question = driver.approver.answer_step(compiled.name(), call, text, asked.as_deref());
            let answer = loop {
                let expiry = async {
                    match call.expires_at.map(|expires_at| expires_at.saturating_sub(now_ms())) {
                        Some(left) => tokio::time::sleep(Duration::from_millis(left)).await,
                        None => std::future::pending().await,
                    }
                };
                let first = async {
                    tokio::select! {
                        biased;
                        answer = &mut question => QuestionEvent::Answered(answer),
                        Some(ended) = running.next() => QuestionEvent::CallEnded(ended),
                        () = expiry => QuestionEvent::Expired,
                    }
                };
                match interruptible(self.cancellation, self.time_left(), first).await {
                    Err(interruption) => return self.interrupt(interruption),
                    Ok(QuestionEvent::Answered(answer)) => break answer,
                    Ok(QuestionEvent::Expired) => return self.expire(call.id.clone()),
                    Ok(QuestionEvent::CallEnded(ended)) => {
                        let has_finished = self.end_call(ended);
                        // Another branch may have ended the run, or have something to do.
                        if has_finished && (self.save().await.is_err() || self.run.outcome().is_some()) {
                            return;
                        }
                        if has_finished && self.has_other_work() {
                            return;
                        }
                    }
                }
            };
            let PersonAnswer::Answer(answer) = answer else {
                self.postpone(call.id.clone());
                return;
            };
            let outcome = ToolOutcome::Value { value: answer.into() };
            match self.run.clone().call_finished(&call.id, outcome.clone(), 0, now_ms()) {
                Ok(()) => return self.finish_question(call.id.clone(), outcome),
                Err(error) => problem = Some(error.to_string()),
            }
        }
        self.postpone(call.id.clone());
    }
}

/// What happens first while a person is asked.
enum QuestionEvent {
    Answered(PersonAnswer),
    CallEnded(CallEnd),
    Expired,
}
