//! A future that completes even if it is dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A future that completes even if it is dropped: a task then runs the rest of it. As long as nobody drops it, it costs less
/// than a task does.
pub(super) struct Completing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// `None` after it has completed.
    future: Option<Pin<Box<F>>>,
    runtime: Handle,
}

impl<F> Completing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// Returns a future that completes on the current runtime.
    pub(super) fn new(future: F) -> Self {
        Self { future: Some(Box::pin(future)), runtime: Handle::current() }
    }
}

impl<F> Future for Completing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<F> Drop for Completing<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            drop(self.runtime.spawn(future));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn completes_after_it_was_dropped() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let mut future = Box::pin(Completing::new(async move {
            gone.await.unwrap();
            done.send(()).unwrap();
        }));
        assert!(futures_util::poll!(&mut future).is_pending());
        drop(future);
        go.send(()).unwrap();
        is_done.await.unwrap();
    }

    #[tokio::test]
    async fn completes_without_being_polled() {
        let (done, is_done) = oneshot::channel();
        drop(Completing::new(async move { done.send(()).unwrap() }));
        is_done.await.unwrap();
    }

    #[tokio::test]
    async fn returns_what_the_future_returns() {
        assert_eq!(Completing::new(async { 3 }).await, 3);
    }
}
