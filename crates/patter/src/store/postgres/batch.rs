//! Statements that change several sessions at once. Each is atomic, and takes one round trip.

use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use crate::store::session::{NewSession, SessionState};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::{QueryAs, QueryScalar};

/// The statement that creates sessions. It ends with what is returned about those that did not exist.
macro_rules! create {
    ($columns:literal, $values:literal, $condition:literal, $returned:literal) => {
        concat!(
            "
    WITH new AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[])
            AS new (id, agent, title, now_ms, entries, state, forked_from)
    ), created AS (
        INSERT INTO patter.sessions (id, agent, title, created_ms, changed_ms, entries, state, forked_from",
            $columns,
            ")
        SELECT id, agent, title, now_ms, now_ms, entries, state, forked_from",
            $values,
            " FROM new ",
            $condition,
            " ORDER BY id
        ON CONFLICT DO NOTHING RETURNING id
    ), inserted AS (
        INSERT INTO patter.entries (session, number, entry)
        SELECT created.id, new.number, new.entry
        FROM unnest($8::text[], $9::bigint[], $10::text[]) AS new (session, number, entry)
        JOIN created ON created.id = new.session
    ), attached AS (
        INSERT INTO patter.attachments (session, sha256, content)
        SELECT created.id, new.sha256, new.content
        FROM unnest($11::text[], $12::text[], $13::bytea[]) AS new (session, sha256, content)
        JOIN created ON created.id = new.session
    )
    SELECT id, ",
            $returned,
            " FROM created"
        )
    };
}

/// A session is locked before anyone else can see it. Returns the sessions that did not exist, and whether each was locked.
const CREATE: &str = create!("", "", "", "pg_try_advisory_lock(hashtextextended('patter session ' || id, 0))");
/// A session is created with its owner, whose lease must not have ended. Returns the sessions that did not exist.
const CREATE_OWNED: &str =
    create!(", owner, epoch", ", $14, 1", "WHERE EXISTS (SELECT FROM patter.leases WHERE owner = $14)", "true");

/// The statement that appends. As long as the time stays the same, no index changes. Returns the sessions whose logs were as
/// long as expected.
macro_rules! append {
    ($column:literal, $name:literal, $fence:literal) => {
        concat!(
            "
    WITH new AS (
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]",
            $column,
            ")
            AS new (id, expected, entries, state, now_ms",
            $name,
            ")
    ), updated AS (
        UPDATE patter.sessions AS session SET entries = session.entries + new.entries, state = new.state, changed_ms =
            CASE WHEN session.state = new.state AND new.state = $6 AND session.changed_ms > new.now_ms - 1000
            THEN session.changed_ms ELSE new.now_ms END
        FROM new WHERE session.id = new.id AND session.entries = new.expected ",
            $fence,
            " RETURNING session.id
    ), inserted AS (
        INSERT INTO patter.entries (session, number, entry)
        SELECT updated.id, new.number, new.entry
        FROM unnest($7::text[], $8::bigint[], $9::text[]) AS new (session, number, entry)
        JOIN updated ON updated.id = new.session
    )
    SELECT id FROM updated"
        )
    };
}

const APPEND: &str = append!("", "", "");
/// Only whoever claimed a session last appends to it.
const APPEND_FENCED: &str = append!(", $10::bigint[]", ", epoch", "AND session.epoch = new.epoch");

/// A session to create.
pub(super) struct Create {
    pub(super) new: NewSession,
    pub(super) now_ms: u64,
}

/// Entries to append to a session that has `first` entries.
pub(super) struct Append {
    pub(super) id: SessionId,
    pub(super) first: u64,
    pub(super) entries: Vec<String>,
    pub(super) state: SessionState,
    pub(super) now_ms: u64,
}

impl Append {
    /// Returns the error that somebody else changed the log.
    pub(super) fn conflict(&self) -> StoreError {
        StoreError::Conflict { id: self.id.clone(), expected: self.first }
    }
}

/// The entries of several sessions, as columns.
#[derive(Default)]
struct Entries<'e> {
    sessions: Vec<&'e str>,
    numbers: Vec<i64>,
    entries: Vec<&'e str>,
}

impl<'e> Entries<'e> {
    fn add(&mut self, id: &'e SessionId, first: u64, entries: &'e [String]) {
        for (number, entry) in (first..).zip(entries) {
            self.sessions.push(id.as_str());
            self.numbers.push(to_i64(number));
            self.entries.push(entry);
        }
    }
}

/// Returns the statement that creates sessions with different ids.
pub(super) fn create<'q>(creates: &[&'q Create]) -> QueryAs<'q, Postgres, (String, bool), PgArguments> {
    bind_creates(CREATE, creates)
}

/// Returns the statement that creates sessions with different ids for the owner of a lease.
pub(super) fn create_owned<'q>(
    creates: &[&'q Create],
    owner: &'q str,
) -> QueryAs<'q, Postgres, (String, bool), PgArguments> {
    bind_creates(CREATE_OWNED, creates).bind(owner)
}

fn bind_creates<'q>(
    statement: &'static str,
    creates: &[&'q Create],
) -> QueryAs<'q, Postgres, (String, bool), PgArguments> {
    let mut entries = Entries::default();
    for create in creates {
        entries.add(&create.new.id, 0, &create.new.entries);
    }
    let news = || creates.iter().map(|create| &create.new);
    let attached =
        || news().flat_map(|new| new.attachments.iter().map(|(sha256, content)| (&new.id, sha256, &**content)));
    sqlx::query_as(statement)
        .bind(news().map(|new| new.id.as_str()).collect::<Vec<_>>())
        .bind(news().map(NewSession::agent).collect::<Vec<_>>())
        .bind(news().map(NewSession::title).collect::<Vec<_>>())
        .bind(creates.iter().map(|create| to_i64(create.now_ms)).collect::<Vec<_>>())
        .bind(news().map(|new| to_i64(new.entries.len() as u64)).collect::<Vec<_>>())
        .bind(news().map(|new| new.state.as_str()).collect::<Vec<_>>())
        .bind(news().map(|new| new.forked_from.as_ref().map(SessionId::as_str)).collect::<Vec<_>>())
        .bind(entries.sessions)
        .bind(entries.numbers)
        .bind(entries.entries)
        .bind(attached().map(|(id, ..)| id.as_str()).collect::<Vec<_>>())
        .bind(attached().map(|(_, sha256, _)| sha256).collect::<Vec<_>>())
        .bind(attached().map(|(.., content)| content).collect::<Vec<_>>())
}

/// Returns the statement that appends to different sessions.
pub(super) fn append<'q>(appends: &[&'q Append]) -> QueryScalar<'q, Postgres, String, PgArguments> {
    bind_appends(APPEND, appends)
}

/// Returns the statement that appends to different sessions, if each was last claimed in an epoch.
pub(super) fn append_fenced<'q>(
    appends: &[&'q Append],
    epochs: Vec<i64>,
) -> QueryScalar<'q, Postgres, String, PgArguments> {
    bind_appends(APPEND_FENCED, appends).bind(epochs)
}

fn bind_appends<'q>(statement: &'static str, appends: &[&'q Append]) -> QueryScalar<'q, Postgres, String, PgArguments> {
    let mut entries = Entries::default();
    for append in appends {
        entries.add(&append.id, append.first, &append.entries);
    }
    sqlx::query_scalar(statement)
        .bind(appends.iter().map(|append| append.id.as_str()).collect::<Vec<_>>())
        .bind(appends.iter().map(|append| to_i64(append.first)).collect::<Vec<_>>())
        .bind(appends.iter().map(|append| to_i64(append.entries.len() as u64)).collect::<Vec<_>>())
        .bind(appends.iter().map(|append| append.state.as_str()).collect::<Vec<_>>())
        .bind(appends.iter().map(|append| to_i64(append.now_ms)).collect::<Vec<_>>())
        .bind(SessionState::Running.as_str())
        .bind(entries.sessions)
        .bind(entries.numbers)
        .bind(entries.entries)
}
