//! What only files do.

use super::{Place, append, id, new, refused, texts};
use patter::store::{self, Location, SessionState, StoreError};
use sqlx::{Connection, SqliteConnection};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

async fn why(path: &Path) -> (String, Option<String>) {
    let Err(error) = store::open(&Location::Sqlite(path.to_owned())).await else { panic!("{} opens", path.display()) };
    (error.to_string().replace(&*path.to_string_lossy(), "FILE"), error.hint())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_file_and_its_folder_are_made_for_us_alone() {
    let place = tempfile::tempdir().unwrap();
    for (folder, ignored) in [("a/.patter", true), ("b/other", false)] {
        let path = place.path().join(folder).join("sessions.db");
        let store = store::open(&Location::Sqlite(path.clone())).await.unwrap();
        let mut claim = store.create(new("a"), 1).await.unwrap();
        append(&mut claim, &texts(["1"])).await;
        let folder = path.parent().unwrap();
        assert_eq!(mode(folder), 0o700);
        assert_eq!(fs::read_to_string(folder.join(".gitignore")).ok(), ignored.then(|| "*\n".to_owned()));
        for name in ["sessions.db", "sessions.db-wal", "sessions.db-shm", "sessions.db.a.lock"] {
            assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
        }
        drop(claim);
        assert!(!folder.join("sessions.db.a.lock").exists());
    }
    // A folder that is there is left as it is.
    let folder = place.path().join("c/.patter");
    fs::create_dir_all(&folder).unwrap();
    store::open(&Location::Sqlite(folder.join("sessions.db"))).await.unwrap();
    assert!(!folder.join(".gitignore").exists());
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let other = place.path().join("other.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", other.display())).await.unwrap();
    sqlx::raw_sql("CREATE TABLE theirs (a)").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    for (name, content) in [("short", "hello"), ("long", &*"no database ".repeat(1000)), ("zeros", &"\0".repeat(8192))]
    {
        fs::write(place.path().join(name), content).unwrap();
    }
    let unchanged = "name another file; this one was not changed";
    for (name, message) in [
        ("other.db", "the store of sessions `FILE` is a database of something else"),
        ("short", "the store of sessions `FILE` is no database"),
        ("long", "the store of sessions `FILE` is no database"),
        ("zeros", "the store of sessions `FILE` is no database"),
    ] {
        let path = place.path().join(name);
        let before = fs::read(&path).unwrap();
        assert_eq!(why(&path).await, (message.to_owned(), Some(unchanged.to_owned())), "{name}");
        assert!(fs::read(&path).unwrap() == before, "{name} was changed");
    }
    assert_eq!(files(place.path()), ["long", "other.db", "short", "zeros"]);
}

#[tokio::test]
async fn a_place_that_cannot_be_is_told() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    symlink("nowhere/at/all", place.path().join("dangling")).unwrap();
    for (path, message) in [
        ("", "the store of sessions `FILE` cannot be opened"),
        ("file/sessions.db", "the store of sessions `FILE` cannot be opened: not a directory"),
        ("dangling", "the store of sessions `FILE` cannot be opened: No such file or directory (os error 2)"),
    ] {
        // `join("")` would add a slash.
        let path = if path.is_empty() { place.path().to_owned() } else { place.path().join(path) };
        assert_eq!(why(&path).await.0, message);
    }
}

#[tokio::test]
async fn a_store_of_a_newer_patter_is_left_alone() {
    let place = Place::sqlite();
    drop(place.open().await.create(new("a"), 1).await.unwrap());
    place.meddle("PRAGMA user_version = 2").await;
    let (message, hint) = why(path_of(&place)).await;
    assert_eq!(message, "the store of sessions `FILE` is of a newer version of Patter");
    assert_eq!(hint.unwrap(), "update Patter, or name another file");
}

#[tokio::test]
async fn a_store_that_is_read_only_can_be_read() {
    let place = Place::sqlite();
    let mut claim = place.open().await.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    drop(claim);
    place.meddle("PRAGMA journal_mode = DELETE").await;
    // A version that nobody can write: so it is read-only to root as well.
    fs::File::options().write(true).open(path_of(&place)).unwrap().write_all_at(&[3], 18).unwrap();
    let store = place.open().await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1"]);
    let mut claim = store.claim(&id("a")).await.unwrap();
    let error = claim.append(&texts(["2"]), SessionState::Idle, 2).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the store of sessions `{}` is read-only", path_of(&place).display()));
    assert_eq!(error.hint().unwrap(), "allow this user to write to it, or name another file");
    assert!(matches!(refused(store.create(new("b"), 1).await), StoreError::Unusable { .. }));
}

#[tokio::test]
async fn a_damaged_file_is_told() {
    let place = Place::sqlite();
    let store = place.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &vec!["entry".repeat(100); 1000]).await;
    drop((claim, store));
    place.meddle("PRAGMA wal_checkpoint(TRUNCATE)").await;
    let file = fs::File::options().write(true).open(path_of(&place)).unwrap();
    file.write_all_at(&vec![0xab; 400_000], 8192).unwrap();
    let error = place.open().await.read(&id("a")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the store of sessions `{}` is damaged", path_of(&place).display()));
}

#[tokio::test]
async fn a_file_has_one_lock_whatever_it_is_called() {
    let place = Place::sqlite();
    let path = path_of(&place);
    let alias: PathBuf = path.with_file_name("alias.db");
    let store = place.open().await;
    let claim = store.create(new("a"), 1).await.unwrap();
    symlink(path, &alias).unwrap();
    let other = store::open(&Location::Sqlite(alias)).await.unwrap();
    assert!(matches!(refused(other.claim(&id("a")).await), StoreError::Busy { .. }));
    drop(claim);
    drop(other.claim(&id("a")).await.unwrap());
}

#[tokio::test]
async fn a_lock_that_was_left_behind_is_no_claim() {
    let place = Place::sqlite();
    let store = place.open().await;
    drop(store.create(new("a"), 1).await.unwrap());
    let lock = PathBuf::from(format!("{}.a.lock", path_of(&place).display()));
    fs::write(&lock, "process 1 on somewhere, which has ended").unwrap();
    let claim = store.claim(&id("a")).await.unwrap();
    let StoreError::Busy { holder, .. } = refused(store.claim(&id("a")).await) else { panic!() };
    assert!(holder.unwrap().starts_with(&format!("process {} on ", std::process::id())));
    drop(claim);
    assert!(!lock.exists());
}

fn path_of(place: &Place) -> &Path {
    match &place.location {
        Location::Sqlite(path) => path,
        Location::Postgres(_) => panic!(),
    }
}
