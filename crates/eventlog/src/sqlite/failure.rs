//! Converts errors of SQLite and of the file system into errors of the log.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
};

use rusqlite::ErrorCode;

use super::damage::is_damage;
use crate::error::LogError;

impl From<rusqlite::Error> for LogError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::ReadOnly,
            _ if is_damage(&error) => Self::Corrupt(Arc::new(error)),
            _ => Self::Engine(Arc::new(error)),
        }
    }
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotFound => {
                Self::ReadOnly
            }
            _ => Self::Engine(Arc::new(error)),
        }
    }
}
