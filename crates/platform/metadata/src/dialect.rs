//! What differs between SQLite and PostgreSQL.

use forebay_types::ErrorKind;

/// All that differs between the two databases. `$1`, `RETURNING` and `ON CONFLICT` mean the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// Names the leader's lock in PostgreSQL's advisory locks: "forebay" in ASCII and a number.
const LEADER_LOCK: i64 = 0x666f_7265_6261_7901;
/// Names the lock under which the schema is migrated.
const SCHEMA_LOCK: i64 = 0x666f_7265_6261_7902;

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// The type of bytes in the schema.
    pub(crate) fn blob(self) -> &'static str {
        match self {
            Self::Sqlite => "BLOB",
            Self::Postgres => "BYTEA",
        }
    }

    /// What every new connection runs first. On SQLite: the file by itself has all that was written, for whoever copies it, and not the
    /// log beside it, where the last thousand pages would wait. On PostgreSQL: no statement waits for ever, and the server notices within
    /// 15 s that a machine is gone, so that its lock becomes free.
    pub(crate) fn session_settings(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 1"
            }
            Self::Postgres => {
                "SET statement_timeout = '10s'; SET idle_in_transaction_session_timeout = '30s'; \
                 SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 5"
            }
        }
    }

    /// Makes others who want to migrate wait until the transaction ends. SQLite's first write does.
    pub(crate) fn lock_schema(self) -> Option<String> {
        (self == Self::Postgres).then(|| format!("SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
    }

    /// Says whether the session has got the leader's lock, as 1 or 0. SQLite's is a lock on a file.
    pub(crate) fn try_lock_leader() -> String {
        format!("SELECT CASE WHEN pg_try_advisory_lock({LEADER_LOCK}) THEN 1 ELSE 0 END")
    }

    /// Says how the database encodes text, where that can be wrong.
    pub(crate) fn show_encoding(self) -> Option<&'static str> {
        (self == Self::Postgres).then_some("SHOW server_encoding")
    }

    /// What the caller must do about an error of the database, by its code, and what may help.
    pub(crate) fn classify(self, code: &str) -> (ErrorKind, &'static str) {
        match self {
            Self::Sqlite => match code.parse::<u32>().unwrap_or(0) & 0xff {
                3 | 8 | 23 => (ErrorKind::Denied, ": make the file and its folder writable for this user"),
                5 | 6 => (ErrorKind::Retry, ": another process has it locked; try again"),
                13 => (ErrorKind::Retry, ": make room on the disk"),
                14 => (ErrorKind::Denied, ": check that the folder is there and writable for this user"),
                11 => (ErrorKind::Corrupt, ": restore the file from a backup, or move it away to start without mounts"),
                26 => (ErrorKind::Invalid, ": it is another kind of file; choose another path"),
                _ => (ErrorKind::Internal, ""),
            },
            Self::Postgres => match (code.get(..2).unwrap_or(""), code) {
                (_, "42501") => (ErrorKind::Denied, ": grant the user CREATE on the database's schema"),
                (_, "3D000") => (ErrorKind::NotFound, ": create it first, as in `createdb -E UTF8 NAME`"),
                ("28", _) => (ErrorKind::Denied, ": check user and password of the metadata URL, and the server's pg_hba.conf"),
                ("08" | "40" | "53" | "55" | "57" | "25", _) => (ErrorKind::Retry, ": try again"),
                _ => (ErrorKind::Internal, ""),
            },
        }
    }
}
