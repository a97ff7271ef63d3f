//! Hosts the sessions of agents on [Restate](https://restate.dev).
//!
//! A session is a virtual object, `Session`, whose key is the id of the session. Restate decides who takes a step and when,
//! repeats it if a worker is gone, and keeps timers. The log of the session in the store stays the only record of what
//! happened: the journal of Restate has the number of entries after each step, and nothing else. A step that is repeated
//! finds its entries in the log.
//!
//! The program `patter-restate` does this for a project on disk. An application with tools in Rust can do it itself:
//!
//! ```
//! use patter::live::LiveProject;
//! use patter::store::StoreLocation;
//! use patter_restate::{Steps, Worker, endpoint};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("hello.gram");
//! # std::fs::write(&path, "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]").unwrap();
//! # let location = StoreLocation::parse(&folder.path().join("s.db").display().to_string()).unwrap();
//! let project = LiveProject::open(&path).read().await.unwrap();
//! let store = patter::store::open(&location).await.unwrap();
//! let worker = Worker::new(Arc::new(project), store, Duration::from_secs(24 * 60 * 60));
//! let steps = Arc::new(Steps::new(Arc::new(worker), 64));
//! let endpoint: restate_sdk::endpoint::Endpoint = endpoint(&steps, None).unwrap();
//! # drop(endpoint);
//! # }
//! ```

mod failure;
mod progress;
mod worker;
mod step;
mod session;
mod register;
mod host;
mod listen;

pub use failure::Failure;
pub use host::{HostError, HostOptions, HostedProject};
pub use listen::{ListenSettings, serve};
pub use progress::{Progress, RunState};
pub use register::{OnConflict, RegisterError, register};
pub use session::Session;
pub use step::{SessionStep, StepRequest, Steps};
pub use worker::Worker;

use restate_sdk::endpoint::{Endpoint, ServiceOptions};
use restate_sdk::service::IntoServiceDefinition;
use std::sync::Arc;

/// Returns the endpoint that Restate calls. With a public key, it accepts only requests that the owner of the key signed.
pub fn endpoint(steps: &Arc<Steps>, identity_key: Option<&str>) -> Result<Endpoint, String> {
    let options = ServiceOptions::new().metadata(register::VERSION, register::CURRENT);
    let session = Session::new(steps).into_service_definition().options(options.clone());
    let step = SessionStep::new(Arc::clone(steps)).into_service_definition().options(options);
    let builder = Endpoint::builder().bind(session).bind(step);
    match identity_key {
        Some(key) => Ok(builder.identity_key(key).map_err(|error| error.to_string())?.build()),
        None => Ok(builder.build()),
    }
}
