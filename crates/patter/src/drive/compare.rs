//! Comparing recorded runs with the agents of a driver.

use super::call::ruling;
use super::driver::Driver;
use crate::tool::Executor;
use patter_core::compile::{CompileError, CompiledAgent};
use patter_core::session::replay::{CurrentAgent, CurrentAgents, OnDifference, ReplayComparison, compare};
use patter_core::session::{LogEntry, LogError, RunPath};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// An error comparing recorded runs with agents.
#[derive(Debug, Error)]
pub enum ReplayCompareError {
    /// An agent cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The recording is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl Driver {
    /// Compares a recording with the current agents: `agent` replaces the one that the user talked to, and the
    /// agents that it calls by the same names replace the others. Neither models nor tools are called.
    pub fn compare(
        &self,
        agent: &CompiledAgent,
        entries: impl IntoIterator<Item = LogEntry>,
        after: OnDifference,
    ) -> Result<ReplayComparison, ReplayCompareError> {
        let agents = DriverAgents { driver: self, main: agent, found: RefCell::default(), error: RefCell::default() };
        let comparison = compare(entries, &agents, after)?;
        match agents.error.into_inner() {
            Some(error) => Err(error.into()),
            None => Ok(comparison),
        }
    }
}

/// The current agents, as the comparison looks them up.
struct DriverAgents<'d> {
    driver: &'d Driver,
    main: &'d CompiledAgent,
    /// The agents of the runs so far, which decide what the names that they call refer to.
    found: RefCell<HashMap<RunPath, CompiledAgent>>,
    /// The first error compiling an agent.
    error: RefCell<Option<CompileError>>,
}

impl CurrentAgents for DriverAgents<'_> {
    fn find(&self, run: &[String], name: &str) -> Option<CurrentAgent<'_>> {
        let compiled = match run.split_last() {
            None => self.main.clone(),
            Some((_, above)) => {
                let caller = self.found.borrow().get(above).cloned()?;
                match self.driver.compile_delegate(&caller, name)? {
                    Ok(compiled) => compiled,
                    Err(error) => {
                        self.error.borrow_mut().get_or_insert(error);
                        return None;
                    }
                }
            }
        };
        self.found.borrow_mut().insert(run.to_vec(), compiled.clone());
        let executor = Executor::new(Arc::clone(&self.driver.library), self.driver.permissions(&compiled));
        Some(CurrentAgent {
            frame: Arc::clone(compiled.frame()),
            spec: compiled.spec().clone(),
            decide: Box::new(move |call| ruling(&executor, call)),
        })
    }
}
