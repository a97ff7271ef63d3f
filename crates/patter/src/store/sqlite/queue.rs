//! The queue of work. Programs that share a file are on one machine, so they have the same clock.

use super::SqliteStore;
use crate::model::ProviderLimit;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::limit::with_timeout;
use crate::store::row::to_i64;
use crate::store::work::{
    CANCELLED, NewWork, QueueCounts, Settlement, TakeRequest, Work, WorkChange, WorkFilter, WorkQueue, WorkRow,
    WorkState, WorkerInfo, WorkerReport, WorkerStatus, change_of, counts, provider_limit, work, work_columns,
};
use crate::tool::BoxFuture;
use patter_core::text::milliseconds;
use rusqlite::{Connection, Row, params};
use serde_json::json;
use std::time::Duration;

/// How often to look for what other programs changed.
const POLL: Duration = Duration::from_millis(200);

/// The current time, in milliseconds.
macro_rules! now {
    () => {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    };
}

const ADD: &str = concat!(
    "INSERT INTO work (key, session, agent, tenant, task, state, due_ms, created_ms, changed_ms, attempts, worker)
     SELECT ?1, ?2, ?3, ?4, ?5, CASE WHEN ?6 IS NULL THEN 'queued' ELSE 'running' END, coalesce(?7, now), now, now,
        ?6 IS NOT NULL, ?6
     FROM (SELECT ",
    now!(),
    " AS now) WHERE true ON CONFLICT (key) DO NOTHING"
);

/// Work of a session is done in order. Whoever has least under way comes first.
const TAKE: &str = concat!(
    "WITH agents AS (
        SELECT key AS name, value AS most FROM json_each(?2)
    ), tenants AS (
        SELECT key AS name, value AS most FROM json_each(?3)
    ), due AS (
        SELECT id, agent, tenant, due_ms FROM work
        WHERE state IN ('queued', 'waiting') AND agent IN (SELECT name FROM agents)
            AND CASE WHEN ?4 IS NULL THEN due_ms <= ",
    now!(),
    " ELSE session = ?4 END
            AND NOT EXISTS (
                SELECT 1 FROM work AS other WHERE other.session = work.session
                    AND (other.state = 'running' OR (other.id < work.id AND other.state <> 'parked')))
        ORDER BY due_ms, id LIMIT 1000
    ), by_agent AS (
        SELECT due.*, row_number() OVER (PARTITION BY due.agent ORDER BY due_ms, id) + coalesce(busy.running, 0) AS agent_rank
        FROM due LEFT JOIN (SELECT agent, count(*) AS running FROM work WHERE state = 'running' GROUP BY agent) AS busy
            ON busy.agent = due.agent
    ), by_tenant AS (
        SELECT by_agent.*, row_number() OVER (PARTITION BY by_agent.tenant ORDER BY due_ms, id) + coalesce(busy.running, 0)
            AS tenant_rank
        FROM by_agent JOIN agents ON agents.name = by_agent.agent
        LEFT JOIN (SELECT tenant, count(*) AS running FROM work WHERE state = 'running' GROUP BY tenant) AS busy
            ON busy.tenant = by_agent.tenant
        WHERE agents.most IS NULL OR agent_rank <= agents.most
    )
    SELECT by_tenant.id FROM by_tenant LEFT JOIN tenants ON tenants.name = by_tenant.tenant
    WHERE tenants.most IS NULL OR tenant_rank <= tenants.most
    ORDER BY tenant_rank, agent_rank, due_ms, by_tenant.id LIMIT ?1"
);

const TAKEN: &str = concat!(
    "UPDATE work SET state = 'running', reason = NULL, worker = ?2, attempts = attempts + 1, changed_ms = ",
    now!(),
    " WHERE id = ?1"
);

const SETTLE: &str = concat!(
    "UPDATE work SET state = ?3, due_ms = ",
    now!(),
    " + ?4, attempts = attempts + ?5, reason = ?6, worker = NULL, changed_ms = ",
    now!(),
    " WHERE id = ?1 AND worker = ?2 AND state = 'running'"
);

const REPORT: &str = concat!(
    "INSERT INTO workers (id, about, started_ms, seen_ms) SELECT ?1, ?2, now, now FROM (SELECT ",
    now!(),
    " AS now) WHERE true ON CONFLICT (id) DO UPDATE SET about = excluded.about, seen_ms = excluded.seen_ms"
);

const GONE: &str = concat!("DELETE FROM workers WHERE id <> ?1 AND seen_ms < ", now!(), " - ?2");

/// Puts the work back of workers that are not there.
const PUT_BACK: &str = concat!(
    "UPDATE work SET reason = 'its worker stopped: ' || worker, worker = NULL,
        state = CASE WHEN attempts >= ?1 THEN 'parked' ELSE 'queued' END, due_ms = ",
    now!(),
    ", changed_ms = ",
    now!(),
    " WHERE state = 'running' AND worker NOT IN (SELECT id FROM workers)"
);

const LIMITS_TABLE: &str = "CREATE TABLE IF NOT EXISTS provider_limits (
    provider TEXT PRIMARY KEY, until_ms INTEGER NOT NULL, reason TEXT NOT NULL) STRICT";
const HAS_LIMITS: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'provider_limits'";
const ADD_LIMIT: &str = concat!(
    "INSERT INTO provider_limits (provider, until_ms, reason) VALUES (?1, ",
    now!(),
    " + ?2, ?3) ON CONFLICT (provider) DO UPDATE SET until_ms = excluded.until_ms, reason = excluded.reason
     WHERE until_ms < excluded.until_ms"
);
const LIMITS: &str = concat!(
    "SELECT provider, until_ms - ",
    now!(),
    ", reason FROM provider_limits WHERE until_ms > ",
    now!(),
    " ORDER BY provider"
);

/// How much work is due, and when work changed.
type QueueMark = (i64, i64);

impl SqliteStore {
    /// Returns what changes with the queue.
    async fn queue_mark(&self) -> Option<QueueMark> {
        const MARK: &str = concat!(
            "SELECT count(*) FILTER (WHERE state IN ('queued', 'waiting') AND due_ms <= ",
            now!(),
            "), coalesce(max(changed_ms), 0) FROM work"
        );
        let read = |connection: &Connection| connection.query_row(MARK, [], |row| Ok((row.get(0)?, row.get(1)?)));
        self.readers.read(read).await.ok()
    }
}

impl WorkQueue for SqliteStore {
    fn add(&self, new: NewWork) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let added = self.change(move |transaction| {
                let NewWork { key, session, agent, tenant, task, worker, due_ms } = new;
                let due_ms = due_ms.map(to_i64);
                let values = params![key, session.as_str(), agent, tenant, task, worker, due_ms];
                let added = transaction.execute(ADD, values)?;
                Ok((added == 1).then(|| transaction.last_insert_rowid()))
            });
            let id = added.await?.and_then(|id| u64::try_from(id).ok());
            self.wakeups.notify_one();
            // Who asked for it may rely on it, also after a power cut.
            self.sync_file().await?;
            Ok(id)
        })
    }

    fn take(&self, request: TakeRequest) -> BoxFuture<'_, Result<Vec<Work>, StoreError>> {
        Box::pin(async move {
            let taken = self.change(move |transaction| {
                let agents = json!(request.agents).to_string();
                let tenants = json!(request.tenants).to_string();
                let session = request.session.as_ref().map(SessionId::as_str);
                let ids: Vec<i64> = transaction
                    .prepare_cached(TAKE)?
                    .query_map(params![to_i64(request.limit as u64), agents, tenants, session], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                let mut rows = Vec::with_capacity(ids.len());
                for id in ids {
                    transaction.prepare_cached(TAKEN)?.execute(params![id, request.worker])?;
                    rows.push(transaction.query_row(
                        concat!("SELECT ", work_columns!(), " FROM work WHERE id = ?1"),
                        [id],
                        work_row,
                    )?);
                }
                Ok(rows)
            });
            taken.await?.into_iter().map(work).collect()
        })
    }

    fn settle<'a>(
        &'a self,
        id: u64,
        worker: &'a str,
        settlement: Settlement,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let worker = worker.to_owned();
        Box::pin(async move {
            let settled = self.change(move |transaction| {
                const DONE: &str = "DELETE FROM work WHERE id = ?1 AND worker = ?2 AND state = 'running'";
                let id = to_i64(id);
                let changed = match change_of(settlement) {
                    None => transaction.execute(DONE, params![id, worker])?,
                    Some((state, later_ms, attempts, reason)) => {
                        transaction.execute(SETTLE, params![id, worker, state.as_str(), later_ms, attempts, reason])?
                    }
                };
                Ok(changed == 1)
            });
            let is_settled = settled.await?;
            // What waited for it may be next.
            self.wakeups.notify_one();
            Ok(is_settled)
        })
    }

    fn list<'a>(&'a self, filter: &'a WorkFilter, limit: usize) -> BoxFuture<'a, Result<Vec<Work>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                work_columns!(),
                " FROM work WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR key = ?3)
                  AND (?4 IS NULL OR worker = ?4) AND (?6 IS NULL OR substr(key, 1, length(?6)) = ?6)
                  ORDER BY due_ms, id LIMIT ?5"
            );
            let state = filter.state.map(WorkState::as_str);
            let session = filter.session.as_ref().map(|session| session.as_str().to_owned());
            let key = filter.key.clone();
            let worker = filter.worker.clone();
            let prefix = filter.key_prefix.clone();
            let rows = self.readers.read(move |connection: &Connection| {
                let mut query = connection.prepare_cached(LIST)?;
                let values = params![state, session, key, worker, to_i64(limit as u64), prefix];
                let rows = query.query_map(values, work_row)?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
            rows.await?.into_iter().map(work).collect()
        }))
    }

    fn counts(&self) -> BoxFuture<'_, Result<QueueCounts, StoreError>> {
        Box::pin(with_timeout(async move {
            let rows = self.readers.read(|connection: &Connection| {
                const COUNTS: &str = concat!(
                    "SELECT CASE WHEN state = 'queued' AND attempts = 0 AND due_ms > ",
                    now!(),
                    " THEN 'scheduled' ELSE state END AS kind, count(*), ",
                    now!(),
                    " - min(due_ms) FROM work GROUP BY kind"
                );
                let mut query = connection.prepare_cached(COUNTS)?;
                let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
            Ok(counts(rows.await?))
        }))
    }

    fn change(&self, id: u64, change: WorkChange) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let changed = self.change(move |transaction| {
                const RETRY: &str = concat!(
                    "UPDATE work SET state = 'queued', attempts = 0, reason = NULL, due_ms = ",
                    now!(),
                    ", changed_ms = ",
                    now!(),
                    " WHERE id = ?1 AND state IN ('queued', 'parked')"
                );
                const REMOVE: &str = "DELETE FROM work WHERE id = ?1 AND state IN ('queued', 'parked')";
                const CANCEL: &str = concat!(
                    "UPDATE work SET reason = 'cancelled', changed_ms = ",
                    now!(),
                    " WHERE id = ?1 AND state = 'running'"
                );
                let statement = match change {
                    WorkChange::Retry => RETRY,
                    WorkChange::Remove => REMOVE,
                    WorkChange::Cancel => CANCEL,
                };
                Ok(transaction.execute(statement, [to_i64(id)])? == 1)
            });
            let is_changed = changed.await?;
            self.wakeups.notify_one();
            Ok(is_changed)
        })
    }

    fn cancelled<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<Vec<u64>, StoreError>> {
        let worker = worker.to_owned();
        Box::pin(with_timeout(async move {
            let ids = self.readers.read(move |connection: &Connection| {
                const LIST: &str = "SELECT id FROM work WHERE worker = ?1 AND state = 'running' AND reason = ?2";
                let mut query = connection.prepare_cached(LIST)?;
                let ids = query.query_map([worker.as_str(), CANCELLED], |row| row.get::<_, i64>(0))?;
                ids.collect::<rusqlite::Result<Vec<_>>>()
            });
            Ok(ids.await?.into_iter().filter_map(|id| u64::try_from(id).ok()).collect())
        }))
    }

    fn wait(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let before = self.queue_mark().await;
            // Other programs cannot wake this one.
            while tokio::time::timeout(POLL, self.wakeups.notified()).await.is_err() {
                let mark = self.queue_mark().await;
                if mark.is_none_or(|(due, _)| due > 0) || mark != before {
                    return;
                }
            }
        })
    }

    fn report(&self, report: WorkerReport) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.change(move |transaction| {
            let about = json!(report.about).to_string();
            let timeout_ms = i64::try_from(report.timeout.as_millis()).unwrap_or(i64::MAX / 4);
            transaction.execute(REPORT, params![report.worker, about])?;
            transaction.execute(GONE, params![report.worker, timeout_ms])?;
            transaction.execute(PUT_BACK, [report.max_attempts])?;
            Ok(())
        }))
    }

    fn leave<'a>(&'a self, worker: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        let worker = worker.to_owned();
        Box::pin(self.change(move |transaction| {
            // It stopped properly, so nothing failed.
            const PUT_BACK_ITS: &str = concat!(
                "UPDATE work SET worker = NULL, state = 'queued', attempts = attempts - 1, due_ms = ",
                now!(),
                " WHERE state = 'running' AND worker = ?1"
            );
            transaction.execute("DELETE FROM workers WHERE id = ?1", [&worker])?;
            transaction.execute(PUT_BACK_ITS, [&worker])?;
            Ok(())
        }))
    }

    fn workers(&self) -> BoxFuture<'_, Result<Vec<WorkerStatus>, StoreError>> {
        Box::pin(with_timeout(async move {
            const WORKERS: &str = concat!(
                "SELECT id, about, started_ms, max(0, ",
                now!(),
                " - seen_ms), (SELECT count(*) FROM work WHERE worker = workers.id) FROM workers ORDER BY started_ms, id"
            );
            let rows = self.readers.read(|connection: &Connection| {
                let mut query = connection.prepare_cached(WORKERS)?;
                let number = |number: i64| u64::try_from(number).unwrap_or_default();
                let rows = query.query_map([], |row| {
                    let about: String = row.get(1)?;
                    Ok(WorkerStatus {
                        id: row.get(0)?,
                        about: serde_json::from_str::<WorkerInfo>(&about).unwrap_or_default(),
                        started_ms: number(row.get(2)?),
                        seen_ago_ms: number(row.get(3)?),
                        running: number(row.get(4)?),
                    })
                })?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
            rows.await
        }))
    }

    fn share_limits<'a>(&'a self, met: &'a [ProviderLimit]) -> BoxFuture<'a, Result<Vec<ProviderLimit>, StoreError>> {
        Box::pin(with_timeout(async move {
            let met: Vec<_> = met.to_vec();
            if !met.is_empty() {
                self.change(move |transaction| {
                    // The table is created with the first limit, so that files without any stay as they were.
                    transaction.execute_batch(LIMITS_TABLE)?;
                    let mut add = transaction.prepare(ADD_LIMIT)?;
                    for limit in &met {
                        add.execute(params![limit.provider, to_i64(milliseconds(limit.ends_in)), limit.reason])?;
                    }
                    Ok(())
                })
                .await?;
            }
            let rows = self.readers.read(|connection| {
                if !connection.prepare_cached(HAS_LIMITS)?.exists([])? {
                    return Ok(Vec::new());
                }
                let mut query = connection.prepare_cached(LIMITS)?;
                query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            });
            let rows: Vec<(String, i64, String)> = rows.await?;
            Ok(rows.into_iter().map(provider_limit).collect())
        }))
    }
}

fn work_row(row: &Row<'_>) -> rusqlite::Result<WorkRow> {
    let numbers = (row.get(7)?, row.get(8)?, row.get(9)?, row.get(10)?);
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
        row.get(5)?,
        row.get(6)?,
        numbers,
        row.get(11)?,
        row.get(12)?,
    ))
}
