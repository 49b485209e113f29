//! A connection with its prepared statements.

use tokio_postgres::{Client, Error, Row, Statement, types::ToSql};

use super::statements::Statements;

pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) statements: Statements,
}

/// Each of these sends its statement when it is first polled. So several of them in one `join!` are sent together
/// and answered in order. They own their parameter lists, so that they can be written that way.
impl Connection {
    pub(super) async fn execute<const N: usize>(
        &self,
        statement: &Statement,
        parameters: [Parameter<'_>; N],
    ) -> Result<u64, Error> {
        self.client.execute(statement, &parameters).await
    }

    pub(super) async fn query<const N: usize>(
        &self,
        statement: &Statement,
        parameters: [Parameter<'_>; N],
    ) -> Result<Vec<Row>, Error> {
        self.client.query(statement, &parameters).await
    }

    pub(super) async fn query_one<const N: usize>(
        &self,
        statement: &Statement,
        parameters: [Parameter<'_>; N],
    ) -> Result<Row, Error> {
        self.client.query_one(statement, &parameters).await
    }

    pub(super) async fn query_opt<const N: usize>(
        &self,
        statement: &Statement,
        parameters: [Parameter<'_>; N],
    ) -> Result<Option<Row>, Error> {
        self.client.query_opt(statement, &parameters).await
    }

    /// Runs SQL without parameters and without an answer.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }
}
