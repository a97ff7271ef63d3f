//! Tests for SQLite.

use super::{TestStore, append, claim_error, id, new, texts};
use patter::store::{self, SessionState, StoreError, StoreLocation};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

async fn open_error(path: &Path) -> (String, Option<String>) {
    let Err(error) = store::open(&StoreLocation::Sqlite(path.to_owned())).await else {
        panic!("{} opens", path.display())
    };
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
async fn file_and_folder_are_private() {
    let base = tempfile::tempdir().unwrap();
    for (folder, ignored) in [("a/.patter", true), ("b/other", false)] {
        let path = base.path().join(folder).join("sessions.db");
        let store = store::open(&StoreLocation::Sqlite(path.clone())).await.unwrap();
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
    // An existing folder is not changed.
    let folder = base.path().join("c/.patter");
    fs::create_dir_all(&folder).unwrap();
    store::open(&StoreLocation::Sqlite(folder.join("sessions.db"))).await.unwrap();
    assert!(!folder.join(".gitignore").exists());
}

#[tokio::test]
async fn other_files_are_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    for (name, content) in [("short", "hello"), ("long", &*"no database ".repeat(1000)), ("zeros", &"\0".repeat(8192))]
    {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let unchanged = "use another file; this one was not changed";
    for (name, message) in [
        ("other.db", "the session store `FILE` is not a Patter database"),
        ("short", "the session store `FILE` is not a database"),
        ("long", "the session store `FILE` is not a database"),
        ("zeros", "the session store `FILE` is not a database"),
    ] {
        let path = folder.path().join(name);
        let before = fs::read(&path).unwrap();
        assert_eq!(open_error(&path).await, (message.to_owned(), Some(unchanged.to_owned())), "{name}");
        assert!(fs::read(&path).unwrap() == before, "{name} was changed");
    }
    assert_eq!(files(folder.path()), ["long", "other.db", "short", "zeros"]);
}

#[tokio::test]
async fn unusable_path_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    symlink("nowhere/at/all", folder.path().join("dangling")).unwrap();
    for (path, message) in [
        ("", "the session store `FILE` cannot be opened"),
        ("file/sessions.db", "cannot open the session store `FILE`: a part of its path is not a folder"),
        ("dangling", "cannot open the session store `FILE`: no such file or folder"),
    ] {
        // `join("")` would add a slash.
        let path = if path.is_empty() { folder.path().to_owned() } else { folder.path().join(path) };
        assert_eq!(open_error(&path).await.0, message);
    }
}

#[tokio::test]
async fn newer_store_is_not_touched() {
    let test_store = TestStore::sqlite();
    drop(test_store.open().await.create(new("a"), 1).await.unwrap());
    test_store.execute("PRAGMA user_version = 99").await;
    let (message, hint) = open_error(file_path(&test_store)).await;
    assert_eq!(message, "the session store `FILE` was created by a newer version of Patter");
    assert_eq!(hint.unwrap(), "update Patter, or use another file");
}

/// Makes a store one of version 1, whose session `a` has two entries.
async fn make_older(test_store: &TestStore) {
    let older = "
        CREATE TABLE entries (
            session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            entry TEXT NOT NULL,
            PRIMARY KEY (session, number)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO entries VALUES ('a', 1, '2'), ('a', 0, '1');
        DROP TABLE logs; DROP TABLE work; DROP TABLE workers; PRAGMA user_version = 1;
    ";
    test_store.execute(older).await;
}

#[tokio::test]
async fn an_older_store_is_copied_and_brought_up_to_date() {
    let test_store = TestStore::sqlite();
    append(&mut test_store.open().await.create(new("a"), 1).await.unwrap(), &texts(["1", "2"])).await;
    make_older(&test_store).await;
    let copy = file_path(&test_store).with_extension("db.version-1");
    assert!(!copy.exists());
    for _ in 0..2 {
        let store = test_store.open().await;
        assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1", "2"]);
        assert!(store.queue().unwrap().workers().await.unwrap().is_empty());
        assert_eq!(store.claim(&id("a")).await.unwrap().entries(), 2);
    }
    let copied = rusqlite::Connection::open(copy).unwrap();
    assert_eq!(copied.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    assert_eq!(copied.query_row("SELECT entry FROM entries", [], |row| row.get::<_, String>(0)).unwrap(), "1");
}

#[tokio::test]
async fn an_older_store_stays_as_it_is_while_it_is_used() {
    let test_store = TestStore::sqlite();
    let mut claim = test_store.open().await.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1", "2"])).await;
    make_older(&test_store).await;
    let (message, hint) = open_error(file_path(&test_store)).await;
    let used = format!("the session store `FILE` is used by process {} on ", std::process::id());
    assert!(message.starts_with(&used) && message.ends_with(", an older version of Patter"), "{message}");
    assert_eq!(hint.unwrap(), "stop it first: this version changes the format of the store");
    drop(claim);
    assert_eq!(test_store.open().await.read(&id("a")).await.unwrap().entries, ["1", "2"]);
}

#[tokio::test]
async fn read_only_store_can_be_read() {
    let test_store = TestStore::sqlite();
    let mut claim = test_store.open().await.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1"])).await;
    drop(claim);
    test_store.execute("PRAGMA journal_mode = DELETE").await;
    // A write version that SQLite does not know makes the file read-only, even for root.
    fs::File::options().write(true).open(file_path(&test_store)).unwrap().write_all_at(&[3], 18).unwrap();
    let store = test_store.open().await;
    assert_eq!(store.read(&id("a")).await.unwrap().entries, ["1"]);
    let mut claim = store.claim(&id("a")).await.unwrap();
    let error = claim.append(&texts(["2"]), SessionState::Idle, 2).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the session store `{}` is read-only", file_path(&test_store).display()));
    assert_eq!(error.hint().unwrap(), "allow this user to write to it, or use another file");
    assert!(matches!(claim_error(store.create(new("b"), 1).await), StoreError::Unusable { .. }));
}

#[tokio::test]
async fn damaged_file_is_reported() {
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &vec!["entry".repeat(100); 1000]).await;
    drop((claim, store));
    test_store.execute("PRAGMA journal_mode = DELETE").await;
    let file = fs::File::options().write(true).open(file_path(&test_store)).unwrap();
    file.write_all_at(&vec![0xab; 400_000], 8192).unwrap();
    let error = test_store.open().await.read(&id("a")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("the session store `{}` is damaged", file_path(&test_store).display()));
}

#[tokio::test]
async fn aliases_of_a_file_share_one_lock() {
    let test_store = TestStore::sqlite();
    let path = file_path(&test_store);
    let alias: PathBuf = path.with_file_name("alias.db");
    let store = test_store.open().await;
    let claim = store.create(new("a"), 1).await.unwrap();
    symlink(path, &alias).unwrap();
    let other = store::open(&StoreLocation::Sqlite(alias)).await.unwrap();
    assert!(matches!(claim_error(other.claim(&id("a")).await), StoreError::Busy { .. }));
    drop(claim);
    drop(other.claim(&id("a")).await.unwrap());
}

#[tokio::test]
async fn leftover_lock_file_is_not_a_claim() {
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    drop(store.create(new("a"), 1).await.unwrap());
    let lock = PathBuf::from(format!("{}.a.lock", file_path(&test_store).display()));
    fs::write(&lock, "process 1 on a host that is gone").unwrap();
    let claim = store.claim(&id("a")).await.unwrap();
    let StoreError::Busy { holder, .. } = claim_error(store.claim(&id("a")).await) else { panic!() };
    assert!(holder.unwrap().starts_with(&format!("process {} on ", std::process::id())));
    drop(claim);
    assert!(!lock.exists());
}

#[tokio::test]
async fn claim_waits_for_a_lock_that_outlives_its_holder() {
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    drop(store.create(new("a"), 1).await.unwrap());
    let path = PathBuf::from(format!("{}.a.lock", file_path(&test_store).display()));
    let lock = fs::File::create(&path).unwrap();
    lock.lock().unwrap();
    let release = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(60)).await;
        drop(lock);
    });
    drop(store.claim(&id("a")).await.unwrap());
    release.await.unwrap();
}

#[tokio::test]
async fn locks_that_share_a_file_are_released_one_by_one() {
    let test_store = TestStore::sqlite();
    let store = test_store.open().await;
    let other = test_store.open().await;
    let first = store.create(new("a"), 1).await.unwrap();
    let second = store.create(new("b"), 1).await.unwrap();
    drop(first);
    drop(other.claim(&id("a")).await.unwrap());
    assert!(matches!(claim_error(other.claim(&id("b")).await), StoreError::Busy { .. }));
    let third = store.create(new("c"), 1).await.unwrap();
    drop(second);
    drop(other.claim(&id("b")).await.unwrap());
    assert!(matches!(claim_error(other.claim(&id("c")).await), StoreError::Busy { .. }));
    drop(third);
    drop(other.claim(&id("c")).await.unwrap());
    drop((store, other));
    let names = files(file_path(&test_store).parent().unwrap());
    assert!(!names.iter().any(|name| name.ends_with(".lock")), "{names:?}");
}

/// A way to lose the files of a store.
type Damage = fn(&Path);

#[tokio::test]
async fn files_that_are_removed_or_replaced_are_an_error() {
    fn part(path: &Path, ending: &str) -> PathBuf {
        format!("{}{ending}", path.display()).into()
    }
    let remove: Damage = |path| fs::remove_file(path).unwrap();
    let remove_log: Damage = |path| fs::remove_file(part(path, "-wal")).unwrap();
    let remove_index: Damage = |path| fs::remove_file(part(path, "-shm")).unwrap();
    let rename: Damage = |path| fs::rename(path, path.with_file_name("moved.db")).unwrap();
    let replace: Damage = |path| fs::rename(path.with_file_name("old.db"), path).unwrap();
    // In place, as `cp` does.
    let overwrite: Damage = |path| {
        let old = fs::read(path.with_file_name("old.db")).unwrap();
        fs::write(part(path, "-wal"), "").unwrap();
        fs::write(path, old).unwrap();
    };
    for damage in [remove, remove_log, remove_index, rename, replace, overwrite] {
        let test_store = TestStore::sqlite();
        let path = file_path(&test_store);
        let store = test_store.open().await;
        drop(store.create(new("earlier"), 1).await.unwrap());
        store.back_up(&path.with_file_name("old.db")).await.unwrap();
        let mut claim = store.create(new("a"), 1).await.unwrap();
        append(&mut claim, &texts(["1"])).await;
        damage(path);
        let error = claim.append(&texts(["2"]), SessionState::Idle, 2).await.unwrap_err();
        let expected = format!("the session store `{}` was removed or replaced while it was in use", path.display());
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().contains("is lost"));
        // It stays an error.
        assert!(claim.append(&texts(["3"]), SessionState::Idle, 3).await.is_err());
    }
}

#[tokio::test]
async fn copy_is_complete_and_usable() {
    let test_store = TestStore::sqlite();
    let path = file_path(&test_store);
    let store = test_store.open().await;
    let mut claim = store.create(new("a"), 1).await.unwrap();
    append(&mut claim, &texts(["1", "2"])).await;
    // The latest entries are not in the file itself.
    let copy = path.with_file_name("plain copy.db");
    fs::copy(path, &copy).unwrap();
    let stored = store::open(&StoreLocation::Sqlite(copy)).await.unwrap().list(9).await.unwrap();
    assert!(stored.iter().all(|session| session.entries == 0), "{stored:?}");
    let backup = path.with_file_name("backup.db");
    store.back_up(&backup).await.unwrap();
    assert_eq!(mode(&backup), 0o600);
    append(&mut claim, &texts(["3"])).await;
    let copied = store::open(&StoreLocation::Sqlite(backup.clone())).await.unwrap();
    assert_eq!(copied.read(&id("a")).await.unwrap().entries, ["1", "2"]);
    // The claim belongs to the other file.
    let mut copied_claim = copied.claim(&id("a")).await.unwrap();
    append(&mut copied_claim, &texts(["other"])).await;
    assert!(path.with_file_name("backup.db-wal").exists(), "it uses a write-ahead log");
    // Nothing is overwritten, and nothing is left behind.
    let before = fs::read(&backup).unwrap();
    let error = store.back_up(&backup).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write the copy `{}`: it already exists", backup.display()));
    assert!(fs::read(&backup).unwrap() == before);
    let error = store.back_up(Path::new("/no/such/folder/backup.db")).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write the copy `/no/such/folder/backup.db`: no such file or folder");
    assert_eq!(files(path.parent().unwrap()).iter().filter(|name| name.contains("partial")).count(), 0);
}

fn file_path(test_store: &TestStore) -> &Path {
    match &test_store.location {
        StoreLocation::Sqlite(path) => path,
        StoreLocation::Postgres(_) => panic!(),
    }
}
