//! The driver of all runs.

use patter::drive::{ApprovalAnswer, Approver, Driver};
use patter::project::ToolVariant;
use patter::run::PendingCall;
use patter::tool::BoxFuture;
use patter_core::serve::ApiError;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Configures the driver of all runs: rules, lock and model.
pub(crate) type ConfigureDriver = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;

/// The drivers of all runs. They are configured once for all turns, because setting a model or a lock forgets the agents that
/// are compiled.
pub(super) struct ConfiguredDrivers {
    configure: ConfigureDriver,
    variants: BTreeMap<String, ToolVariant>,
    /// By variant: the driver of the project that was configured last, and the result.
    last: Mutex<HashMap<Option<String>, (Driver, Driver)>>,
}

impl ConfiguredDrivers {
    pub(super) fn new(configure: ConfigureDriver, variants: BTreeMap<String, ToolVariant>) -> Self {
        Self { configure, variants, last: Mutex::default() }
    }

    /// Returns the names of the variants.
    pub(super) fn variants(&self) -> impl Iterator<Item = &str> {
        self.variants.keys().map(String::as_str)
    }

    /// Checks that there is a variant of this name.
    pub(super) fn check_variant(&self, name: Option<&str>) -> Result<(), ApiError> {
        match name.filter(|name| !self.variants.contains_key(*name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!("there are no tools `{name}`: start the server with --variant {name}=FILE");
                Err(ApiError::invalid("forwardedProps.tools", message))
            }
        }
    }

    /// Configures a driver that is used once.
    pub(super) fn configured_once(&self, driver: Driver) -> Driver {
        (self.configure)(driver)
    }

    /// Configures a driver, with the tools of a variant if there is one.
    pub(super) fn configured(&self, driver: Driver, variant: Option<&str>) -> Driver {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = variant.map(str::to_owned);
        if let Some((base, configured)) = last.get(&key)
            && base.is_same(&driver)
        {
            return configured.clone();
        }
        let varied = match variant {
            Some(variant) => self.vary(driver.clone(), variant),
            None => driver.clone(),
        };
        let configured = (self.configure)(varied);
        last.insert(key, (driver, configured.clone()));
        configured
    }

    fn vary(&self, driver: Driver, name: &str) -> Driver {
        let library = self.variants.get(name).and_then(|variant| match variant.replace_in(driver.library()) {
            Ok(library) => Some(library),
            Err(errors) => {
                let error = errors.first().map(ToString::to_string).unwrap_or_default();
                tracing::error!(variant = name, error, "the tools do not fit the project any more");
                None
            }
        });
        // Without these tools no agent compiles, which is better than calling others.
        driver.with_library(Arc::new(library.unwrap_or_default()))
    }
}

/// Leaves all decisions to those who answer later.
pub(super) struct LaterApprover;

impl Approver for LaterApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Later })
    }
}
