//! The driver of all runs.

use patter::drive::{ApprovalAnswer, Approver, Driver};
use patter::run::PendingCall;
use patter::tool::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};

/// Configures the driver of all runs: rules, lock and model.
pub(crate) type ConfigureDriver = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;

/// The driver of all runs. It is configured once for all turns, because setting a model or a lock forgets the agents that
/// are compiled.
pub(super) struct ConfiguredDriver {
    configure: ConfigureDriver,
    /// The driver of the project that was configured last, and the result.
    last: Mutex<Option<(Driver, Driver)>>,
}

impl ConfiguredDriver {
    pub(super) fn new(configure: ConfigureDriver) -> Self {
        Self { configure, last: Mutex::default() }
    }

    /// Configures a driver that is used once.
    pub(super) fn configured_once(&self, driver: Driver) -> Driver {
        (self.configure)(driver)
    }

    pub(super) fn configured(&self, driver: Driver) -> Driver {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((base, configured)) = last.as_ref()
            && base.is_same(&driver)
        {
            return configured.clone();
        }
        let configured = (self.configure)(driver.clone());
        *last = Some((driver, configured.clone()));
        configured
    }
}

/// Leaves all decisions to those who answer later.
pub(super) struct LaterApprover;

impl Approver for LaterApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Later })
    }
}
