//! Claims that are leases, for poolers that assign a connection per transaction: a session has an owner, and an epoch that
//! grows with each claim. Each append names its epoch, so whoever lost a session without noticing changes nothing.
//!
//! They live in a thread of their own. A runtime that is busy does not keep leases from being renewed, and a session that is
//! released while a runtime shuts down is free at once.

use super::batch::{self, Append, Create};
use super::claims::{
    ATTEMPTS, Answer, AppendError, Claimed, Claims, Group, Next, Received, Release, Request, answer_appends, limited,
};
use super::lease::{Fence, Lease, Renewal};
use super::mode::other_mode;
use super::pool::begin;
use super::server::{Server, is_connection_lost, is_serialization_failure, is_unique_violation, unique_owner};
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use patter_core::text::milliseconds;
use sqlx::PgConnection;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Registers a lease, unless sessions are claimed in another way meanwhile.
const REGISTER: &str = "
    INSERT INTO patter.leases (owner, until_ms)
    SELECT $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2
    FROM patter.settings WHERE name = 'claims' AND value = 'lease' RETURNING owner";

/// Ends leases that nobody renewed, and locks sessions: whoever claimed them before has a lease that the next statement sees.
const PREPARE: &str = "
    WITH expired AS (
        DELETE FROM patter.leases WHERE until_ms < (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    ), wanted AS (SELECT id FROM patter.sessions WHERE id = ANY($1) ORDER BY id FOR UPDATE)
    SELECT count(*) FROM wanted";

/// Claims the sessions that nobody owns. What an earlier attempt claimed is claimed again.
const CLAIM: &str = "
    WITH claimed AS (
        UPDATE patter.sessions AS session SET owner = $2, epoch = epoch + 1
        WHERE id = ANY($1) AND EXISTS (SELECT FROM patter.leases WHERE owner = $2) AND (owner IS NULL OR owner = $2
            OR NOT EXISTS (SELECT FROM patter.leases WHERE leases.owner = session.owner))
        RETURNING id, entries, epoch
    )
    SELECT session.id, claimed.entries, claimed.epoch, EXISTS (SELECT FROM patter.leases WHERE owner = $2)
    FROM patter.sessions AS session LEFT JOIN claimed USING (id) WHERE session.id = ANY($1)";

/// Claims a session again whose lease was lost, if nobody else has claimed it since.
const CLAIM_AGAIN: &str = "
    UPDATE patter.sessions AS session SET owner = $3, epoch = epoch + 1
    WHERE id = $1 AND epoch = $2 AND EXISTS (SELECT FROM patter.leases WHERE owner = $3) RETURNING epoch";

const RELEASE: &str = "
    UPDATE patter.sessions AS session SET owner = NULL
    FROM unnest($1::text[], $2::bigint[]) AS released (id, epoch)
    WHERE session.id = released.id AND session.epoch = released.epoch";

/// Reads what a session has from a number on, by whom it was claimed, and whether that one still has a lease.
const TAIL: &str = "
    SELECT entries, epoch, EXISTS (SELECT FROM patter.leases WHERE leases.owner = session.owner),
        ARRAY(SELECT entry FROM patter.entries WHERE session = $1 AND number >= $2 ORDER BY number)
    FROM patter.sessions AS session WHERE id = $1";

/// The task that has the leases.
struct LeasesTask {
    server: Arc<Server>,
    length: Duration,
    /// `None` after it was lost.
    connection: Option<PgConnection>,
    lease: Option<(Arc<Lease>, Renewal)>,
    /// The claimed sessions; `None` while the request to claim one is under way.
    held: HashMap<SessionId, Option<Arc<Fence>>>,
    received: Received,
}

/// Starts the thread that has the leases.
pub(super) fn start(server: Arc<Server>, length: Duration) -> Result<Claims, StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed { message: format!("cannot start a thread: {error}") };
    let (claims, received) = Claims::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let task = LeasesTask { server, length, connection: None, lease: None, held: HashMap::new(), received };
    let thread = std::thread::Builder::new().name("patter-leases".to_owned());
    thread.spawn(move || runtime.block_on(task.run())).map_err(failed)?;
    Ok(claims)
}

impl LeasesTask {
    async fn run(mut self) {
        while let Some(next) = self.received.next().await {
            match next {
                Next::Perform(requests) => self.perform(requests).await,
                Next::Release(released) => self.release(vec![released]).await,
            }
        }
        self.release(Vec::new()).await;
        self.end_lease().await;
    }

    /// Performs requests: claims first, because they are for sessions that nothing is appended to yet.
    async fn perform(&mut self, group: Vec<Request>) {
        // What was released before a request was made is free.
        self.release(Vec::new()).await;
        let held = &mut self.held;
        let Group { claims, creates, appends } = Group::new(group, |id| match held.contains_key(id) {
            true => false,
            false => held.insert(id.clone(), None).is_none(),
        });
        if !claims.is_empty() {
            self.claim(claims).await;
        }
        if !creates.is_empty() {
            self.create(creates).await;
        }
        if !appends.is_empty() {
            let (appends, answers): (Vec<_>, Vec<_>) = appends.into_iter().unzip();
            let results = self.append(&appends).await;
            answer_appends(answers, results);
        }
    }

    /// Releases sessions, and all others that were released meanwhile.
    async fn release(&mut self, mut released: Vec<Release>) {
        while let Ok(release) = self.received.released.try_recv() {
            released.push(release);
        }
        let fences = released.iter().filter_map(|release| Some((release.id.clone(), self.held.remove(&release.id)??)));
        let fences: Vec<_> = fences.collect();
        self.free(&fences).await;
    }

    async fn free(&mut self, fences: &[(SessionId, Arc<Fence>)]) {
        if fences.is_empty() {
            return;
        }
        let ids: Vec<_> = fences.iter().map(|(id, _)| id.as_str()).collect();
        let epochs: Vec<_> = fences.iter().map(|(_, fence)| fence.epoch()).collect();
        for _ in 0..2 {
            let freed = async {
                let mut transaction = begin(self.connection().await?).await?;
                let query = sqlx::query(RELEASE).bind(&ids).bind(&epochs).persistent(false);
                query.execute(&mut *transaction).await?;
                transaction.commit().await
            };
            match limited(freed).await {
                Ok(()) => return,
                Err(error) => {
                    // A session that is not released is free when the lease ends.
                    tracing::debug!(%error, "cannot release sessions");
                    self.connection = None;
                }
            }
        }
    }

    /// Ends the lease, so that sessions which could not be released are free.
    async fn end_lease(&mut self) {
        const END: &str = "DELETE FROM patter.leases WHERE owner = $1";
        let Some((lease, renewal)) = self.lease.take() else { return };
        drop(renewal);
        let ended = async {
            let mut transaction = begin(self.connection().await?).await?;
            sqlx::query(END).bind(&lease.owner).persistent(false).execute(&mut *transaction).await?;
            transaction.commit().await
        };
        if let Err(error) = limited(ended).await {
            tracing::debug!(%error, "cannot end the lease");
        }
    }

    async fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.server.reconnect().await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Returns the lease of this process. Registers one if there is none, or if it was lost.
    async fn lease(&mut self) -> Result<Arc<Lease>, LeaseError> {
        if let Some((lease, _)) = self.lease.as_ref().filter(|(lease, _)| !lease.is_lost()) {
            return Ok(Arc::clone(lease));
        }
        self.lease = None;
        let owner = unique_owner();
        let since = Instant::now();
        let length = to_i64(milliseconds(self.length));
        let registered = limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            let query = sqlx::query(REGISTER).bind(&owner).bind(length).persistent(false);
            let registered = query.fetch_optional(&mut *transaction).await?.is_some();
            transaction.commit().await?;
            Ok(registered)
        });
        if !registered.await? {
            return Err(LeaseError::OtherMode);
        }
        let lease = Arc::new(Lease { owner, lost: CancellationToken::new() });
        let renewal = Renewal::start(Arc::clone(&self.server), Arc::clone(&lease), self.length, since);
        self.lease = Some((Arc::clone(&lease), renewal));
        Ok(lease)
    }

    async fn claim(&mut self, claims: Vec<(SessionId, Answer<Claimed>)>) {
        let ids: Vec<_> = claims.iter().map(|(id, _)| id.as_str()).collect();
        let mut attempt = 1;
        let found = loop {
            match self.try_claim(&ids).await {
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => attempt += 1,
                found => break found.map_err(|error| self.failed(&error)),
            }
        };
        for (id, done) in claims {
            let result = match &found {
                Ok(found) => Ok(found.get(id.as_str()).cloned().unwrap_or(Claimed::No)),
                Err(error) => Err(error.clone()),
            };
            self.answer_claim(id, result, done).await;
        }
    }

    async fn try_claim(&mut self, ids: &[&str]) -> Result<HashMap<String, Claimed>, LeaseError> {
        let lease = self.lease().await?;
        let claimed = limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            sqlx::query(PREPARE).bind(ids).persistent(false).execute(&mut *transaction).await?;
            let query = sqlx::query_as::<_, (String, Option<i64>, Option<i64>, bool)>(CLAIM);
            let query = query.bind(ids).bind(&lease.owner).persistent(false);
            let rows = query.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(rows)
        });
        let mut found = HashMap::new();
        for (id, entries, epoch, has_lease) in claimed.await? {
            if !has_lease {
                lease.lost.cancel();
                return Err(LeaseError::Lost);
            }
            let claimed = match (entries, epoch) {
                (Some(entries), Some(epoch)) => {
                    let fence = Arc::new(Fence::new(Arc::clone(&lease), epoch));
                    Claimed::Yes(u64::try_from(entries).unwrap_or_default(), Some(fence))
                }
                _ => Claimed::Busy,
            };
            found.insert(id, claimed);
        }
        Ok(found)
    }

    async fn create(&mut self, creates: Vec<(Create, Answer<Claimed>)>) {
        let batch: Vec<_> = creates.iter().map(|(create, _)| create).collect();
        let mut attempt = 1;
        let found = loop {
            match self.try_create(&batch, attempt > 1).await {
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => attempt += 1,
                found => break found.map_err(|error| self.failed(&error)),
            }
        };
        for (create, done) in creates {
            let result = match &found {
                Ok(found) => Ok(found.get(&create.new.id).cloned().unwrap_or(Claimed::No)),
                Err(error) => Err(error.clone()),
            };
            self.answer_claim(create.new.id, result, done).await;
        }
    }

    /// Creates sessions. Those that existed are missing from the result.
    async fn try_create(
        &mut self,
        creates: &[&Create],
        is_repeated: bool,
    ) -> Result<HashMap<SessionId, Claimed>, LeaseError> {
        const FIRST_EPOCH: i64 = 1;
        let lease = self.lease().await?;
        let created: HashSet<String> = limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            let query = batch::create_owned(creates, &lease.owner).persistent(false);
            let rows = query.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(rows.into_iter().map(|(id, _)| id).collect())
        })
        .await?;
        let mut found = HashMap::new();
        for create in creates {
            let id = &create.new.id;
            let length = create.new.entries.len() as u64;
            let is_created = created.contains(id.as_str())
                || is_repeated
                    && self.tail(id, 0).await?.is_some_and(|tail| {
                        tail.epoch == FIRST_EPOCH && tail.is_claimed && tail.entries == create.new.entries
                    });
            if is_created {
                let fence = Arc::new(Fence::new(Arc::clone(&lease), FIRST_EPOCH));
                found.insert(id.clone(), Claimed::Yes(length, Some(fence)));
            }
        }
        Ok(found)
    }

    async fn answer_claim(&mut self, id: SessionId, result: Result<Claimed, StoreError>, done: Answer<Claimed>) {
        let fence = match &result {
            Ok(Claimed::Yes(_, fence)) => fence.clone(),
            _ => None,
        };
        match &fence {
            Some(fence) => drop(self.held.insert(id.clone(), Some(Arc::clone(fence)))),
            None => drop(self.held.remove(&id)),
        }
        // Whoever asked may have given up.
        if done.send(result).is_err()
            && let Some(fence) = fence
        {
            self.held.remove(&id);
            self.free(&[(id, fence)]).await;
        }
    }

    /// Appends to several sessions. If that fails because of one of them, each is tried by itself.
    async fn append(&mut self, appends: &[Append]) -> Result<Vec<Result<(), StoreError>>, AppendError> {
        let results = self.append_all(appends).await;
        if !matches!(results, Err(AppendError::Refused(_))) || appends.len() < 2 {
            return results;
        }
        let mut each = Vec::with_capacity(appends.len());
        for append in appends {
            each.push(match self.append_all(std::slice::from_ref(append)).await {
                Ok(mut results) => results.pop().unwrap_or_else(|| Err(append.conflict())),
                Err(error) => Err(error.into()),
            });
        }
        Ok(each)
    }

    /// Appends to several sessions in one transaction: to those that this process has, and whose logs are as long as expected.
    async fn append_all(&mut self, appends: &[Append]) -> Result<Vec<Result<(), StoreError>>, AppendError> {
        let mut attempt = 1;
        // Whether entries that were sent may have been appended.
        let mut is_uncertain = false;
        loop {
            match self.try_append(appends, is_uncertain).await {
                Ok(results) => return Ok(results),
                Err(error) if attempt < ATTEMPTS && self.may_repeat(&error) => {
                    attempt += 1;
                    is_uncertain |= self.connection.is_none();
                }
                // Somebody else appended.
                Err(LeaseError::Database(error)) if is_unique_violation(&error) && appends.len() == 1 => {
                    return Ok(appends.iter().map(|append| Err(append.conflict())).collect());
                }
                Err(error) if self.connection.is_none() => return Err(AppendError::Database(self.failed(&error))),
                Err(error) => return Err(AppendError::Refused(self.failed(&error))),
            }
        }
    }

    async fn try_append(
        &mut self,
        appends: &[Append],
        is_uncertain: bool,
    ) -> Result<Vec<Result<(), StoreError>>, LeaseError> {
        let mut epochs = Vec::with_capacity(appends.len());
        for append in appends {
            epochs.push(match self.held.get(&append.id).cloned().flatten() {
                Some(fence) => self.fenced(&append.id, &fence).await?,
                None => -1,
            });
        }
        let appended: HashSet<String> = limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            let appends: Vec<_> = appends.iter().collect();
            let query = batch::append_fenced(&appends, epochs.clone()).persistent(false);
            let appended = query.fetch_all(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(appended.into_iter().collect())
        })
        .await?;
        let mut results = Vec::with_capacity(appends.len());
        for (append, epoch) in appends.iter().zip(epochs) {
            results.push(match appended.contains(append.id.as_str()) {
                true => Ok(()),
                false => match self.tail(&append.id, append.first).await? {
                    Some(tail) if tail.epoch == epoch && is_uncertain && tail.entries == append.entries => Ok(()),
                    Some(tail) if tail.epoch != epoch && tail.is_claimed => {
                        Err(StoreError::Busy { id: append.id.clone(), holder: None })
                    }
                    _ => Err(append.conflict()),
                },
            });
        }
        Ok(results)
    }

    /// Returns the epoch of a session that this process claimed. If the lease was lost and nobody else has claimed the session
    /// since, it is claimed again.
    async fn fenced(&mut self, id: &SessionId, fence: &Fence) -> Result<i64, LeaseError> {
        if !fence.lease().is_lost() {
            return Ok(fence.epoch());
        }
        let lease = self.lease().await?;
        let again = limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            let query = sqlx::query_scalar::<_, i64>(CLAIM_AGAIN).bind(id.as_str()).bind(fence.epoch());
            let again = query.bind(&lease.owner).persistent(false).fetch_optional(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(again)
        });
        if let Some(epoch) = again.await? {
            fence.renew(lease, epoch);
        }
        Ok(fence.epoch())
    }

    /// Reads how a session ends.
    async fn tail(&mut self, id: &SessionId, first: u64) -> Result<Option<Tail>, sqlx::Error> {
        limited(async {
            let mut transaction = begin(self.connection().await?).await?;
            let query = sqlx::query_as::<_, (i64, i64, bool, Vec<String>)>(TAIL);
            let query = query.bind(id.as_str()).bind(to_i64(first)).persistent(false);
            let row = query.fetch_optional(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(row.map(|(_, epoch, is_claimed, entries)| Tail { epoch, is_claimed, entries }))
        })
        .await
    }

    /// Returns whether a statement may succeed if it is repeated, perhaps with a new connection or lease.
    fn may_repeat(&mut self, error: &LeaseError) -> bool {
        match error {
            LeaseError::Lost => true,
            LeaseError::OtherMode => false,
            LeaseError::Database(error) => {
                let is_lost = is_connection_lost(error);
                if is_lost {
                    tracing::debug!(%error, "reconnecting to the session store");
                    self.connection = None;
                }
                is_lost || is_serialization_failure(error)
            }
        }
    }

    fn failed(&self, error: &LeaseError) -> StoreError {
        match error {
            LeaseError::Database(error) => self.server.failed(error),
            LeaseError::OtherMode => other_mode(&self.server),
            LeaseError::Lost => StoreError::Failed { message: "the lease ends before it can be used".to_owned() },
        }
    }
}

/// The end of a log.
struct Tail {
    epoch: i64,
    /// Whether somebody has it.
    is_claimed: bool,
    entries: Vec<String>,
}

/// Why something could not be done with the lease.
enum LeaseError {
    Database(sqlx::Error),
    /// It ended meanwhile.
    Lost,
    /// Sessions are not claimed by leases any more.
    OtherMode,
}

impl From<sqlx::Error> for LeaseError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}
