//! The program `patter-restate`: a worker that takes the steps of sessions for Restate.

mod options;

use clap::Parser;
use options::Options;
use patter::tool::{CancellationToken, end_processes};
use patter_restate::{
    HostOptions, HostedProject, ListenSettings, OnConflict, Steps, Worker, endpoint, register, serve,
};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The time that processes of tools have to exit when the program ends.
const GRACE: Duration = Duration::from_secs(3);

/// Why the program ends.
struct Problem {
    message: String,
    hint: Option<String>,
}

impl Problem {
    fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    fn with_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }
}

fn main() -> ExitCode {
    patter::launch::run_if_launched();
    patter::launch::forbid_inspection();
    let options = Options::parse();
    start_logging(options.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&Problem::new(error)),
    };
    let result = runtime.block_on(run(options));
    runtime.block_on(end_processes(GRACE));
    runtime.shutdown_timeout(Duration::from_millis(500));
    result.map_or_else(|problem| report(&problem), |()| ExitCode::SUCCESS)
}

/// Logs to stderr. The SDK warns whenever an invocation is suspended, which happens all the time.
fn start_logging(verbosity: u8) {
    let (own, sdk) = match verbosity {
        0 => (LevelFilter::WARN, LevelFilter::ERROR),
        1 => (LevelFilter::INFO, LevelFilter::WARN),
        2 => (LevelFilter::DEBUG, LevelFilter::INFO),
        _ => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    let filter = Targets::new().with_default(own).with_target("restate_sdk", sdk);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
}

fn report(problem: &Problem) -> ExitCode {
    eprintln!("error: {}", problem.message);
    if let Some(hint) = &problem.hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::FAILURE
}

async fn run(options: Options) -> Result<(), Problem> {
    options.check().map_err(|(message, hint)| Problem::new(message).with_hint(Some(hint)))?;
    let model = options.model.as_ref().map(|model| model.parse()).transpose().map_err(Problem::new)?;
    let host = HostOptions {
        paths: vec![options.project.clone()],
        is_locked: options.locked,
        is_trusted: options.is_trusted(),
        model,
    };
    let hosted = HostedProject::read(host).await;
    let hosted = hosted.map_err(|error| Problem::new(error.message).with_hint(error.hint))?;
    let (project, configure) = hosted.into_parts();
    let location = options.store_location(&project).map_err(|error| {
        let hint = error.hint();
        Problem::new(error).with_hint(hint)
    })?;
    let store = patter::store::open(&location).await;
    let store = store.map_err(|error| Problem::new(&error).with_hint(error.hint()))?;
    let tracer = patter::trace::Tracer::from_variables(|name| std::env::var(name).ok()).map_err(Problem::new)?;
    let worker = Worker::new(Arc::new(project), store, options.approval_expiry);
    let worker = worker.with_driver(configure).with_tracer(tracer.clone());
    let steps = Arc::new(Steps::new(Arc::new(worker), options.max_steps.get()));
    let endpoint = endpoint(&steps, options.identity_key.as_deref()).map_err(Problem::new)?;
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|error| Problem::new(format!("cannot listen on {}: {error}", options.listen)))?;
    let address = listener.local_addr().map_err(Problem::new)?;
    let stop = stop_on_signals().map_err(Problem::new)?;
    eprintln!("serving sessions to Restate at http://{address}");
    let settings = ListenSettings {
        streams_per_connection: options.streams_per_connection.get(),
        drain_timeout: options.drain_timeout,
    };
    let served = serve(listener, endpoint, &steps, settings, &stop);
    let registered = async {
        let Some(admin) = &options.register else { return Ok(()) };
        let workers = options.advertised(address).map_err(Problem::new)?;
        let on_conflict = if options.replace { OnConflict::Replace } else { OnConflict::Fail };
        let deployment = register(admin, &workers, on_conflict).await;
        let deployment = deployment.map_err(|error| Problem::new(error.message).with_hint(error.hint))?;
        eprintln!("registered {workers} as {deployment}");
        Ok(())
    };
    // Restate asks the worker what it serves before it registers it.
    let mut served = std::pin::pin!(served);
    tokio::select! {
        () = &mut served => return Ok(()),
        registered = registered => registered?,
    }
    served.await;
    Ok(())
}

/// Returns a token that is cancelled when the program has to stop. The next signal ends it at once.
fn stop_on_signals() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stopped.is_cancelled() {
                patter::tool::kill_processes();
                std::process::exit(1);
            }
            stopped.cancel();
        }
    });
    Ok(stop)
}
