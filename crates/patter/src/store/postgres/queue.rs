//! The queue of work. All times are those of the server, whose clock is the same for all workers.

use super::server::configure;
use super::{PostgresStore, fetch_all};
use crate::model::ProviderLimit;
use crate::store::error::StoreError;
use crate::store::limit::{CONNECT_TIMEOUT, with_timeout};
use crate::store::location::ClaimMode;
use crate::store::row::to_i64;
use crate::store::work::{
    CANCELLED, NewWork, QueueCounts, Settlement, TakeRequest, Work, WorkChange, WorkFilter, WorkQueue, WorkRow,
    WorkState, WorkerInfo, WorkerReport, WorkerStatus, change_of, counts, provider_limit, work, work_columns,
};
use crate::store::{SessionId, error};
use crate::tool::BoxFuture;
use patter_core::text::milliseconds;
use sqlx::Row;
use sqlx::postgres::{PgListener, PgPoolOptions, PgRow};
use std::time::Duration;

/// The channel on which workers are woken. What there is to do is in the table.
const CHANNEL: &str = "patter_work";
/// The advisory lock held while work is taken, so that limits are those of all workers together: "PatW".
const TAKE_LOCK: i64 = 0x5061_7457;
/// How often to look for work if nobody can be woken: a pooler does not pass on notifications.
const POLL: Duration = Duration::from_secs(1);
/// How long to wait before listening again.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);

/// The current time, in milliseconds.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

const ADD: &str = concat!(
    "WITH added AS (
        INSERT INTO patter.work (key, session, agent, tenant, task, state, due_ms, created_ms, changed_ms, attempts, worker)
        SELECT $1, $2, $3, $4, $5, CASE WHEN $6::text IS NULL THEN 'queued' ELSE 'running' END, coalesce($7, now), now, now,
            CASE WHEN $6::text IS NULL THEN 0 ELSE 1 END, $6
        FROM (SELECT ",
    now!(),
    " AS now) AS clock
        ON CONFLICT (key) DO NOTHING RETURNING id, state, due_ms <= created_ms AS is_due
    )
    SELECT id, CASE WHEN state = 'queued' AND is_due THEN pg_notify('patter_work', '')::text END FROM added"
);

/// Work of a session is done in order. Whoever has least under way comes first.
const TAKE: &str = concat!(
    "WITH clock AS (SELECT ",
    now!(),
    " AS now), agents AS (
        SELECT * FROM unnest($2::text[], $3::bigint[]) AS agents (name, most)
    ), tenants AS (
        SELECT * FROM unnest($4::text[], $5::bigint[]) AS tenants (name, most)
    ), due AS (
        SELECT work.id, work.agent, work.tenant, work.due_ms FROM patter.work AS work, clock
        WHERE work.state IN ('queued', 'waiting') AND work.agent IN (SELECT name FROM agents)
            AND CASE WHEN $6::text IS NULL THEN work.due_ms <= clock.now ELSE work.session = $6 END
            AND NOT EXISTS (
                SELECT FROM patter.work AS other WHERE other.session = work.session
                    AND (other.state = 'running' OR (other.id < work.id AND other.state <> 'parked')))
        ORDER BY work.due_ms, work.id LIMIT 1000
    ), by_agent AS (
        SELECT due.*, row_number() OVER (PARTITION BY due.agent ORDER BY due.due_ms, due.id)
            + coalesce(busy.running, 0) AS agent_rank
        FROM due LEFT JOIN (SELECT agent, count(*) AS running FROM patter.work WHERE state = 'running' GROUP BY agent) AS busy
            ON busy.agent = due.agent
    ), by_tenant AS (
        SELECT by_agent.*, row_number() OVER (PARTITION BY by_agent.tenant ORDER BY by_agent.due_ms, by_agent.id)
            + coalesce(busy.running, 0) AS tenant_rank
        FROM by_agent JOIN agents ON agents.name = by_agent.agent
        LEFT JOIN (SELECT tenant, count(*) AS running FROM patter.work WHERE state = 'running' GROUP BY tenant) AS busy
            ON busy.tenant = by_agent.tenant
        WHERE agents.most IS NULL OR by_agent.agent_rank <= agents.most
    ), chosen AS (
        SELECT by_tenant.id FROM by_tenant LEFT JOIN tenants ON tenants.name = by_tenant.tenant
        WHERE tenants.most IS NULL OR by_tenant.tenant_rank <= tenants.most
        ORDER BY by_tenant.tenant_rank, by_tenant.agent_rank, by_tenant.due_ms, by_tenant.id LIMIT $7
    )
    UPDATE patter.work AS work SET state = 'running', reason = NULL, worker = $1, attempts = work.attempts + 1, changed_ms = clock.now
    FROM chosen, clock WHERE work.id = chosen.id AND work.state IN ('queued', 'waiting') RETURNING ",
    work_columns!()
);

const SETTLE: &str = concat!(
    "WITH settled AS (
        UPDATE patter.work SET state = $3, due_ms = now + $4, attempts = attempts + $5, reason = $6, worker = NULL,
            changed_ms = now
        FROM (SELECT ",
    now!(),
    " AS now) AS clock WHERE id = $1 AND worker = $2 AND state = 'running' RETURNING state
    )
    SELECT CASE WHEN state = 'queued' AND $4 = 0 THEN pg_notify('patter_work', '')::text END FROM settled"
);

const REPORT: &str = concat!(
    "INSERT INTO patter.workers (id, about, started_ms, seen_ms)
    SELECT $1, $2, now, now FROM (SELECT ",
    now!(),
    " AS now) AS clock
    ON CONFLICT (id) DO UPDATE SET about = EXCLUDED.about, seen_ms = EXCLUDED.seen_ms"
);

/// Ends the connections of a worker that is gone, in case it only sleeps: they have the locks of its sessions.
const GONE: &str = concat!(
    "WITH gone AS (
        DELETE FROM patter.workers WHERE id <> $1 AND seen_ms < ",
    now!(),
    " - $2 RETURNING about
    )
    SELECT pg_terminate_backend(activity.pid) FROM gone JOIN pg_stat_activity AS activity
    ON activity.application_name = gone.about::json ->> 'connections' AND activity.datname = current_database()"
);

/// Puts the work back of workers that are not there.
const PUT_BACK: &str = concat!(
    "WITH put_back AS (
        UPDATE patter.work SET worker = NULL, changed_ms = now, due_ms = now,
            state = CASE WHEN attempts >= $1 THEN 'parked' ELSE 'queued' END,
            reason = 'its worker stopped: ' || worker
        FROM (SELECT ",
    now!(),
    " AS now) AS clock
        WHERE state = 'running' AND NOT EXISTS (SELECT FROM patter.workers WHERE workers.id = work.worker) RETURNING 1
    )
    SELECT pg_notify('patter_work', '')::text FROM put_back LIMIT 1"
);

const ADD_LIMITS: &str = concat!(
    "INSERT INTO patter.provider_limits (provider, until_ms, reason)
    SELECT provider, now + ends_in, reason FROM (SELECT ",
    now!(),
    " AS now) AS clock, unnest($1::text[], $2::bigint[], $3::text[]) AS met (provider, ends_in, reason)
    ON CONFLICT (provider) DO UPDATE SET until_ms = EXCLUDED.until_ms, reason = EXCLUDED.reason
    WHERE provider_limits.until_ms < EXCLUDED.until_ms"
);
const LIMITS: &str = concat!(
    "SELECT provider, until_ms - now, reason FROM patter.provider_limits, (SELECT ",
    now!(),
    " AS now) AS clock WHERE until_ms > now ORDER BY provider"
);

/// Waits for notifications, with a connection of its own that exists once somebody waits.
#[derive(Default)]
pub(super) struct Wakeups(tokio::sync::Mutex<Option<PgListener>>);

impl PostgresStore {
    async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.after_connect(|connection, _| Box::pin(configure(connection)));
        let pool = pool.connect_lazy_with(self.server.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(CHANNEL).await?;
        Ok(listener)
    }
}

impl WorkQueue for PostgresStore {
    fn add(&self, new: NewWork) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(with_timeout(async move {
            let query = sqlx::query_as::<_, (i64, Option<String>)>(ADD)
                .bind(&new.key)
                .bind(new.session.as_str())
                .bind(&new.agent);
            let query = query.bind(&new.tenant).bind(&new.task).bind(&new.worker).bind(new.due_ms.map(to_i64));
            let added = fetch_all!(self, query).into_iter().next();
            Ok(added.and_then(|(id, _)| u64::try_from(id).ok()))
        }))
    }

    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<Work>, StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let agents: Vec<_> = request.agents.keys().cloned().collect();
            let agent_limits: Vec<_> = request.agents.values().map(|most| most.map(i64::from)).collect();
            let tenants: Vec<_> = request.tenants.keys().cloned().collect();
            let tenant_limits: Vec<_> = request.tenants.values().map(|most| i64::from(*most)).collect();
            let mut statements = self.pool.begin().await.map_err(failed)?;
            let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(TAKE_LOCK).persistent(statements.named);
            lock.execute(statements.on()).await.map_err(failed)?;
            let query = sqlx::query(TAKE).bind(&request.worker).bind(agents).bind(agent_limits).bind(tenants);
            let query = query.bind(tenant_limits).bind(request.session.as_ref().map(SessionId::as_str));
            let query = query.bind(to_i64(request.limit as u64)).persistent(statements.named);
            let rows = query.fetch_all(statements.on()).await.map_err(failed)?;
            statements.commit().await.map_err(failed)?;
            self.read_work(&rows)
        }))
    }

    fn settle<'a>(
        &'a self,
        id: u64,
        worker: &'a str,
        settlement: Settlement,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(with_timeout(async move {
            const DONE: &str =
                "DELETE FROM patter.work WHERE id = $1 AND worker = $2 AND state = 'running' RETURNING id";
            let query = match change_of(settlement) {
                None => sqlx::query(DONE).bind(to_i64(id)).bind(worker),
                Some((state, later_ms, attempts, reason)) => {
                    let query = sqlx::query(SETTLE).bind(to_i64(id)).bind(worker).bind(state.as_str());
                    query.bind(later_ms).bind(attempts).bind(reason)
                }
            };
            Ok(!fetch_all!(self, query).is_empty())
        }))
    }

    fn list<'a>(&'a self, filter: &'a WorkFilter, limit: usize) -> BoxFuture<'a, Result<Vec<Work>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                work_columns!(),
                " FROM patter.work AS work WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR session = $2)
                  AND ($3::text IS NULL OR key = $3) AND ($4::text IS NULL OR worker = $4)
                  AND ($6::text IS NULL OR starts_with(key, $6)) ORDER BY due_ms, id LIMIT $5"
            );
            let query = sqlx::query(LIST).bind(filter.state.map(WorkState::as_str));
            let query = query.bind(filter.session.as_ref().map(SessionId::as_str)).bind(&filter.key);
            let query = query.bind(&filter.worker).bind(to_i64(limit as u64)).bind(&filter.key_prefix);
            self.read_work(&fetch_all!(self, query))
        }))
    }

    fn counts(&self) -> BoxFuture<'_, Result<QueueCounts, StoreError>> {
        Box::pin(with_timeout(async move {
            const COUNTS: &str = concat!(
                "SELECT CASE WHEN state = 'queued' AND attempts = 0 AND due_ms > now THEN 'scheduled' ELSE state END AS kind,
                 count(*), max(now) - min(due_ms) FROM patter.work, (SELECT ",
                now!(),
                " AS now) AS clock GROUP BY kind"
            );
            let query = sqlx::query_as::<_, (String, i64, i64)>(COUNTS);
            Ok(counts(fetch_all!(self, query)))
        }))
    }

    fn change(&self, id: u64, change: WorkChange) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(with_timeout(async move {
            const RETRY: &str = concat!(
                "WITH changed AS (
                    UPDATE patter.work SET state = 'queued', attempts = 0, reason = NULL, due_ms = ",
                now!(),
                ", changed_ms = ",
                now!(),
                " WHERE id = $1 AND state IN ('queued', 'parked') RETURNING id
                )
                SELECT pg_notify('patter_work', '')::text FROM changed"
            );
            const REMOVE: &str = "DELETE FROM patter.work WHERE id = $1 AND state IN ('queued', 'parked') RETURNING id";
            const CANCEL: &str = "
                WITH changed AS (
                    UPDATE patter.work SET reason = 'cancelled' WHERE id = $1 AND state = 'running' RETURNING id
                )
                SELECT pg_notify('patter_work', '')::text FROM changed";
            let statement = match change {
                WorkChange::Retry => RETRY,
                WorkChange::Remove => REMOVE,
                WorkChange::Cancel => CANCEL,
            };
            let query = sqlx::query(statement).bind(to_i64(id));
            Ok(!fetch_all!(self, query).is_empty())
        }))
    }

    fn cancelled<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<Vec<u64>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = "SELECT id FROM patter.work WHERE worker = $1 AND state = 'running' AND reason = $2";
            let query = sqlx::query_scalar::<_, i64>(LIST).bind(worker).bind(CANCELLED);
            Ok(fetch_all!(self, query).into_iter().filter_map(|id| u64::try_from(id).ok()).collect())
        }))
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.server.claims != ClaimMode::Lock {
                return tokio::time::sleep(POLL).await;
            }
            let mut listener = self.wakeups.0.lock().await;
            let woken = async {
                let connected = match listener.take() {
                    Some(connected) => connected,
                    None => self.listen().await?,
                };
                listener.insert(connected).recv().await
            };
            if let Err(error) = woken.await {
                tracing::debug!(%error, "cannot wait for work");
                *listener = None;
                tokio::time::sleep(LISTEN_PAUSE).await;
            }
        })
    }

    fn report(&self, report: WorkerReport) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let about = Registered { about: report.about, connections: self.server.unique_name().map(str::to_owned) };
            let about = serde_json::to_string(&about).map_err(|error| damaged(&report.worker, &error))?;
            let timeout_ms = i64::try_from(report.timeout.as_millis()).unwrap_or(i64::MAX / 4);
            let mut statements = self.pool.get().await.map_err(failed)?;
            let queries = [
                sqlx::query(REPORT).bind(&report.worker).bind(about),
                sqlx::query(GONE).bind(&report.worker).bind(timeout_ms),
                sqlx::query(PUT_BACK).bind(i64::from(report.max_attempts)),
            ];
            for query in queries {
                query.persistent(statements.named).execute(statements.on()).await.map_err(failed)?;
            }
            statements.commit().await.map_err(failed)
        }))
    }

    fn leave<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut statements = self.pool.get().await.map_err(failed)?;
            let query = sqlx::query("DELETE FROM patter.workers WHERE id = $1").bind(worker);
            query.persistent(statements.named).execute(statements.on()).await.map_err(failed)?;
            // It stopped properly, so nothing failed.
            const PUT_BACK_ITS: &str = concat!(
                "UPDATE patter.work SET worker = NULL, state = 'queued', attempts = attempts - 1, due_ms = ",
                now!(),
                " WHERE state = 'running' AND worker = $1"
            );
            let query = sqlx::query(PUT_BACK_ITS).bind(worker).persistent(statements.named);
            query.execute(statements.on()).await.map_err(failed)?;
            statements.commit().await.map_err(failed)
        }))
    }

    fn workers(&self) -> BoxFuture<'_, Result<Vec<WorkerStatus>, StoreError>> {
        Box::pin(with_timeout(async move {
            const WORKERS: &str = concat!(
                "SELECT id, about, started_ms, greatest(0, ",
                now!(),
                " - seen_ms), (SELECT count(*) FROM patter.work WHERE worker = workers.id)
                  FROM patter.workers ORDER BY started_ms, id"
            );
            let query = sqlx::query_as::<_, (String, String, i64, i64, i64)>(WORKERS);
            let rows = fetch_all!(self, query);
            let number = |number: i64| u64::try_from(number).unwrap_or_default();
            let status = |(id, about, started_ms, seen_ago_ms, running): (String, String, i64, i64, i64)| {
                let about: WorkerInfo = serde_json::from_str(&about).map_err(|error| damaged(&id, &error))?;
                let started_ms = number(started_ms);
                Ok(WorkerStatus { id, about, started_ms, seen_ago_ms: number(seen_ago_ms), running: number(running) })
            };
            rows.into_iter().map(status).collect()
        }))
    }

    fn share_limits<'a>(&'a self, met: &'a [ProviderLimit]) -> BoxFuture<'a, Result<Vec<ProviderLimit>, StoreError>> {
        Box::pin(with_timeout(async move {
            if !met.is_empty() {
                let query = sqlx::query(ADD_LIMITS).bind(met.iter().map(|limit| &*limit.provider).collect::<Vec<_>>());
                let query = query.bind(met.iter().map(|limit| to_i64(milliseconds(limit.ends_in))).collect::<Vec<_>>());
                let query = query.bind(met.iter().map(|limit| &*limit.reason).collect::<Vec<_>>());
                fetch_all!(self, query);
            }
            let rows = fetch_all!(self, sqlx::query_as::<_, (String, i64, String)>(LIMITS));
            Ok(rows.into_iter().map(provider_limit).collect())
        }))
    }
}

/// What the database knows about a worker.
#[derive(serde::Serialize)]
struct Registered {
    #[serde(flatten)]
    about: WorkerInfo,
    /// The name of its connections, if it is unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<String>,
}

impl PostgresStore {
    fn read_work(&self, rows: &[PgRow]) -> Result<Vec<Work>, StoreError> {
        let read = |row: &PgRow| -> Result<WorkRow, sqlx::Error> {
            let numbers = (row.try_get(7)?, row.try_get(8)?, row.try_get(9)?, row.try_get(10)?);
            Ok((
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
                row.try_get(4)?,
                row.try_get(5)?,
                row.try_get(6)?,
                numbers,
                row.try_get(11)?,
                row.try_get(12)?,
            ))
        };
        rows.iter().map(|row| work(read(row).map_err(|error| self.server.failed(&error))?)).collect()
    }
}

fn damaged(worker: &str, error: &serde_json::Error) -> error::StoreError {
    StoreError::Failed { message: format!("the record of worker `{worker}` is damaged: {error}") }
}
