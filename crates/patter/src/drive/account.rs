//! Accounts: what runs may use, and what they and the runs within them used.

use super::budget::Budget;
use patter_core::message::conversation::Usage;
use patter_core::provider::price::{Cost, Price};
use patter_core::run::{FailureKind, Limits, Run, RunFailure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What a run may use, together with the runs of the agents that it calls. A request to a model is counted by the account of its
/// run and by all accounts above.
///
/// Several requests are sent at once only if all of them fit in what is left, whatever they turn out to cost. Otherwise a
/// request waits for the others. So at most one request exceeds a limit.
#[derive(Debug)]
pub(super) struct Account {
    parent: Option<Arc<Account>>,
    /// What it is the account of, for messages.
    owner: Owner,
    max_tokens: Option<u64>,
    max_cost: Option<Cost>,
    used: Arc<Mutex<Used>>,
    tree: Arc<Tree>,
}

#[derive(Debug)]
enum Owner {
    Run,
    Project(Arc<Budget>),
}

/// What all accounts that share a parent have in common.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Held while several accounts are changed together.
    lock: Mutex<()>,
    /// Notified when a request ends.
    ended: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Used {
    amount: Amount,
    /// What the requests in progress may use.
    reserved: Amount,
    requests: u32,
    /// The model that did not say what it used.
    uncounted: Option<String>,
}

/// Tokens, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) tokens: u64,
    pub(super) cost: Cost,
}

/// The right to send a request. Dropping it gives back what was reserved.
#[derive(Debug)]
pub(super) struct Reservation {
    account: Arc<Account>,
    amount: Amount,
}

/// The reason why a request may not be sent.
enum Refusal {
    /// Another request has to end first.
    Wait,
    /// A limit is reached.
    Limit(RunFailure),
}

impl Amount {
    /// Returns the most that a request can use. Without a limit on its output, that is unlimited.
    pub(super) fn most(input_tokens: u64, output_tokens: Option<u64>, price: Option<Price>) -> Self {
        let unlimited = Self { tokens: u64::MAX, cost: Cost::from_picodollars(u128::MAX) };
        match (output_tokens, price) {
            (_, Some(Price::FREE)) => Self {
                tokens: output_tokens.map_or(u64::MAX, |output| input_tokens.saturating_add(output)),
                cost: Cost::FREE,
            },
            (Some(output), Some(price)) => {
                Self { tokens: input_tokens.saturating_add(output), cost: price.most(input_tokens, output) }
            }
            (Some(output), None) => Self { tokens: input_tokens.saturating_add(output), ..unlimited },
            (None, _) => unlimited,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), cost: [self.cost, other.cost].into_iter().sum() }
    }

    fn minus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_sub(other.tokens), cost: self.cost.saturating_sub(other.cost) }
    }
}

impl Account {
    /// Returns the account of a project with a budget.
    pub(super) fn project(budget: Arc<Budget>) -> Arc<Self> {
        let max_cost = Some(budget.per_day());
        let used = Arc::clone(&budget.used);
        let tree = Arc::clone(&budget.tree);
        Arc::new(Self { parent: None, owner: Owner::Project(budget), max_tokens: None, max_cost, used, tree })
    }

    /// Returns the account of a run within another account. A run that resumes has used something already.
    pub(super) fn of_run(run: &Run, parent: Option<Arc<Self>>) -> Arc<Self> {
        let Limits { max_tokens, max_cost, .. } = run.spec().limits;
        let tree = parent.as_ref().map(|parent| Arc::clone(&parent.tree)).unwrap_or_default();
        let account = Self { parent, owner: Owner::Run, max_tokens, max_cost, used: Arc::default(), tree };
        let account = Arc::new(account);
        let used = Amount { tokens: tokens(run.usage()), cost: run.spent().known() };
        if used != Amount::default() {
            // The file of the project has it since it was spent.
            let runs = account.chain().filter(|account| matches!(account.owner, Owner::Run));
            runs.for_each(|account| {
                let mut state = account.lock();
                state.amount = state.amount.plus(used);
            });
        }
        account
    }

    /// Returns whether anything limits the cost.
    pub(super) fn limits_cost(&self) -> bool {
        self.chain().any(|account| account.max_cost.is_some())
    }

    /// Returns whether anything is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.chain().any(|account| account.max_cost.is_some() || account.max_tokens.is_some())
    }

    /// Waits until a request that uses at most so much may be sent.
    pub(super) async fn reserve(self: &Arc<Self>, most: Amount) -> Result<Reservation, RunFailure> {
        loop {
            let ended = self.tree.ended.notified();
            match self.try_reserve(most) {
                Ok(()) => return Ok(Reservation { account: Arc::clone(self), amount: most }),
                Err(Refusal::Limit(failure)) => return Err(failure),
                Err(Refusal::Wait) => ended.await,
            }
        }
    }

    fn try_reserve(&self, most: Amount) -> Result<(), Refusal> {
        let _together = self.tree.lock.lock().unwrap_or_else(PoisonError::into_inner);
        for account in self.chain() {
            account.check(most)?;
        }
        for account in self.chain() {
            let mut used = account.lock();
            used.reserved = used.reserved.plus(most);
            used.requests += 1;
        }
        Ok(())
    }

    /// Checks that a request fits in what is left of this account.
    fn check(&self, most: Amount) -> Result<(), Refusal> {
        let mut used = self.lock();
        if let Owner::Project(budget) = &self.owner {
            let failure = |message| Refusal::Limit(RunFailure { kind: FailureKind::Configuration, message });
            used.amount.cost = budget.spent().map_err(failure)?;
        }
        let amount = used.amount;
        let is_free = most.cost == Cost::FREE;
        if let Some(limit) = self.max_cost.filter(|limit| amount.cost >= *limit && !is_free) {
            return Err(Refusal::Limit(self.cost_failure(amount.cost, limit)));
        }
        if let (Some(_), Some(model)) = (self.max_cost, &used.uncounted) {
            let message = format!("the cost is limited, but `{model}` does not report how many tokens it used");
            return Err(Refusal::Limit(RunFailure { kind: FailureKind::Cost, message }));
        }
        if let Some(limit) = self.max_tokens.filter(|limit| amount.tokens >= *limit) {
            let message = format!("the run used {} tokens without an answer (limit: {limit})", amount.tokens);
            return Err(Refusal::Limit(RunFailure { kind: FailureKind::Tokens, message }));
        }
        let all = amount.plus(used.reserved).plus(most);
        let exceeds = self.max_cost.is_some_and(|limit| all.cost > limit && !is_free)
            || self.max_tokens.is_some_and(|limit| all.tokens > limit);
        if used.requests > 0 && exceeds { Err(Refusal::Wait) } else { Ok(()) }
    }

    fn cost_failure(&self, spent: Cost, limit: Cost) -> RunFailure {
        let message = match &self.owner {
            Owner::Run if spent == Cost::FREE => format!("the run may cost {limit}, and its model is not free"),
            Owner::Run => format!("the run cost {spent} without an answer (limit: {limit})"),
            Owner::Project(_) => format!(
                "the project spent {spent} today (budget: {limit} per day); raise `day` under `[budget]` in patter.toml, \
                 or wait until midnight (UTC)"
            ),
        };
        RunFailure { kind: FailureKind::Cost, message }
    }

    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.parent.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// Counts what a request used. `None` stands for a cost that nobody knows.
    pub(super) fn settle(self, model: &str, usage: Usage, cost: Option<Cost>) {
        let used = Amount { tokens: tokens(usage), cost: cost.unwrap_or_default() };
        for account in self.account.chain() {
            if let Owner::Project(budget) = &account.owner
                && let Err(error) = budget.add(used.cost)
            {
                // The next request fails with the same error, unless somebody resolves it.
                tracing::warn!(%error, "the cost of a request is not recorded");
            }
            let mut state = account.lock();
            state.amount = state.amount.plus(used);
            if cost.is_none() {
                state.uncounted.get_or_insert_with(|| model.to_owned());
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let _together = self.account.tree.lock.lock().unwrap_or_else(PoisonError::into_inner);
            for account in self.account.chain() {
                let mut used = account.lock();
                used.requests = used.requests.saturating_sub(1);
                // Unlimited reservations do not add up, so they are not subtracted either.
                used.reserved = if used.requests == 0 { Amount::default() } else { used.reserved.minus(self.amount) };
            }
        }
        self.account.tree.ended.notify_waiters();
    }
}

fn tokens(usage: Usage) -> u64 {
    usage.input_tokens.saturating_add(usage.output_tokens)
}
