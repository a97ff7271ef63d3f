//! Recorded runs, compared with the agents that a driver has.

use super::{Driver, call};
use crate::agent::{CompileError, CompiledAgent};
use crate::tool::Executor;
use patter_core::session::replay::{After, Comparison, CurrentAgent, CurrentAgents, compare};
use patter_core::session::{Entry, LogError};
use std::cell::RefCell;
use std::sync::Arc;
use thiserror::Error;

/// Why recorded runs cannot be compared with agents.
#[derive(Debug, Error)]
pub enum CompareError {
    /// An agent is not ready to run.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The recording is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Driver {
    /// Compares what was recorded with the agents as they are now: `agent` takes the part of the one that a person spoke
    /// with, and others those of the agents of the same names. Nothing is called, neither models nor tools.
    pub fn compare(
        &self,
        agent: &CompiledAgent,
        entries: impl IntoIterator<Item = Entry>,
        after: After,
    ) -> Result<Comparison, CompareError> {
        let players = Players { driver: self, main: agent, failed: RefCell::default() };
        let compared = compare(entries, &players, after)?;
        match players.failed.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(compared),
        }
    }
}

struct Players<'d> {
    driver: &'d Driver,
    main: &'d CompiledAgent,
    /// Why an agent is not ready to run.
    failed: RefCell<Option<CompileError>>,
}

impl CurrentAgents for Players<'_> {
    fn actor(&self, run: &[String], agent: &str) -> Option<CurrentAgent<'_>> {
        let compiled = match run {
            [] => self.main.clone(),
            _ => match self.driver.ready(agent)? {
                Ok(compiled) => compiled,
                Err(error) => {
                    self.failed.borrow_mut().get_or_insert(error);
                    return None;
                }
            },
        };
        let permissions = compiled.permissions(self.driver.rules.iter().cloned());
        let executor = Executor::new(Arc::clone(&self.driver.library), permissions);
        Some(CurrentAgent {
            frame: Arc::clone(compiled.frame()),
            spec: compiled.spec().clone(),
            decide: Box::new(move |asked| call::ruling(&executor, asked)),
        })
    }
}
